"""The pipeline that a file describes, checked as far as that goes without Spark."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skytide.errors import OptionError, SkytideError
from skytide.expressions import parse
from skytide.model import duration_value
from skytide.spark.pipeline import fields as forms
from skytide.spark.pipeline.document import Document, is_local
from skytide.spark.pipeline.fields import Field, Options, checked, checked_value, one_of, refuser, suggestion
from skytide.spark.pipeline.kinds import Kind, kinds
from skytide.spark.pipeline.places import Path as Way
from skytide.spark.pipeline.schema import column_names
from skytide.spark.sources.options import plain as plain_name

TABLES = ("source", "prepare", "query", "sink", "run", "spark")
FILE_FORMATS = ("parquet", "csv", "json", "jsonl", "orc", "text", "avro", "xml", "binaryFile", "delta")
"""Formats that lie at a path."""
OUR_SINKS = ("parquet", "csv", "jsonl", "console", "kafka", "feed")
"""Formats of change streams that we write ourselves, exactly once or so that readers can tell; others are Spark's."""
OUR_FILES = ("tokenfile", "certificate")
"""Options of our own source that name files: relative ones are relative to the pipeline file, as paths are."""
ONCE = "once"
_GLOB = re.compile(r"[*?\[{]")


def _check_trigger(text: str) -> None:
    try:
        usable = text == ONCE or int(duration_value(text)) >= 1_000_000
    except SkytideError:
        usable = False
    if not usable:
        raise OptionError("is not a trigger", value=text, remedy='give "once", or an interval such as "5s" or "1m"')


def _check_remote(text: str) -> None:
    if not re.match(r"sc://[^/]", text):
        raise OptionError("is not an address of Spark Connect", value=text, remedy="write sc://host:15002")


SOURCE = (
    Field("format", forms.TEXT, "any format of Spark's, or skytide or kafka", required=True),
    Field("path", forms.TEXTS, "where the files lie"),
    Field("stream", forms.BOOLEAN, "whether rows keep coming; false is a batch job"),
    Field("schema", forms.TEXT, "the columns, where the format needs them: ts TIMESTAMP, price DOUBLE, ..."),
    Field("options", forms.SETTINGS, "go to Spark as they are"),
)
PREPARE = (
    Field("sql", forms.TEXT, "a SELECT that reads the source as `input`"),
    Field("casts", forms.EXPRESSIONS, 'types of columns: price = "DOUBLE"'),
    Field("columns", forms.EXPRESSIONS, 'new columns: delay = "dep_delay + arr_delay"'),
    Field("filter", forms.TEXTS, "conditions that all must hold"),
    Field("select", forms.TEXTS, "the columns or expressions that stay"),
)
SINK = (
    Field("format", forms.TEXT, "parquet, csv, jsonl, console, kafka, feed, or any format of Spark's", required=True),
    Field("path", forms.TEXT, "where the results go"),
    Field(
        "mode",
        forms.TEXT,
        "of a batch job, where there is something already",
        choices=("error", "overwrite", "append", "ignore"),
    ),
    Field("options", forms.SETTINGS, "go to Spark as they are"),
    Field("dead_letters", forms.TEXT_OR_TABLE, "where late and bad rows go: a path, or a table like [sink]"),
    Field("current", forms.TEXT_OR_TABLE, "where the present answer goes: a path"),
    Field("feed", forms.TEXT_OR_TABLE, "where a live feed of the changes goes, beside the sink: a path"),
)
DEAD_LETTERS = (replace(SINK[0], required=False), SINK[1], SINK[3])
BESIDE = {"current": (replace(SINK[1], required=True),), "feed": (replace(SINK[1], required=True), SINK[3])}
RUN = (
    Field("master", forms.TEXT, "where Spark runs: local[*], spark://host:7077, ..."),
    Field("remote", forms.TEXT, "a Spark Connect server: sc://host:15002", check=_check_remote),
    Field("trigger", forms.TEXT, "once, or an interval such as 5s", check=_check_trigger),
    Field("checkpoint", forms.TEXT, "the folder of a stream's progress and state"),
    Field("name", forms.TEXT, "what the job is called"),
    Field("spark", forms.SETTINGS, "settings of Spark"),
)


