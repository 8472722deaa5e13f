"""A Spark session on this machine or a Connect server, with the settings that Skytide needs; a check of any other."""

from __future__ import annotations

import atexit
import importlib
import os
import re
import shutil
import socket
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from skytide.errors import MissingDependencyError, OptionError
from skytide.spark.faults import need_pyspark
from skytide.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATE_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"

_LOOPBACK = "127.0.0.1"
_CONNECT_PORT = 15002
_SECONDS_TO_ANSWER = 10
# Spark announces a changed log level where the gateway's own logger has none, and prints the whole stack of every task
# that fails, in addition to the exception that the caller gets. A record is one line, whatever it says.
_LOGGING = r"""
status = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.alwaysWriteExceptions = false
appender.console.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %p %c{1}: %replace{%m %ex{short.message}}{\\s*\\n\\s*}{ }%n
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.query.name = org.apache.spark.sql.execution.streaming
logger.query.level = off
"""


def local_session(master: str = "local[*]", **conf: object) -> SparkSession:
    """A Spark session on this machine; the active one, where there is one.

    Finds or brings a Java, listens on loopback only, has no web page, logs errors only, writes nothing into the current
    folder, and has the settings that streaming needs. `conf` are further Spark settings, which come before ours:
    `local_session("local[2]", **{"spark.driver.memory": "4g"})`. An active session is returned as it is; a setting
    asked for that it does not have is an error. Starting one takes some seconds and 2 GiB of memory at most.
    """
    need_pyspark()
    from pyspark.sql import SparkSession

    asked = {name: _text(value) for name, value in conf.items()}
    active = SparkSession.getActiveSession()
    if active is not None:
        _check_asked(active, asked)
        return active
    java = ensure_java()
    local = master.startswith("local")
    _set_environment(local, asked.get("spark.pyspark.python"))
    settings = {**_settings(), **(_local_settings(master) if local else {}), **asked}
    builder = SparkSession.builder.master(master).appName(settings.pop("spark.app.name", "skytide"))
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except RuntimeError as problem:
        if "JAVA_GATEWAY_EXITED" not in str(problem):
            raise
        raise MissingDependencyError(
            f"Java {java.version} ({java.home}) ended before Spark had started",
            remedy="see what it printed; less of spark.driver.memory, or another JAVA_HOME, may help",
        ) from problem


def remote_session(url: str, **conf: object) -> SparkSession:
    """A session on a Spark Connect server, `sc://host:15002`; the active one, where there is one on a server.

    Needs no Java here. The session gets the settings that streaming needs, and `conf`, which comes before ours; the
    number of shuffle partitions is left as the server has it. Its tasks run on the Python of the server, where Skytide
    must be installed as it is here. A server that does not answer within ten seconds is an error. Spark allows one kind
    of session in a process: where a local one is active, that is an error too.
    """
    need_pyspark()
    host, port = _address(url)
    _need_connect()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        with socket.create_connection((host, port), timeout=_SECONDS_TO_ANSWER):
            pass
    except OSError as problem:
        raise OptionError(
            f"does not answer ({problem})", value=url, remedy="start the server, or check the address"
        ) from None
    try:
        spark = SparkSession.builder.remote(url).getOrCreate()
        for name, value in {**_session_settings(), **conf}.items():
            spark.conf.set(name, _text(value))
        check_session(spark)
    except PySparkException as problem:
        reason = str(problem).strip().partition("\n")[0]
        raise OptionError(
            f"is not a Spark Connect server that can be used ({reason})",
            value=url,
            remedy="check the address, the token and the settings, and stop a session of another kind",
        ) from None
    return spark


def _address(url: str) -> tuple[str, int]:
    """The host and the port of a URL like `sc://host:15002/;token=...`.

    >>> _address("sc://spark.example/;user_id=me"), _address("sc://[::1]:15003")
    (('spark.example', 15002), ('::1', 15003))
    """
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme != "sc" or not host:
        raise OptionError("is not a Spark Connect server", value=url, remedy="write sc://HOST:PORT, as sc://host:15002")
    return host, port or _CONNECT_PORT


