"""A pipeline of `skytide run` over files: it is run once into a folder of its own, and what it writes is compared.

The rows that the query gets are read by the same Spark, as a table, after [prepare]. An object or row is known by its
id and its group, as it is on Spark. The user's sink and checkpoint are not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skytide.cli._verify.comparing import Disagreement, Pace, Stream, compare
from skytide.cli._verify.populations import Counted, Living, Population, Updates
from skytide.cli._verify.resting import skyline_places
from skytide.cli._verify.rows import Question, Rows, names_in, read_rows
from skytide.cli._verify.runs import SAMPLING, stream_of
from skytide.cli._verify.verifying import POPULATIONS, Result
from skytide.errors import OptionError
from skytide.expressions import columns_of, parse
from skytide.reference.frequent import exact
from skytide.reference.sampling import Sampled
from skytide.reference.snapshots import OPERATIONS
from skytide.spark.pipeline.document import Document
from skytide.spark.pipeline.plan import FILE_FORMATS, ONCE, Pipeline, Target
from skytide.spark.pipeline.reading import read
from skytide.spark.pipeline.running import run
from skytide.spark.pipeline.session import start
from skytide.streams.files import csv_bytes, open_data, write_table

_UPDATES = ("snapshots", "frequent", "monitor", "fragments")
_DEFAULTS = {"epsilon": 0.2, "delta": 0.1, "seed": 1}
_WHO = "who\N{SYMBOL FOR UNIT SEPARATOR}"
"""A column for the id together with the group."""


def pipeline_results(path: str, pace: Pace, watch: Callable[[float], None], say: Callable[[str], None]) -> list[Result]:
    """Run a pipeline and compare what it writes; what cannot be compared is refused before it runs."""
    plan = Pipeline.of(Document.read(path))
    _check(plan)
    with TemporaryDirectory(prefix="skytide-verify-") as folder:
        plan = _redirected(plan, Path(folder))
        spark, started = start(plan.run)
        try:
            table = _in_order(read(spark, replace(plan, source=replace(plan.source, stream=False))).toArrow(), plan)
            question = _question(plan, table.column_names)
            rows = _taken(plan, question, _named(table, plan), Path(folder) / "rows.parquet")
            run(plan, say)
        finally:
            if started:
                spark.stop()
        return [_result(plan, question, rows, table, Path(folder), pace, watch)]


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


def _in_order(table: pa.Table, plan: Pipeline) -> pa.Table:
    """Rows in the order in which the query takes them: time, then the column `order`; in count windows, the id."""
    query = plan.query
    if "time" not in query:
        return table
    keys = [query["time"]]
    keys += [query["order"]] if "order" in query else [query["id"]] if "count" in query else []
    table = table.take(pc.sort_indices(table, [(key, "ascending") for key in keys]))
    if plan.kind.name in _UPDATES:
        named = [query[key] for key in ("time", "id", "site", "order") if key in query] + list(query.get("by", ()))
        if table.group_by(named).aggregate([]).num_rows < table.num_rows:
            raise _refuse("has several rows at one time", query["id"], "name a column `order` that tells them apart")
    return table


def _named(table: pa.Table, plan: Pipeline) -> pa.Table:
    """The rows with a column that has the id together with the group."""
    if "id" not in plan.query:
        return table
    return table.append_column(_WHO, _who(table, plan, plan.query["id"]))


def _who(table: pa.Table, plan: Pipeline, column: str) -> pa.Array:
    names = names_in(table, column)
    by = [table.column(name).to_pylist() for name in plan.query.get("by", ())]
    return pa.array(["/".join(map(_part, one)) for one in zip(names, *by, strict=True)], pa.string())


def _part(value: Any) -> str:
    """A part of a name, so that no two lists of parts make one name."""
    return "\\N" if value is None else str(value).replace("\\", "\\\\").replace("/", "\\/")


def _taken(plan: Pipeline, question: Question, table: pa.Table, file: Path) -> Rows:
    """The rows that the query must take. Which of two that live at one time with one id is left out, nothing says."""
    write_table(str(file), table)
    with open_data(str(file)) as source:
        rows = read_rows(question, source)
    if plan.kind.name in ("window", "uncertain") and not rows.unusable:
        population = POPULATIONS[question.kind](question, rows)
        assert isinstance(population, Living)
        if population.repeated():
            raise _refuse("names two rows that live at the same time", plan.query["id"], "give each row its own id")
    return rows


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
        "id_column": None if lonely else _WHO,
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


def _result(
    plan: Pipeline,
    question: Question,
    rows: Rows,
    table: pa.Table,
    folder: Path,
    pace: Pace,
    watch: Callable[[float], None],
) -> Result:
    choice = {"pipeline": plan.kind.name}
    told = pq.read_table(folder / "told")
    if plan.kind.name == "skyline":
        wrong = _lines_wrong(table.take(pa.array(skyline_places(question, rows))), told)
        return Result(choice, "skyline", rows.total, 1, 1, wrong)
    letters = _letters(folder / "letters")
    late = letters.count("late")
    if late > _can_be_late(question, rows):
        wrong = Disagreement(f"{late} row(s) are said to be late, but not so many are behind by more than the lateness")
        return Result(choice, "changes", rows.total, 0, 0, wrong)
    if late:
        return Result(choice, "changes", rows.total, 0, 0, skipped=f"{late} row(s) came too late; allow more lateness")
    population = _population(plan, question, rows)
    if told.num_rows:
        told = told.set_column(told.column_names.index("id"), "id", _who(told, plan, "id"))
    found = compare(population, [_sorted(stream_of(told, rows.unit))], pace, watch)
    finding = found.findings[0] or _bad_wrong(rows, population, letters.count("bad"))
    if finding is not None and finding.time is not None:
        finding = replace(finding, time=rows.unit.shown(finding.time))
    what = "changes" if not isinstance(population, Counted) else "frequent"
    return Result(choice, what, rows.total, found.instants, found.checked, finding)


def _population(plan: Pipeline, question: Question, rows: Rows) -> Population:
    """What the query is about, as far as it is closed: a stream that ends closes nothing of its own accord."""
    population = POPULATIONS[question.kind](question, rows)
    if plan.source.stream and rows.times is not None and len(rows.times):
        closed = population.instants + rows.unit.length(question.length("lateness")) < rows.times.max()
        population.instants = population.instants[closed]
    query = plan.query
    approximate = query.get("method") in SAMPLING
    if "theta" not in query and not approximate:
        return population
    given = {**_DEFAULTS, **query}
    theta, over = exact(str(query.get("theta", 1))), query.get("over", 1)
    settings = {name: given[name] for name in _DEFAULTS}
    sampled = Sampled(theta, over, **settings) if approximate else None
    return Counted(population.instants, _skylines(population), theta, over, sampled)


def _skylines(population: Population) -> Iterator[set[Any]]:
    """The answers of all instants."""
    answers: dict[Any, set[Any]] = {}
    for number in range(len(population.instants)):
        answers |= {group: population.answer(group).must for group in population.step(number)}
        yield set().union(*answers.values())


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


def _can_be_late(question: Question, rows: Rows) -> int:
    """How many rows at most are late, in whatever order they were seen."""
    if rows.times is None or not len(rows.times):
        return 0
    return int((rows.times + rows.unit.length(question.length("lateness")) < rows.times.max()).sum())


def _bad_wrong(rows: Rows, population: Population, told: int) -> Disagreement | None:
    """Whether as many rows were left out as the missing-value policy asks for."""
    due = len(rows.bad) + (population.spoiled if isinstance(population, Updates) else 0)
    if told == due or isinstance(population, Counted):
        return None
    return Disagreement(f"{told} row(s) were left out for what they lack, but {due} are due")


def _lines_wrong(expected: pa.Table, told: pa.Table) -> Disagreement | None:
    right = sorted(csv_bytes(expected).decode().splitlines()[1:])
    given = sorted(csv_bytes(told.select(expected.column_names)).decode().splitlines()[1:])
    if right == given:
        return None
    missing, wrong = sorted(set(right) - set(given)), sorted(set(given) - set(right))
    return Disagreement("the answer is another one", missing=missing, wrong=wrong)