@dataclass(frozen=True)
class Source:
    """Where rows come from."""

    format: str
    paths: tuple[str, ...] = ()
    stream: bool = False
    schema: str | None = None
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """Where results go."""

    format: str
    path: str | None = None
    mode: str = "error"
    options: dict[str, str] = field(default_factory=dict)

    def sink(self) -> Any:
        """The sink of ours that this names."""
        from skytide.spark.sinks import make_sink

        return make_sink(self.format, self.options if self.path is None else {**self.options, "path": self.path})

    @property
    def label(self) -> str:
        """The place in a few words."""
        return self.path or self.options.get("path") or self.options.get("topic") or self.format


@dataclass(frozen=True)
class Run:
    """How the job runs."""

    master: str = "local[*]"
    remote: str | None = None
    trigger: str | None = None
    checkpoint: str | None = None
    name: str = "skytide"
    spark: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pipeline:
    """A whole pipeline: what the file says, with paths resolved."""

    document: Document
    source: Source
    prepare: Options
    kind: Kind
    query: Options
    sink: Target
    dead_letters: Target | None
    current: Target | None
    run: Run
    feed: Target | None = None

    @classmethod
    def load(
        cls, path: str | Path, *, once: bool = False, master: str | None = None, remote: str | None = None
    ) -> Pipeline:
        """Read and check a pipeline file; the other arguments come before what the file says.

        Everything that can be known without Spark is checked, and nothing is started or written.
        """
        pipeline = cls.of(Document.read(path))
        run = pipeline.run
        if master is not None:
            run = replace(run, master=master, remote=None)
        if remote is not None:
            _check_remote(remote)
            run = replace(run, remote=remote)
        if once:
            run = replace(run, trigger=ONCE)
        pipeline = replace(pipeline, run=run)
        pipeline.check_paths()
        return pipeline

    @classmethod
    def of(cls, document: Document) -> Pipeline:
        """The pipeline of a file that was read, its tables checked one by one and against each other."""
        for name in document.data:
            if name not in TABLES:
                raise document.problem((name,), "there is no such table", remedy=suggestion(name, TABLES))
        for name in ("source", "query", "sink"):
            if name not in document.data:
                raise document.problem(
                    (), f"the table [{name}] is missing", remedy="a pipeline has [source], [query] and [sink]"
                )
        source = _source(document)
        prepare = checked(document, ("prepare",), PREPARE)
        kind, query = _query(document)
        sink, dead_letters, current, feed = _sinks(document, kind, source.stream)
        run = _run(document)
        if source.stream:
            _check_stream(document, kind, run)
        elif run.trigger not in (None, ONCE):
            raise document.problem(
                ("run", "trigger"),
                "a batch job runs once",
                remedy="leave it out, or set stream = true in [source]",
            )
        pipeline = cls(document, source, prepare, kind, query, sink, dead_letters, current, run, feed)
        pipeline.check_early_columns()
        return pipeline

    def described(self) -> str:
        """What will run, in a few words."""
        what = "a stream" if self.source.stream else "a batch"
        where = self.run.remote or self.run.master
        return f"{self.kind.name} over {what} of {self.source.format}, to {self.sink.label}, on {where}"

    # -- columns -------------------------------------------------------------------------------------------------------

    def check_columns(self, columns: list[str]) -> None:
        """A complaint at the key that names a column which the rows do not have."""
        for one in self.kind.fields:
            if not (one.columns or one.expressions) or one.name not in self.query:
                continue
            given = self.query[one.name]
            names = (
                [(("query", one.name), given)]
                if isinstance(given, str)
                else [(("query", one.name, place), name) for place, name in enumerate(given)]
            )
            for way, name in names:
                if one.expressions:
                    self._check_expression(way, name, columns)
                elif name not in columns:
                    raise self.document.problem(
                        way, "is not a column of the rows", value=name, remedy=suggestion(name, columns)
                    )

    def _check_expression(self, way: Way, text: str, columns: list[str]) -> None:
        try:
            parse(text, columns)
        except SkytideError as problem:
            raise self.document.about(way, problem) from None

    def way_to(self, column: str | int | None) -> Way:
        """The key of `[query]` that names a column, or the table."""
        for one in self.kind.fields:
            given = self.query.get(one.name, ())
            if one.columns and column is not None and column in ((given,) if isinstance(given, str) else given):
                return "query", one.name
        return ("query",)

    def check_early_columns(self) -> None:
        """The same before Spark starts, where the file itself says which columns there are."""
        if self.prepare or self.source.schema is None:
            return
        names = column_names(self.source.schema)
        if names is None or not all(is_local(path) for path in self.source.paths):
            return
        self.check_columns(names + sorted(_folder_columns(self.source.paths)))

    # -- paths ---------------------------------------------------------------------------------------------------------

    def check_paths(self) -> None:
        """Complaints about places on this machine: nothing to read, something in the way, two things at one place."""
        document, local = self.document, self.run.remote is None and self.run.master.startswith("local")
        places = [(("source", "path"), path) for path in self.source.paths]
        targets = [
            ("sink", "path", self.sink),
            ("sink", "dead_letters", self.dead_letters),
            ("sink", "current", self.current),
            ("sink", "feed", self.feed),
        ]
        for table, key, target in targets:
            if target is not None and target.path is not None:
                places.append(((table, key), target.path))
        if self.source.stream and self.run.checkpoint is not None:
            places.append((("run", "checkpoint"), self.run.checkpoint))
        seen: dict[str, str] = {}
        for way, path in places:
            plain = str(Path(path)) if is_local(path) else path.rstrip("/")
            if plain in seen and way != ("source", "path"):
                raise document.problem(
                    way, f"is also the place of {seen[plain]}", value=path, remedy="choose another place"
                )
            seen[plain] = f"[{way[0]}] {way[1]}"
        if not local or any(name.endswith("fs.defaultFS") for name in self.run.spark):
            return
        for path in self.source.paths:
            if is_local(path) and not _GLOB.search(path) and not Path(path).exists():
                raise document.problem(("source", "path"), "does not exist", value=path)
        taken = self.sink.path
        if not self.source.stream and self.sink.mode == "error" and taken and is_local(taken) and Path(taken).exists():
            raise document.problem(
                ("sink", "path"),
                "exists already",
                value=document.data["sink"]["path"],
                remedy='remove it, or set mode = "overwrite" or "append"',
            )


