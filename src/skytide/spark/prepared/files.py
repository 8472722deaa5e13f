"""DATA of prepared pipelines read from this machine's files, and their updates put in place there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from skytide.errors import InputError, OptionError
from skytide.spark.prepared.contract import Input, Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "json"}
PART = "part-"


def find_files(pipeline: Pipeline, data: str, others: Mapping[str, str]) -> dict[str, list[Path]]:
    """The files of each input: DATA for the first, the others as they are named, or else beside DATA.

    In a folder with files that are called as the pipeline expects, only these count; else all of the folder's do.
    """
    names = [one.name for one in pipeline.inputs[1:]]
    for name in others:
        if name not in names:
            what = f"choose one of: {', '.join(names)}" if names else f"{pipeline.name} reads DATA alone"
            raise OptionError("is not a table to read besides DATA", value=name, remedy=what)
    first = pipeline.inputs[0]
    found = {first.name: _files(Path(data), first, len(pipeline.inputs) > 1)}
    beside = Path(data) if Path(data).is_dir() else Path(data).parent
    for one in pipeline.inputs[1:]:
        if one.name in others:
            found[one.name] = _files(Path(others[one.name]), one, False)
            continue
        found[one.name] = _called(beside, one)
        if not found[one.name]:
            raise InputError(
                f"there is no file {one.files} with the {one.name}",
                file=str(beside),
                remedy=f"name it: --with {one.name}=FILE",
            )
    return found


def _files(path: Path, wanted: Input, called_only: bool) -> list[Path]:
    if not path.exists():
        raise InputError("there is no such file or folder", file=str(path), remedy="check the path")
    if path.is_dir():
        files = _called(path, wanted) or ([] if called_only else _usable(path.iterdir()))
    else:
        files = _usable([path])
    if not files:
        names = f" called {wanted.files}" if called_only and path.is_dir() else ""
        raise InputError(f"there is no .parquet, .csv or .jsonl file{names}", file=str(path), remedy="name one")
    kinds = {file.suffix.lower() for file in files}
    if len(kinds) > 1:
        raise InputError(
            f"the folder holds {' and '.join(sorted(kinds))} files", file=str(path), remedy="give files of one kind"
        )
    return files


def _called(folder: Path, wanted: Input) -> list[Path]:
    return _usable(folder.glob(wanted.files))


def _usable(paths: Iterator[Path] | list[Path]) -> list[Path]:
    hidden = (".", "_")
    return sorted(
        path for path in paths if path.is_file() and path.suffix.lower() in FORMATS and not path.name.startswith(hidden)
    )


def read_table(spark: SparkSession, files: list[Path], columns: Mapping[str, str]) -> DataFrame:
    """The rows of files of one kind; `columns` renames: the name that the pipeline knows, the name in the files."""
    kind = FORMATS[files[0].suffix.lower()]
    reader = spark.read.format(kind)
    if kind == "csv":
        reader = reader.options(header=True, inferSchema=True, enforceSchema=False, mode="FAILFAST")
    elif kind == "json":
        reader = reader.options(inferTimestamp=True, mode="FAILFAST")
    else:
        reader = reader.options(mergeSchema=len(files) > 1)
    table = reader.load([_literal(file) for file in files])
    renamed = {actual: known for known, actual in columns.items() if actual in table.columns}
    taken = set(renamed.values()) - set(renamed)
    table = table.toDF(
        *(renamed.get(name, f"{name} (in the files)" if name in taken else name) for name in table.columns)
    )
    if table.isEmpty():
        raise InputError("there are no rows", file=str(files[0]), remedy="check the path")
    return table


def check_columns(tables: Mapping[str, DataFrame], columns: Mapping[str, str]) -> None:
    """An error where a column that was to be renamed is in none of the tables."""
    for known, actual in columns.items():
        if not any(known in table.columns for table in tables.values()):
            names = ", ".join(name for table in tables.values() for name in table.columns[:12])
            raise InputError("there is no such column", column=actual, remedy=f"choose one of: {names}")


def _literal(path: Path) -> str:
    """A path that Spark does not take for a pattern."""
    return "".join(f"\\{mark}" if mark in "*?[]{}\\" else mark for mark in str(path.resolve()))


@contextmanager
def replaced(folder: Path, *, overwrite: bool, reads: list[Path]) -> Iterator[Path]:
    """A place to write to, which takes the folder's place when all went well and leaves nothing behind when not.

    An empty folder may be there before; one with updates only where it may be overwritten; no other ever.
    """
    _check_folder(folder, overwrite, reads)
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.resolve().parent))
    try:
        yield work / "new"
        _tidy(work / "new")
        if folder.exists():
            folder.rename(work / "old")
        (work / "new").rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _check_folder(folder: Path, overwrite: bool, reads: list[Path]) -> None:
    if not folder.resolve().parent.is_dir():
        raise InputError("there is no such folder to write to", file=str(folder.parent), remedy="make it first")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError("is there and is not a folder", file=str(folder), remedy="name another with -o")
    held = [entry for entry in folder.iterdir() if not entry.name.startswith((".", "_"))]
    if held and not overwrite:
        raise InputError("the folder is not empty", file=str(folder), remedy="name another, or use --overwrite")
    odd = [entry for entry in held if not (entry.name.startswith(PART) and entry.suffix == ".parquet")]
    if odd or any(folder.resolve() in read.resolve().parents for read in reads):
        what = f"the folder holds {odd[0].name}" if odd else "the folder holds DATA"
        raise InputError(f"{what}, which would be lost", file=str(folder), remedy="name another with -o")


def _tidy(folder: Path) -> None:
    """Parquet files alone, with plain names and with times of change in the order of their names.

    A stream that reads the folder takes the oldest file first.
    """
    parts = sorted(folder.glob(f"{PART}*.parquet"))
    for entry in folder.iterdir():
        if entry not in parts:
            entry.unlink()
    start = min(part.stat().st_mtime for part in parts) - len(parts)
    for number, part in enumerate(parts):
        plain = part.rename(folder / f"{PART}{number:05}.parquet")
        os.utime(plain, (start + number, start + number))
