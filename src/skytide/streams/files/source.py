"""DATA as one thing to read: a file, a folder of files in the order of their names, or standard input."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from skytide.errors import InputError
from skytide.model import Column, Integers
from skytide.streams.files.from_csv import CsvFile
from skytide.streams.files.from_jsonl import JsonlFile, Kinds, Watch
from skytide.streams.files.from_parquet import ParquetFile
from skytide.streams.files.values import TypeGuess

CHUNK_ROWS = 2**18
"""Rows of a chunk, about: memory is bounded by it, and the cost of a call on a chunk is small beside its work."""
EXTENSIONS = (".csv", ".parquet", ".jsonl")
STANDARD_INPUT = "standard input"

File = CsvFile | ParquetFile | JsonlFile


@dataclass(frozen=True)
class Chunk:
    """Some rows of one file. `first` is the first one's number in the file, `start` how many rows of DATA came before.

    `done` is the share of DATA read so far, `verbatim` says that text columns hold what a CSV file says.
    """

    table: pa.Table
    file: str
    first: int
    start: int
    done: float
    verbatim: bool


class Source:
    """DATA, opened: its columns are known and its files fit together; the rows are read as they are asked for.

    Without `typed`, CSV values are text; with it they have the narrowest type that holds for all rows, except in the
    columns `text`. A folder that holds CSV and other files is typed. Types take a look at all rows, and so do JSON
    lines: `watch` is told the share that was looked at.
    """

    def __init__(
        self,
        path: str,
        *,
        typed: bool = False,
        text: Sequence[str] = (),
        stdin: BinaryIO | None = None,
        watch: Watch = lambda share: None,
    ) -> None:
        self._watch = watch
        self.label = STANDARD_INPUT if path == "-" else path
        self.skipped: list[str] = []
        self._spool = _spooled(stdin or sys.stdin.buffer) if path == "-" else None
        try:
            self._files = [CsvFile(self._spool, STANDARD_INPUT)] if self._spool else self._open(Path(path))
            self._check_columns()
            formats = {type(file) for file in self._files}
            self._typed = CsvFile in formats and (typed or len(formats) > 1)
            self.verbatim = CsvFile in formats and not self._typed
            self._guess = self._types(tuple(text)) if self._typed else None
            self.schema = self._schema()
        except BaseException:
            self.close()
            raise
        self.names = list(self.schema.names)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove what was kept of standard input."""
        if self._spool is not None:
            self._spool.unlink(missing_ok=True)

    # -- opening -------------------------------------------------------------------------------------------------------

    def _open(self, path: Path) -> list[File]:
        kinds = Kinds()
        if not path.exists():
            raise InputError("there is no such file or folder", file=str(path), remedy="check the path")
        if not path.is_dir():
            return [_open_file(path, kinds, self._watch)]
        entries = sorted((entry for entry in path.iterdir() if not entry.name.startswith((".", "_"))), key=_by_name)
        usable = [entry for entry in entries if entry.is_file() and entry.suffix.lower() in EXTENSIONS]
        self.skipped = [str(entry) for entry in entries if entry not in usable]
        if not usable:
            raise InputError("the folder has no .csv, .parquet or .jsonl file", file=str(path), remedy="check the path")
        return [_open_file(entry, kinds, self._part(place, len(usable))) for place, entry in enumerate(usable)]

    def _part(self, place: int, count: int) -> Watch:
        """Is told the share of one of several files."""
        return lambda share: self._watch((place + share) / count)

    def _check_columns(self) -> None:
        first = self._files[0]
        for file in self._files:
            for name, times in Counter(file.names).items():
                if times > 1:
                    raise InputError(
                        f"there are {times} columns of this name", file=file.label, column=name, remedy="rename them"
                    )
            if set(file.names) != set(first.names):
                odd = sorted(set(file.names) ^ set(first.names))[0]
                where = "only here" if odd in file.names else f"not here but in {first.label}"
                raise InputError(
                    f"the files of the folder have different columns: this one is {where}",
                    file=file.label,
                    column=odd,
                    remedy="give files with the same columns",
                )

    def _types(self, text: tuple[str, ...]) -> TypeGuess:
        guess = TypeGuess(self._files[0].names, text)
        for place, file in enumerate(self._files):
            if isinstance(file, CsvFile):
                watch = self._part(place, len(self._files))
                for table, done in file.batches():
                    guess.see(table)
                    watch(done)
        return guess

    def _schema_of(self, file: File) -> pa.Schema:
        schema = file.schema
        if self._guess is not None and isinstance(file, CsvFile):
            schema = pa.schema([(name, self._guess.type_of(name)) for name in file.names])
        return pa.schema([schema.field(name) for name in self._files[0].names])

    def _schema(self) -> pa.Schema:
        schema = self._schema_of(self._files[0])
        for file in self._files[1:]:
            other = self._schema_of(file)
            try:
                schema = pa.unify_schemas([schema, other], promote_options="permissive")
            except pa.ArrowException:
                odd = next(name for name in schema.names if not _unify(schema.field(name), other.field(name)))
                raise InputError(
                    f"the column holds {other.field(odd).type} here and {schema.field(odd).type} in the files before",
                    file=file.label,
                    column=odd,
                    remedy="give files with the same types",
                ) from None
        return schema

    def _parquet_files(self) -> list[ParquetFile]:
        return [file for file in self._files if isinstance(file, ParquetFile)]

    @property
    def seekable(self) -> bool:
        """Whether `take` reads little more than the rows it gives: so it is with Parquet."""
        return len(self._parquet_files()) == len(self._files)

    def sample_text(self, column: str) -> str | None:
        """How the first value of a column is written, where DATA is CSV."""
        for file in self._files:
            if isinstance(file, CsvFile):
                for table, _ in file.batches([column]):
                    for value in table.column(column):
                        if value.is_valid:
                            return str(value.as_py())
        return None

    # -- reading -------------------------------------------------------------------------------------------------------

    def check_names(self, names: Sequence[Column]) -> None:
        """An error that names the first column that DATA does not have."""
        for name in names:
            if name not in self.names:
                known = ", ".join(self.names[:12]) + (", ..." if len(self.names) > 12 else "")
                raise InputError(
                    "there is no such column", file=self.label, column=name, remedy=f"choose one of: {known}"
                )

    def chunks(self, columns: Sequence[str] | None = None, *, rows: int = CHUNK_ROWS) -> Iterator[Chunk]:
        """All rows in input order, all columns or those named, `rows` at a time; a chunk lies in one file."""
        if columns is not None:
            self.check_names(columns)
        names = self.names if columns is None else list(columns)
        total = sum(file.size for file in self._files)
        before = start = 0
        for file in self._files:
            first = 1
            for table, share in _sized(file.batches(names), rows):
                typed = self._cast(file, table.select(names), first)
                done = (before + share * file.size) / total
                yield Chunk(typed, file.label, first, start, done, isinstance(file, CsvFile))
                first += table.num_rows
                start += table.num_rows
            before += file.size

    def _cast(self, file: File, table: pa.Table, first: int) -> pa.Table:
        if self._guess is not None and isinstance(file, CsvFile):
            table = self._guess.cast(table)
        schema = pa.schema([self.schema.field(name) for name in table.column_names])
        try:
            return table.cast(schema)
        except pa.ArrowException as error:
            raise InputError(
                f"the values do not fit the type that the files have together: {error}", file=file.label, row=first
            ) from None

    def take(self, rows: Integers) -> pa.Table:
        """All columns of the rows at these positions of DATA, counted from 0, which must ascend."""
        parts = [self.schema.empty_table()]
        if self.seekable:
            start = 0
            for file in self._parquet_files():
                stop = start + file.rows
                inside = rows[(rows >= start) & (rows < stop)] - start
                parts.append(self._cast(file, file.take(inside).select(self.names), 1))
                start = stop
            return pa.concat_tables(parts)
        for chunk in self.chunks():
            stop = chunk.start + chunk.table.num_rows
            inside = rows[(rows >= chunk.start) & (rows < stop)] - chunk.start
            if len(inside):
                mask = np.zeros(chunk.table.num_rows, dtype=bool)
                mask[inside] = True
                parts.append(chunk.table.filter(pa.array(mask)))
        return pa.concat_tables(parts)