def _source(document: Document) -> Source:
    given = checked(document, ("source",), SOURCE)
    paths = tuple(document.resolve(path) for path in given.get("path", ()))
    if given["format"] in FILE_FORMATS and not paths and "path" not in given.get("options", {}):
        raise document.problem(("source", "path"), "the key is missing", remedy="say where the files lie")
    if given.get("stream") and len(paths) > 1:
        raise document.problem(("source", "path"), "a stream has one path", remedy="use a pattern such as data/*/")
    options = dict(given.get("options", {}))
    if given["format"] == "skytide":
        options |= {name: document.resolve(text) for name, text in options.items() if plain_name(name) in OUR_FILES}
    return Source(given["format"], paths, given.get("stream", False), given.get("schema"), options)


def _query(document: Document) -> tuple[Kind, Options]:
    known = kinds()
    choice = Field("kind", forms.TEXT, "what is asked", choices=tuple(known))
    table = document.data["query"]
    if isinstance(table, dict) and "kind" not in table:
        for near in difflib.get_close_matches("kind", table, n=1):
            raise document.problem(("query", near), "there is no such key", remedy="did you mean kind?")
        raise document.problem(("query", "kind"), "the key is missing", remedy=f"use {one_of(known)}")
    name = checked_value(document, ("query", "kind"), choice, table["kind"]) if isinstance(table, dict) else ""
    kind = known.get(name)
    query = checked(document, ("query",), [choice, *(kind.fields if kind else ())], whose=f" of the kind {name}")
    assert kind is not None, "a [query] that is no table is a complaint by now"
    query.pop("kind")
    kind.check(query, refuser(document, ("query",)))
    return kind, query


