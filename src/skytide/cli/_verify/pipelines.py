"""A pipeline of `skytide run` over files: it is run once into a folder of its own, and what it writes is compared.

The rows that the query gets are read by the same Spark, as a table, after [prepare]. An object or row is known by its
id and its group, as it is on Spark. The user's sink and checkpoint are not touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from skytide.cli._verify.comparing import Disagreement, Pace, Stream, compare
from skytide.cli._verify.populations import CountedByGroup, Fragments, Living, Population, Updates
from skytide.cli._verify.resting import skyline_places
from skytide.cli._verify.rows import Question, Rows, read_rows
from skytide.cli._verify.runs import SAMPLING, baseless, stream_of
from skytide.cli._verify.spark_rows import WHO, Closing, SparkRows, sorted_out, who
from skytide.cli._verify.verifying import POPULATIONS, Result
from skytide.errors import InputError, OptionError, SkytideError
from skytide.expressions import columns_of, parse
from skytide.reference.frequent import exact
from skytide.reference.sampling import Sampled
from skytide.reference.snapshots import OPERATIONS
from skytide.spark.pipeline.document import Document
from skytide.spark.pipeline.faults import RunFailedError, failures
from skytide.spark.pipeline.plan import FILE_FORMATS, ONCE, Pipeline, Target
from skytide.spark.pipeline.reading import read
from skytide.spark.pipeline.running import run
from skytide.spark.pipeline.session import start
from skytide.streams.files import csv_bytes, open_data, write_table

_DEFAULTS = {"epsilon": 0.2, "delta": 0.1, "seed": 1}


def pipeline_results(
    path: str, pace: Pace, watch: Callable[[float], None], say: Callable[[str], None]
) -> list[Result] | int:
    """Run a pipeline and compare what it writes; what cannot be compared is refused before it runs.

    Of a run that was stopped nothing is compared: the exit status that says so comes instead.
    """
    plan = Pipeline.of(Document.read(path))
    _check(plan)
    with TemporaryDirectory(prefix="skytide-verify-") as folder:
        plan = _redirected(plan, Path(folder))
        spark, started = start(plan.run)
        try:
            checked = _Checked(plan, _read(spark, plan), Path(folder))
            try:
                status = run(plan, say)
            except RunFailedError as failure:
                return [checked.failed(Disagreement(f"fails: {failure}"))]
            except SkytideError as refusal:
                finding = baseless(refusal, checked.unusable)
                if finding is None:
                    raise
                return [checked.failed(finding)]
        finally:
            if started:
                spark.stop()
        return status or [checked.result(pace, watch)]


def _read(spark: Any, plan: Pipeline) -> pa.Table:
    """The rows that the query gets, as a table."""
    try:
        with failures():
            return read(spark, replace(plan, source=replace(plan.source, stream=False))).toArrow()
    except RunFailedError as failure:
        raise InputError(f"the rows cannot be read: {failure}", file=next(iter(plan.source.paths), None)) from None


def _refuse(reason: str, value: Any, remedy: str) -> OptionError:
    return OptionError(reason, value=value, remedy=remedy)


def _check(plan: Pipeline) -> None:
    if plan.source.format not in FILE_FORMATS or plan.run.remote is not None:
        raise _refuse(
            "is not a source of files on this machine", plan.source.format, "verify the same query over files"
        )
    if plan.query.get("emit") == "net":
        raise _refuse("cannot be compared instant by instant", "emit = net", "leave emit out")
    if plan.query.get("by") and ("count" in plan.query or plan.kind.name == "monitor"):
        raise _refuse("cannot be compared with `by`", plan.kind.name, "verify it without `by`")
    if plan.query.get("op", "set") not in OPERATIONS:
        raise _refuse("is a column of operations, which cannot be compared", plan.query["op"], "name one operation")


def _redirected(plan: Pipeline, folder: Path) -> Pipeline:
    """The same pipeline with results, dead letters and progress in a folder of ours."""
    letters = Target("parquet", str(folder / "letters")) if plan.kind.changes else None
    run_once = replace(plan.run, trigger=ONCE if plan.source.stream else None, checkpoint=str(folder / "checkpoint"))
    sink = Target("parquet", str(folder / "told"))
    return replace(plan, sink=sink, dead_letters=letters, current=None, feed=None, run=run_once)


def _question(plan: Pipeline, names: list[str]) -> Question:
    query, kind = plan.query, plan.kind.name
    least, most = tuple(query.get("min", ())), tuple(query.get("max", ()))
    columns = (*least, *most)
    if kind == "fragments":
        trees = [parse(text, names) for text in columns]
        columns = tuple(dict.fromkeys(name for tree in trees for name in columns_of(tree)))
    texts = {name: None if query.get(name) is None else str(query[name]) for name in ("duration", "lateness", "until")}
    lonely = kind == "skyline"
    options = {
        "minimize": least,
        "maximize": most,
        "by": tuple(query.get("by", ())),
        "nulls": query.get("nulls", "error" if lonely else "drop"),
        "id_column": None if lonely else WHO,
        "time_column": query.get("time"),
        "site_column": query.get("site"),
        "count": query.get("count"),
        "prob": query.get("prob"),
        "thresholds": tuple(query.get("threshold", ())),
        "op": query.get("op", "set"),
        "top": None,
        "known": names,
        **texts,
    }
    if "count" in query:
        options |= {"time_column": None}
    return Question({"frequent": "snapshots"}.get(kind, kind), options, columns)


class _Checked:
    """A pipeline, the rows that its query must take, and what follows from them."""

    def __init__(self, plan: Pipeline, table: pa.Table, folder: Path) -> None:
        self._plan, self._folder = plan, folder
        self._question = _question(plan, table.column_names)
        self._total = table.num_rows
        self._given = sorted_out(table, plan, self._question)
        self._rows = _taken(self._question, self._given, folder / "rows.parquet")
        self._closing = Closing(plan, self._question, self._rows, self._given.table)
        self.unusable = self._given.unusable or self._rows.unusable or self._unusable()
        """Why the rows must be refused, if they must."""

    def _unusable(self) -> str:
        """Which of two rows that live at one time with one id is left out, nothing says: that is not compared."""
        if self._plan.kind.name == "skyline":
            return ""
        found = self._population(None)
        reason = found.unusable()
        if reason and isinstance(found, Living):
            name = self._plan.query["id"]
            raise _refuse("names two rows that live at the same time", name, "give each row its own id")
        return reason

    def failed(self, finding: Disagreement) -> Result:
        """The result where nothing was compared."""
        what = "changes" if self._plan.kind.changes else "skyline"
        return Result({"pipeline": self._plan.kind.name}, what, self._total, 0, 0, finding)

    def result(self, pace: Pace, watch: Callable[[float], None]) -> Result:
        """What the pipeline wrote, compared."""
        plan, rows, total = self._plan, self._rows, self._total
        choice = {"pipeline": plan.kind.name}
        if self.unusable:
            return self.failed(Disagreement(f"takes data that cannot be used: {self.unusable}"))
        told = self._told()
        if not plan.kind.changes:
            wrong = _lines_wrong(self._given.table.take(pa.array(skyline_places(self._question, rows))), told)
            return Result(choice, "skyline", total, 1, 1, wrong)
        letters = _letters(self._folder / "letters")
        late = letters.count("late")
        if late > self._closing.could_be_late():
            reason = f"{late} row(s) are said to be late, but not so many are behind by more than the lateness"
            return self.failed(Disagreement(reason))
        if late:
            skipped = f"{late} row(s) came too late; allow more lateness"
            return Result(choice, "changes", total, 0, 0, skipped=skipped)
        stream = _sorted(stream_of(told, rows.unit))
        inner = self._population(stream.times.max() if len(stream) else None)
        population = self._counted(inner)
        found = compare(population, [stream], pace, watch)
        finding = found.findings[0] or self._bad_wrong(inner, letters.count("bad"))
        if finding is not None and finding.time is not None:
            finding = replace(finding, time=rows.unit.shown(finding.time))
        what = "changes" if population is inner else "frequent"
        return Result(choice, what, total, found.instants, found.checked, finding)

    def _told(self) -> pa.Table:
        """What the pipeline wrote, with names of ids and groups; a stream without changes has written nothing."""
        query, folder = self._plan.query, self._folder / "told"
        if not folder.exists():
            time = pa.int64() if "count" in query else self._given.table.schema.field(query["time"]).type
            fields = [("time", time), ("change", pa.string()), ("id", pa.string())]
            fields += [("threshold", pa.float64())] if "threshold" in query else []
            return pa.schema(fields).empty_table()
        told = pq.read_table(folder)
        if not self._plan.kind.changes or not told.num_rows:
            return told
        return told.set_column(told.column_names.index("id"), "id", who(told, self._plan, "id"))

    def _population(self, last: Any) -> Living | Updates | Fragments:
        """What the query is about, as far as it is closed: a stream that ends closes nothing of its own accord."""
        population = POPULATIONS[self._question.kind](self._question, self._rows)
        if self._plan.source.stream:
            population.instants = population.instants[self._closing.closed(population.instants, last)]
        return population

    def _counted(self, population: Living | Updates | Fragments) -> Population:
        """Who is in enough skylines, where the query asks for that."""
        query = self._plan.query
        approximate = query.get("method") in SAMPLING
        if "theta" not in query and not approximate:
            return population
        assert isinstance(population, Updates)
        given = {**_DEFAULTS, **query}
        theta, over = exact(str(query.get("theta", 1))), query.get("over", 1)
        settings = {name: given[name] for name in _DEFAULTS}
        sampled = Sampled(theta, over, **settings) if approximate else None
        return CountedByGroup(population, theta, over, sampled)

    def _bad_wrong(self, population: Living | Updates | Fragments, told: int) -> Disagreement | None:
        """Whether as many rows were left out as must be."""
        due = self._given.bad + len(self._rows.bad)
        due += len(population.spoiled) if isinstance(population, Updates) else 0
        if told == due:
            return None
        return Disagreement(f"{told} row(s) were left out for what they lack, but {due} are due")


def _taken(question: Question, given: SparkRows, file: Path) -> Rows:
    """The rows of a file as the definitions need them."""
    write_table(str(file), given.table)
    with open_data(str(file)) as source:
        return read_rows(question, source)


def _sorted(stream: Stream) -> Stream:
    """Changes in the order of a change stream: what a distributed run writes has none."""
    first = [one[0] if isinstance(one, tuple) else one for one in stream.members]
    level = [one[1] if isinstance(one, tuple) else 0.0 for one in stream.members]
    order = sorted(range(len(first)), key=lambda at: (stream.times[at], stream.signs[at], str(first[at]), level[at]))
    return Stream(stream.times[order], stream.signs[order], [stream.members[at] for at in order])


def _letters(folder: Path) -> list[str]:
    """Why rows were not taken, row by row: `late`, or `bad`."""
    if not folder.exists():
        return []
    return list(pq.read_table(folder).column("kind").to_pylist())


def _lines_wrong(expected: pa.Table, told: pa.Table) -> Disagreement | None:
    right = sorted(csv_bytes(expected).decode().splitlines()[1:])
    given = sorted(csv_bytes(told.select(expected.column_names)).decode().splitlines()[1:])
    if right == given:
        return None
    missing, wrong = sorted(set(right) - set(given)), sorted(set(given) - set(right))
    return Disagreement("the answer is another one", missing=missing, wrong=wrong)
