"""JVMs that start fast. `python -m tests.spark.small` is done once before the tests, and each JVM gains from it.

A JVM of Spark's reads, checks and links ten thousand classes before it does anything. Java can keep them in an archive
as it has them in memory. A JVM that finds none, or one that is not of its own version, does without.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from skytide.spark import ensure_java, local_session

BASE, CLASSES = (Path(sys.prefix) / f"spark-{name}.jsa" for name in ("base", "classes"))
"""The archives of Java's own classes and of Spark's, which belong together."""

# Short runs: less compiling and one collector thread start faster.
PLAIN_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_QUIET = "-Xlog:disable -Xlog:all=error,cds*=off:stderr"
JAVA = f"{PLAIN_JAVA} -XX:SharedArchiveFile={BASE}:{CLASSES} {_QUIET}" if CLASSES.exists() else PLAIN_JAVA

SMALL_JVM = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    # Compiling a plan takes longer than a few hundred rows take without. Tests on clusters and on servers leave it on.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def keep_classes() -> None:
    """Run a stream on Spark, and keep the classes that it took. Where Java cannot do it there is no archive."""
    from pyspark import SparkContext

    from tests.spark.streaming.faults import again, put_stream

    java = ensure_java().home / "bin" / "java"
    base, fresh = (path.with_suffix(f".{os.getpid()}") for path in (BASE, CLASSES))
    dump = [str(java), "-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedArchiveFile={base}", *_QUIET.split()]
    if subprocess.run(dump, stdout=subprocess.DEVNULL, check=False).returncode:
        return
    # An archive knows the one below it by its place.
    base.replace(BASE)
    option = "spark.driver.extraJavaOptions"
    SMALL_JVM[option] = f"{PLAIN_JAVA} -XX:SharedArchiveFile={BASE} -XX:ArchiveClassesAtExit={fresh} {_QUIET}"
    with tempfile.TemporaryDirectory() as folder:
        put_stream(Path(folder))
        spark = local_session("local[2]", **SMALL_JVM)
        again(spark, Path(folder))
        spark.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(120)
    if fresh.exists():
        fresh.replace(CLASSES)


if __name__ == "__main__":
    keep_classes()
