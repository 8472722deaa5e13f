"""A pipeline file as it was read, and complaints about it that name the line, the table and the key."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skytide.errors import InputError, OptionError, SkytideError
from skytide.spark.pipeline.places import Path as Way
from skytide.spark.pipeline.places import lines_of

_LARGEST = 1 << 20
_PLACE = re.compile(r"^(?P<what>.*) \(at (?:line (?P<line>\d+), column \d+|end of document)\)$", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


class PipelineError(OptionError):
    """A pipeline file asks for something that cannot be, at a place in the file.

    >>> raise PipelineError("is not a duration", file="p.toml", line=7, way=("query", "duration"), value="2x",
    ...                     remedy="write 90s, 15m, 2h or 1d")
    Traceback (most recent call last):
    ...
    skytide.spark.pipeline.document.PipelineError: p.toml, line 7: [query] duration: '2x' is not a duration;
        write 90s, 15m, 2h or 1d
    """

    def __init__(
        self, reason: str, *, file: str, line: int | None, way: Way = (), value: Any = None, remedy: str = ""
    ) -> None:
        super().__init__(reason, value=value, remedy=remedy, file=file)
        self.line = line
        self.way = way

    def __str__(self) -> str:
        inner = OptionError(self.reason, value=self.value, remedy=self.remedy)
        line = "" if self.line is None else f", line {self.line}"
        names = [str(name) for name in self.way if isinstance(name, str)]
        table = f" [{names[0]}]" if names else ""
        key = " " + ".".join(names[1:]) if names[1:] else ""
        return f"{self.file}{line}:{table}{key}{':' if names else ''} {inner}"


@dataclass(frozen=True)
class Document:
    """The values of a pipeline file, and where they stand in it."""

    file: Path
    label: str
    data: dict[str, Any]
    lines: dict[Way, int]

    @classmethod
    def read(cls, path: str | Path) -> Document:
        """The file as TOML, or an error that names the line where it is not."""
        file, label = Path(path), str(path)
        if file.is_dir():
            raise InputError("is a folder", file=label, remedy="give a pipeline file, such as pipeline.toml")
        try:
            with file.open("rb") as stream:
                raw = stream.read(_LARGEST + 1)
        except OSError as problem:
            raise InputError(problem.strerror or "it cannot be read", file=label) from None
        if len(raw) > _LARGEST:
            raise InputError("is larger than 1 MiB", file=label, remedy="give a pipeline file, not data")
        return cls.parse(raw, file, label)

    @classmethod
    def parse(cls, raw: bytes, file: Path, label: str) -> Document:
        """The same for bytes that were read already."""
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as problem:
            line = raw.count(b"\n", 0, problem.start) + 1
            raise PipelineError("the text is not UTF-8", file=label, line=line, remedy="save it as UTF-8") from None
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            found = _PLACE.match(str(problem))
            line = int(found["line"]) if found and found["line"] else text.count("\n") + 1
            what = found["what"] if found else str(problem)
            raise PipelineError(f"this is not TOML: {what}", file=label, line=line) from None
        except RecursionError:
            raise PipelineError("tables or arrays are nested too deeply", file=label, line=None) from None
        return cls(file, label, data, lines_of(text))

    def problem(self, way: Way, reason: str, *, value: Any = None, remedy: str = "") -> PipelineError:
        """A complaint about a key, or about one that is missing: then the line is that of its table."""
        known = way
        while known and known not in self.lines:
            known = known[:-1]
        line = self.lines.get(known)
        return PipelineError(reason, file=self.label, line=line, way=way, value=value, remedy=remedy)

    def about(self, way: Way, problem: SkytideError) -> PipelineError:
        """The complaint of another part, at its place in the file."""
        if isinstance(problem, PipelineError):
            return problem
        column = "" if problem.column is None else f"column {problem.column!r}: "
        return self.problem(way, column + problem.reason, value=problem.value, remedy=problem.remedy)

    def resolve(self, path: str) -> str:
        """A path of the file: relative ones are relative to the file; addresses like s3a://... stay as they are."""
        if _SCHEME.match(path) or Path(path).is_absolute():
            return path
        return str(Path(self.file).absolute().parent / path)


def is_local(path: str) -> bool:
    """Whether a path, resolved, is one of this machine's file system.

    >>> is_local("/data/x"), is_local("s3a://bucket/x"), is_local("file:/data")
    (True, False, False)
    """
    return _SCHEME.match(path) is None
