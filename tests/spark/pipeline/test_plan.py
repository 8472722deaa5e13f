"""Pipeline files: what they become, and the one line that says what is wrong with them and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from skytide.errors import InputError, OptionError
from skytide.spark.pipeline import Pipeline, PipelineError
from skytide.spark.pipeline.kinds import kinds
from skytide.spark.pipeline.plan import OUR_SINKS
from skytide.spark.sinks import SINKS
from tests.spark.pipeline.files import BATCH, STREAM, complaint, pipeline_file


def load(folder: Path, text: str) -> Pipeline:
    return Pipeline.load(pipeline_file(folder, text))


def test_relative_paths_are_relative_to_the_file_and_addresses_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    pipeline = load(tmp_path, STREAM)
    assert pipeline.source.paths == (str(tmp_path / "in"),)
    assert pipeline.sink.path == str(tmp_path / "out")
    assert pipeline.run.checkpoint == str(tmp_path / "checkpoint")
    assert pipeline.dead_letters is not None and pipeline.dead_letters.path == str(tmp_path / "dead")
    assert pipeline.current is not None and pipeline.current.path == str(tmp_path / "now")
    far = load(tmp_path, BATCH.replace('"in"', '"s3a://bucket/in"').replace('"out"', '"/else/where"'))
    assert (far.source.paths, far.sink.path) == (("s3a://bucket/in",), "/else/where")


def test_a_file_found_through_a_relative_path_still_resolves_beside_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline_file(tmp_path, BATCH)
    monkeypatch.chdir(tmp_path)
    assert Pipeline.load("pipeline.toml").source.paths == (str(tmp_path / "in"),)


def test_settings_may_be_dotted_or_quoted_with_or_without_their_first_word(tmp_path: Path) -> None:
    text = BATCH + '[run.spark]\n"spark.driver.memory" = "1g"\nsql.shuffle.partitions = 4\nspark.ui.enabled = false\n'
    expected = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false"}
    assert load(tmp_path, text).run.spark == expected
    assert load(tmp_path, text.replace("[run.spark]", "[spark]")).run.spark == expected
    options = load(tmp_path, BATCH.replace("[query]", "[source.options]\nheader = true\nkafka.x.y = 1\n[query]"))
    assert options.source.options == {"header": "true", "kafka.x.y": "1"}


def test_what_is_said_on_the_command_line_comes_before_the_file(tmp_path: Path) -> None:
    path = pipeline_file(tmp_path, STREAM.replace('"once"', '"5s"') + 'remote = "sc://there"\n')
    assert Pipeline.load(path).run.trigger == "5s"
    run = Pipeline.load(path, once=True, master="local[3]").run
    assert (run.trigger, run.master, run.remote) == ("once", "local[3]", None)
    assert Pipeline.load(path, remote="sc://here").run.remote == "sc://here"
    with pytest.raises(OptionError, match="'http://x' is not an address of Spark Connect"):
        Pipeline.load(path, remote="http://x")


def test_one_text_stands_for_an_array_of_one(tmp_path: Path) -> None:
    assert load(tmp_path, STREAM).query["by"] == ("g",)
    assert load(tmp_path, STREAM.replace('by = "g"', "by = []")).query["by"] == ()


NO_KEY = "there is no such key of the kind skyline; use one of: kind, min, max, by, nulls, parts"
OURS = "use one of: parquet, csv, jsonl, console, kafka, feed"
NO_TRIGGER = 'is not a trigger; give "once", or an interval such as "5s" or "1m"'
NO_DURATION = "is not a duration; write a number, or text like 90s, 15m, 2h, 1d"
COLUMNS = 'min = ["a", "b"]'
LENGTH = 'duration = "2h"'
OUT = 'path = "out"'
NOW = '{ path = "now" }'
CHECKPOINT = 'checkpoint = "checkpoint"'


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "reason"),
    [
        (
            'kind = "skyline"',
            "",
            5,
            "[query] kind",
            "the key is missing; use one of: fragments, frequent, monitor, skyline, snapshots, uncertain, window",
        ),
        ("kind =", "kin =", 6, "[query] kin", "there is no such key; did you mean kind?"),
        ('"skyline"', '"skylime"', 6, "[query] kind", "'skylime' is not allowed; did you mean skyline?"),
        (
            '"skyline"',
            '"other"',
            6,
            "[query] kind",
            "'other' is not allowed; use one of: fragments, frequent, monitor, skyline, snapshots, uncertain, window",
        ),
        ('"skyline"', "7", 6, "[query] kind", "7 is not text; expected: what is asked"),
        ("min =", "mim =", 7, "[query] mim", "there is no such key of the kind skyline; did you mean min?"),
        ("min =", "duration =", 7, "[query] duration", NO_KEY),
        ("[sink]", "run.trigger = 5\n[sink]", 8, "[query] run", NO_KEY),
        (
            COLUMNS,
            "min = 3",
            7,
            "[query] min",
            "3 is not text or an array of texts; expected: columns where less is better",
        ),
        (
            COLUMNS,
            'max = "a"\nmin = ["a"]',
            7,
            "[query] max",
            "'a' is named more than once; minimise or maximise each column once",
        ),
        (
            COLUMNS,
            "",
            5,
            "[query] min",
            "a preference needs at least one column; name a column to minimise or maximise",
        ),
        (
            COLUMNS,
            'min = ["a",\n # no\n "bb"]',
            9,
            "[query] min",
            "'bb' is not a column of the rows; did you mean b?",
        ),
        (
            "[query]",
            "stream = true\n[query]",
            5,
            "[source] stream",
            "the kind skyline reads a whole table, not a stream; "
            "set it to false, or as kind use one of: fragments, frequent, monitor, snapshots, uncertain, window",
        ),
        (
            "[query]",
            'stream = "yes"\n[query]',
            5,
            "[source] stream",
            "'yes' is not true or false; expected: whether rows keep coming; false is a batch job",
        ),
        (
            "[query]",
            "[source.options]\nx = [1]\n[query]",
            5,
            "[source] options",
            "{'x': [1]} is not a table of plain values; expected: go to Spark as they are",
        ),
        ("[query]", "[sorce]\n[query]", 5, "[sorce]", "there is no such table; did you mean source?"),
        (OUT, "", 8, "[sink] path", "the key is missing; say where the results go"),
        (OUT, 'path = "in"', 10, "[sink] path", "'in' is also the place of [source] path; choose another place"),
        (
            OUT,
            'path = "pipeline.toml"',
            10,
            "[sink] path",
            '\'pipeline.toml\' exists already; remove it, or set mode = "overwrite" or "append"',
        ),
        (OUT, f'{OUT}\ncurrent = "x"', 11, "[sink] current", "the kind skyline has none; leave it out"),
        (
            OUT,
            f'{OUT}\nmode = "upsert"',
            11,
            "[sink] mode",
            "'upsert' is not allowed; use one of: error, overwrite, append, ignore",
        ),
        ('path = "in"', 'path = "inn"', 3, "[source] path", "'inn' does not exist"),
        ('path = "in"', "", 1, "[source] path", "the key is missing; say where the files lie"),
        (
            'format = "csv"',
            "",
            1,
            "[source] format",
            "the key is missing; expected: any format of Spark's, or skytide or kafka",
        ),
        (
            "[sink]",
            '[run]\ntrigger = "5s"\n[sink]',
            9,
            "[run] trigger",
            "a batch job runs once; leave it out, or set stream = true in [source]",
        ),
        (
            "[sink]",
            '[run]\nmaster = "local"\nremote = "sc://x"\n[sink]',
            10,
            "[run] remote",
            "a job has either a master or a remote; leave one of them out",
        ),
        (
            "[sink]",
            '[prepare]\nsql = ""\n[sink]',
            9,
            "[prepare] sql",
            "'' is not text; expected: a SELECT that reads the source as `input`",
        ),
    ],
)
def test_a_batch_file_that_cannot_be_is_refused_in_one_line_with_its_place(
    tmp_path: Path, old: str, new: str, line: int, key: str, reason: str
) -> None:
    assert old in BATCH
    assert complaint(tmp_path, BATCH.replace(old, new, 1)) == f"pipeline.toml, line {line}: {key}: {reason}"


def test_a_table_that_is_missing_is_named(tmp_path: Path) -> None:
    line = complaint(tmp_path, BATCH[: BATCH.index("[sink]")])
    assert line == "pipeline.toml: the table [sink] is missing; a pipeline has [source], [query] and [sink]"


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "reason"),
    [
        (LENGTH, 'duration = "2x"', 13, "[query] duration", f"'2x' {NO_DURATION}"),
        (
            LENGTH,
            'duration = "0s"',
            13,
            "[query] duration",
            "'0s' is not a length of time; give more than 0, and finite",
        ),
        (
            LENGTH,
            "duration = true",
            13,
            "[query] duration",
            "True is not a number, or text like 90s, 15m, 2h, 1d; expected: how long a row lives",
        ),
        (
            LENGTH,
            "",
            6,
            "[query] duration",
            "a window needs a length; give either duration, such as 2h, or count",
        ),
        (LENGTH, f"{LENGTH}\ncount = 5", 14, "[query] count", "a window has one length; give either count or duration"),
        (LENGTH, "count = 0", 13, "[query] count", "0 is too small; give 1 or more"),
        (
            LENGTH,
            "count = 1.5",
            13,
            "[query] count",
            "1.5 is not a whole number; expected: a row lives until so many more have come",
        ),
        (LENGTH, 'count = 5\nlateness = "-1s"', 14, "[query] lateness", f"'-1s' {NO_DURATION}"),
        (
            LENGTH,
            "count = 5\nlateness = -1",
            14,
            "[query] lateness",
            "-1 is not a lateness; give 0 or more, and finite",
        ),
        (
            LENGTH,
            'count = 5\nemit = "all"',
            14,
            "[query] emit",
            "'all' is not allowed; use one of: changes, net",
        ),
        (
            LENGTH,
            'count = 5\nnulls = "skip"',
            14,
            "[query] nulls",
            "'skip' is not allowed; use one of: error, drop, worst",
        ),
        (
            LENGTH,
            f"{LENGTH}\nuntil = 2024-01-01",
            14,
            "[query] until",
            "a stream has no end; leave it out, or set stream = false in [source]",
        ),
        ('time = "ts"', "", 6, "[query] time", "the key is missing; expected: the column with the rows' times"),
        ('time = "ts"', 'time = "tss"', 12, "[query] time", "'tss' is not a column of the rows; did you mean ts?"),
        (
            'by = "g"',
            'by = ["g", "a"]',
            10,
            "[query] by",
            "'a' is both a preference and a `by` column; choose one of the two",
        ),
        (
            CHECKPOINT,
            "",
            19,
            "[run] checkpoint",
            "the key is missing; a stream keeps its progress and state in this folder",
        ),
        (
            CHECKPOINT,
            'checkpoint = "out/"',
            21,
            "[run] checkpoint",
            "'out' is also the place of [sink] path; choose another place",
        ),
        ('trigger = "once"', 'trigger = "soon"', 20, "[run] trigger", f"'soon' {NO_TRIGGER}"),
        ('trigger = "once"', 'trigger = "1us"', 20, "[run] trigger", f"'1us' {NO_TRIGGER}"),
        (
            'trigger = "once"',
            'remote = "host"',
            20,
            "[run] remote",
            "'host' is not an address of Spark Connect; write sc://host:15002",
        ),
        (NOW, '{ pth = "now" }', 18, "[sink] current.pth", "there is no such key; did you mean path?"),
        (
            NOW,
            '"dead"',
            18,
            "[sink] current",
            "'dead' is also the place of [sink] dead_letters; choose another place",
        ),
        (NOW, "{}", 18, "[sink] current.path", "the key is missing; expected: where the results go"),
        (
            NOW,
            '"now"\noptions.paht = "x"',
            19,
            "[sink] options",
            "'paht' is not an option of the sink parquet; the options are: path",
        ),
        (
            'format = "parquet"\npath = "out"',
            'format = "kafka"\noptions.topic = "t"',
            16,
            "[sink] options",
            "the option servers of the sink kafka is missing; give it",
        ),
        (
            'format = "parquet"',
            'format = "delta"',
            17,
            "[sink] dead_letters",
            f"the format delta has none; {OURS}",
        ),
        (
            'path = "in"',
            'path = ["in", "on"]',
            3,
            "[source] path",
            "a stream has one path; use a pattern such as data/*/",
        ),
    ],
)
def test_a_stream_file_that_cannot_be_is_refused_in_one_line_with_its_place(
    tmp_path: Path, old: str, new: str, line: int, key: str, reason: str
) -> None:
    assert old in STREAM
    assert complaint(tmp_path, STREAM.replace(old, new, 1)) == f"pipeline.toml, line {line}: {key}: {reason}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"[source\n", "line 1: this is not TOML: "),
        (b"a = 1\nb = \n", "line 2: this is not TOML: "),
        (b"a = 1\na = 2\n", "line 2: this is not TOML: "),
        (b'a = 1\nb = """\n', "line 3: this is not TOML: "),
        (b"a = 1\n# \xff\n", "line 2: the text is not UTF-8; save it as UTF-8"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, "tables or arrays are nested too deeply"),
        (b"", "the table [source] is missing; a pipeline has [source], [query] and [sink]"),
        (b"source = 3\nquery = 3\nsink = 3\n", "line 1: [source]: 3 is not a table; begin it with [source]"),
        (b"query = 3\nsource.format = 'x'\nsink = 3\n", "line 1: [query]: 3 is not a table; begin it with [query]"),
    ],
)
def test_what_is_no_pipeline_file_at_all_is_refused_in_one_line(tmp_path: Path, text: bytes, line: str) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(text)
    with pytest.raises(PipelineError) as caught:
        Pipeline.load(path)
    assert str(caught.value).startswith(f"{path}{',' if line.startswith('line') else ':'} {line}")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        Pipeline.load(tmp_path / "none.toml")
    with pytest.raises(InputError, match="is a folder"):
        Pipeline.load(tmp_path)
    (tmp_path / "big").write_bytes(b"#" * (1 << 21))
    with pytest.raises(InputError, match="larger than 1 MiB"):
        Pipeline.load(tmp_path / "big")


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = pipeline_file(tmp_path, BATCH)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert Pipeline.load(path).kind.name == "skyline"