def open_data(
    path: str,
    *,
    typed: bool = False,
    text: Sequence[str] = (),
    stdin: BinaryIO | None = None,
    watch: Watch = lambda share: None,
) -> Source:
    """DATA of the command line: a file, a folder, or `-` for CSV on standard input. See `Source`."""
    try:
        return Source(path, typed=typed, text=text, stdin=stdin, watch=watch)
    except OSError as error:
        raise InputError(
            f"the file cannot be read: {error.strerror or error}", file=str(error.filename or path)
        ) from None


def _by_name(path: Path) -> str:
    return path.name


def _open_file(path: Path, kinds: Kinds, watch: Watch) -> File:
    extension = path.suffix.lower()
    if extension == ".csv":
        return CsvFile(path, str(path))
    if extension == ".parquet":
        return ParquetFile(path, str(path))
    if extension == ".jsonl":
        return JsonlFile(path, str(path), kinds, watch)
    raise InputError(
        "the file's extension is not known", file=str(path), remedy="give a .csv, .parquet or .jsonl file, or a folder"
    )


def _spooled(stream: BinaryIO) -> Path:
    """Standard input as a file: it can be read twice, and an error in it can be looked for."""
    with tempfile.NamedTemporaryFile(prefix="skytide-", suffix=".csv", delete=False) as file:
        shutil.copyfileobj(stream, file, 2**20)
        return Path(file.name)


def _sized(batches: Iterator[tuple[pa.Table, float]], rows: int) -> Iterator[tuple[pa.Table, float]]:
    """The same rows in tables of `rows` rows; the last may be shorter."""
    pending: list[pa.Table] = []
    count = 0
    share = 0.0
    for table, share in batches:
        pending.append(table)
        count += table.num_rows
        if count < rows:
            continue
        whole = pa.concat_tables(pending)
        for start in range(0, count - rows + 1, rows):
            yield whole.slice(start, rows), share
        rest = count % rows
        pending, count = ([whole.slice(count - rest)] if rest else []), rest
    if count:
        yield pa.concat_tables(pending), share


def _unify(one: pa.Field, other: pa.Field) -> bool:
    try:
        pa.unify_schemas([pa.schema([one]), pa.schema([other])], promote_options="permissive")
    except pa.ArrowException:
        return False
    return True
