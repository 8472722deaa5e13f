"""What a session of ours is like, and what is said of others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from skytide.errors import MissingDependencyError, OptionError, SkytideError
from skytide.spark import check_session, find_java, local_session, plain_error, plain_errors
from skytide.spark.session import ROCKSDB, SHUFFLE_PARTITIONS, STATE_PROVIDER
from skytide.spark.streaming.packing import packed, unpacked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_session_has_what_streaming_needs_and_passes_its_own_check(spark: SparkSession) -> None:
    assert spark.conf.get(STATE_PROVIDER) == ROCKSDB
    assert spark.conf.get(SHUFFLE_PARTITIONS) == "2"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    check_session(spark, state=True)


def test_the_jvm_does_not_measure_batches_and_what_we_pack_fits_into_one(spark: SparkSession) -> None:
    """Any limit but this one, and the JVM measures a batch after each row; without a limit a batch must fit anyway."""
    assert spark.conf.get("spark.sql.execution.arrow.maxBytesPerBatch") == "2147483647b"
    rows = int(spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") or 0)
    table = pa.table({"id": range(100_000), "name": ["somebody"] * 100_000})
    pieces = list(packed(table))
    assert len(pieces) > 1 and 0 < rows * max(map(len, pieces)) < 2**31
    assert unpacked(pieces) == table


def test_workers_run_on_this_python(spark: SparkSession) -> None:
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert os.environ["JAVA_HOME"] == str(find_java().home)


def test_nothing_listens_beyond_loopback(spark: SparkSession) -> None:
    listening = Path("/proc/net/tcp")
    if not listening.exists():
        pytest.skip("the kernel does not tell which sockets listen")
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    ours = _sockets_of_children()
    assert ours
    open_to_all = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            address, state, inode = fields[1].split(":")[0], fields[3], fields[9]
            if state == "0A" and inode in ours and not address.endswith("0100007F"):
                open_to_all.append(line)
    assert open_to_all == []


def _sockets_of_children() -> set[str]:
    """The inodes of the sockets of this process and of the processes below it."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[folder.name] = re.sub(r".*\)", "", (folder / "stat").read_text()).split()[1]
        except OSError:
            continue
    mine = {str(os.getpid())}
    while more := {child for child, parent in parents.items() if parent in mine} - mine:
        mine |= more
    found = set()
    for process in mine:
        for handle in Path("/proc", process, "fd").glob("*"):
            try:
                name = str(handle.readlink())
            except OSError:
                continue
            if name.startswith("socket:"):
                found.add(name[len("socket:[") : -1])
    return found


def test_an_active_session_is_returned_as_it_is(spark: SparkSession) -> None:
    assert local_session() is spark or local_session().sparkContext is spark.sparkContext
    assert local_session("local[1]", **{SHUFFLE_PARTITIONS: 2}).conf.get(SHUFFLE_PARTITIONS) == "2"


def test_a_setting_that_the_active_session_does_not_have_is_refused(spark: SparkSession) -> None:
    with pytest.raises(OptionError, match=r"'9g' was asked for spark\.driver\.memory, and the active session has 1g"):
        local_session(**{"spark.driver.memory": "9g"})


def test_the_check_names_the_setting_that_state_cannot_live_with(spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set(STATE_PROVIDER, "some.other.Provider")
    check_session(other)
    with pytest.raises(OptionError, match=re.escape(STATE_PROVIDER)):
        check_session(other, state=True)


def test_the_check_wants_a_number_of_state_stores_that_somebody_chose() -> None:
    class Settings:
        @property
        def getAll(self) -> dict[str, str]:  # noqa: N802
            return {STATE_PROVIDER: ROCKSDB}

        def get(self, name: str) -> str:
            return {STATE_PROVIDER: ROCKSDB, SHUFFLE_PARTITIONS: "200"}[name]

    import pyspark

    class Session:
        version = pyspark.__version__
        conf = Settings()

    with pytest.raises(OptionError, match=r"200 shuffle partitions mean as many state stores"):
        check_session(Session(), state=True)  # type: ignore[arg-type]
    Session.version = "3.5.1"
    with pytest.raises(OptionError, match="SPARK_HOME"):
        check_session(Session())  # type: ignore[arg-type]


def test_spark_itself_tells_chosen_settings_from_defaults(spark: SparkSession) -> None:
    assert SHUFFLE_PARTITIONS in spark.conf.getAll
    assert "spark.sql.files.maxPartitionBytes" not in spark.conf.getAll


def test_the_facade_needs_no_pyspark_until_a_function_is_used() -> None:
    probe = """
import sys
sys.modules["pyspark"] = None
import skytide.spark
assert "skyline" in dir(skytide.spark)
from skytide.errors import MissingDependencyError
for use in (lambda: skytide.spark.local_session(), lambda: skytide.spark.skyline(None, None)):
    try:
        use()
    except MissingDependencyError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.count('install it with: pip install "skytide[spark]"') == 2


def test_an_unknown_name_of_the_facade_is_an_attribute_error() -> None:
    import skytide.spark

    with pytest.raises(AttributeError, match="no attribute 'sklyine'"):
        _ = skytide.spark.sklyine


def test_errors_that_are_not_ours_pass_through_unchanged() -> None:
    assert plain_error(RuntimeError("Job aborted: lost executor")) is None
    assert plain_error(RuntimeError("skytide.errors.NoSuchError: what")) is None
    with pytest.raises(ZeroDivisionError), plain_errors():
        _ = 1 / 0
    ours: SkytideError = MissingDependencyError("x")
    with pytest.raises(MissingDependencyError) as caught, plain_errors():
        raise ours
    assert caught.value is ours