def _sinks(document: Document, kind: Kind, stream: bool) -> tuple[Target, Target | None, Target | None, Target | None]:
    given = checked(document, ("sink",), SINK)
    sink = _target(document, ("sink",), given)
    for key in ("dead_letters", "current", "feed"):
        if key in given and not kind.changes:
            raise document.problem(("sink", key), f"the kind {kind.name} has none", remedy="leave it out")
        if key in given and sink.format not in OUR_SINKS:
            reason = f"the format {sink.format} has none"
            raise document.problem(("sink", key), reason, remedy=f"use {one_of(OUR_SINKS)}")
    if kind.rounds and stream and sink.format not in OUR_SINKS:
        raise document.problem(
            ("sink", "format"),
            f"the kind {kind.name} does not write a stream in this format",
            value=sink.format,
            remedy=f"use {one_of(OUR_SINKS)}",
        )
    letters = given.get("dead_letters")
    dead_letters = None
    if isinstance(letters, str):
        dead_letters = replace(sink, path=document.resolve(letters))
    elif letters is not None:
        inner = {"format": sink.format, **checked(document, ("sink", "dead_letters"), DEAD_LETTERS)}
        dead_letters = _target(document, ("sink", "dead_letters"), inner)
    current, feed = (_beside(document, key, given) for key in ("current", "feed"))
    if kind.changes and stream:
        _try_sinks(document, {"options": sink, "dead_letters": dead_letters, "current": current, "feed": feed})
    return sink, dead_letters, current, feed


def _beside(document: Document, key: str, given: Options) -> Target | None:
    """What is written beside the changes, of a format that the key names."""
    if key not in given:
        return None
    place = given[key]
    if isinstance(place, str):
        return Target(key, document.resolve(place))
    inner = checked(document, ("sink", key), BESIDE[key])
    return Target(key, document.resolve(inner["path"]), options=inner.get("options", {}))


def _try_sinks(document: Document, targets: dict[str, Target | None]) -> None:
    """Make the sinks of a stream once, to see whether their options are right."""
    for key, target in targets.items():
        if target is None or target.format not in (*OUR_SINKS, *BESIDE):
            continue
        try:
            target.sink()
        except SkytideError as problem:
            raise document.about(("sink", key), problem) from None


def _target(document: Document, way: tuple[str, ...], given: Options) -> Target:
    path = document.resolve(given["path"]) if "path" in given else None
    if given["format"] in FILE_FORMATS and path is None and "path" not in given.get("options", {}):
        raise document.problem((*way, "path"), "the key is missing", remedy="say where the results go")
    return Target(given["format"], path, given.get("mode", "error"), given.get("options", {}))


def _run(document: Document) -> Run:
    given = checked(document, ("run",), RUN)
    settings = dict(given.pop("spark", {}))
    if "spark" in document.data:
        settings = {**checked_value(document, ("spark",), RUN[-1], document.data["spark"]), **settings}
    if "master" in given and "remote" in given:
        raise document.problem(
            ("run", "remote"), "a job has either a master or a remote", remedy="leave one of them out"
        )
    if "checkpoint" in given:
        given["checkpoint"] = document.resolve(given["checkpoint"])
    named = {name if name.startswith("spark.") else f"spark.{name}": value for name, value in settings.items()}
    return Run(**given, spark=named)


def _check_stream(document: Document, kind: Kind, run: Run) -> None:
    if not kind.streams:
        others = one_of(name for name, one in kinds().items() if one.streams)
        raise document.problem(
            ("source", "stream"),
            f"the kind {kind.name} reads a whole table, not a stream",
            remedy=f"set it to false, or as kind use {others}",
        )
    if "until" in document.data["query"]:
        raise document.problem(
            ("query", "until"), "a stream has no end", remedy="leave it out, or set stream = false in [source]"
        )
    if run.checkpoint is None:
        raise document.problem(
            ("run", "checkpoint"), "the key is missing", remedy="a stream keeps its progress and state in this folder"
        )


def _folder_columns(paths: tuple[str, ...]) -> set[str]:
    """Columns that Spark takes from folder names such as `origin=JFK`."""
    found = set()
    for path in paths:
        here = Path(path)
        while here.is_dir():
            inner = next((one for one in sorted(here.iterdir()) if one.is_dir() and "=" in one.name), None)
            if inner is None:
                break
            found.add(inner.name.partition("=")[0])
            here = inner
    return found