def test_columns_are_left_to_spark_where_the_file_does_not_tell_them(tmp_path: Path) -> None:
    wrong = BATCH.replace('["a", "b"]', '["nowhere"]')
    load(tmp_path, wrong.replace('schema = "id INT, a DOUBLE, b DOUBLE, g STRING"\n', ""))
    load(tmp_path, wrong + '[prepare]\nsql = "SELECT a AS nowhere FROM input"\n')
    load(tmp_path, wrong.replace('"in"', '"hdfs://x/in"'))
    (tmp_path / "in" / "year=2024" / "nowhere=7").mkdir(parents=True)
    load(tmp_path, wrong)
    assert "'elsewhere' is not a column" in complaint(tmp_path, wrong.replace("nowhere", "elsewhere"))


def test_places_on_other_machines_are_not_looked_for_here(tmp_path: Path) -> None:
    path = pipeline_file(tmp_path, BATCH.replace('"in"', '"/not/here"'))
    Pipeline.load(path, master="spark://there:7077")
    Pipeline.load(path, remote="sc://there")
    with pytest.raises(PipelineError, match="does not exist"):
        Pipeline.load(path)


def test_the_sinks_of_change_streams_are_all_there_are() -> None:
    assert {*OUR_SINKS, "current"} == set(SINKS)


def test_each_kind_says_what_it_is_for_and_takes_a_preference() -> None:
    assert {"skyline", "window"} <= set(kinds())
    for name, kind in kinds().items():
        assert kind.name == name and kind.about
        assert {"min", "max", "nulls"} <= {field.name for field in kind.fields}