def _need_connect() -> None:
    """An error with the remedy where pyspark lacks what its Connect client needs."""
    try:
        for module in ("grpc", "grpc_status", "google.rpc.error_details_pb2", "zstandard"):
            importlib.import_module(module)
    except ImportError as missing:
        raise MissingDependencyError(
            f"Spark Connect needs a package that is not installed ({missing.name})",
            remedy='install it with: pip install "skytide[connect]"',
        ) from None


def check_session(spark: SparkSession, *, state: bool = False) -> None:
    """Raise an error that names the setting where a session lacks what a function needs; `state`: it keeps state.

    State needs the RocksDB provider, and a number of shuffle partitions that somebody has chosen: each is a store of
    its own, and Spark's default means 200 of them.
    """
    from pyspark import __version__

    if spark.version.split(".")[:2] != __version__.split(".")[:2]:
        raise OptionError(
            f"is the version of Spark, and pyspark is {__version__}",
            value=spark.version,
            remedy="unset SPARK_HOME, or install the pyspark of that version",
        )
    if not state:
        return
    provider = spark.conf.get(STATE_PROVIDER)
    if provider != ROCKSDB:
        raise OptionError(
            f"is the state store of the session ({STATE_PROVIDER}), and transformWithState does not work on it",
            value=provider,
            remedy=f"set it to {ROCKSDB}",
        )
    if SHUFFLE_PARTITIONS not in spark.conf.getAll:
        raise OptionError(
            f"shuffle partitions mean as many state stores, and {SHUFFLE_PARTITIONS} was left at its default",
            value=int(spark.conf.get(SHUFFLE_PARTITIONS) or 0),
            remedy="set it, to the number of cores for example",
        )


def cores_of(master: str) -> int:
    """How many tasks a local master runs at once.

    >>> cores_of("local"), cores_of("local[3]"), cores_of("local[4, 2]"), cores_of("local-cluster[2,3,1024]")
    (1, 3, 4, 6)
    """
    if found := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]", master):
        return max(1, int(found[1]) * int(found[2]))
    if found := re.fullmatch(r"local\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\]", master):
        return max(1, int(found[1])) if found[1] != "*" else os.cpu_count() or 1
    return 1


def _settings() -> dict[str, str]:
    return {**_session_settings(), "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


def _session_settings() -> dict[str, str]:
    """What can be set in a session that runs already."""
    return {
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # With any other limit Spark measures what a batch for Python holds after each row, which takes longer than all
        # the rest of a row's way. Batches are still of 10,000 rows, and what we pack is small enough for so many.
        "spark.sql.execution.arrow.maxBytesPerBatch": f"{2**31 - 1}b",
        "spark.sql.session.timeZone": "UTC",
        STATE_PROVIDER: ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }


def _local_settings(master: str) -> dict[str, str]:
    folder = _folder()
    logging = f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()}"
    return {
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.memory": "2g",
        "spark.driver.defaultJavaOptions": logging,
        "spark.executor.defaultJavaOptions": logging,
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        SHUFFLE_PARTITIONS: str(cores_of(master)),
    }


def _set_environment(local: bool, python: str | None) -> None:
    """What Spark's start scripts and its Python workers read from the environment of this process."""
    import pyspark

    # Without these the script asks whatever `python3` is on the PATH where Spark lies, and workers run on it.
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    if local:
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
    if python is not None:  # the setting is read by spark-submit alone, and workers run on what the environment says
        os.environ["PYSPARK_PYTHON"] = python


@cache
def _folder() -> Path:
    """The temporary folder of this process: how Spark logs, and where it keeps tables."""
    folder = Path(tempfile.mkdtemp(prefix="skytide-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
    return folder


def _check_asked(active: SparkSession, asked: dict[str, str]) -> None:
    for name, value in asked.items():
        running = active.conf.get(name, None)
        if running != value:
            raise OptionError(
                f"was asked for {name}, and the active session has {running}",
                value=value,
                remedy="stop the active session first, or leave the setting out",
            )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
