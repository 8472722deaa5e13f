"""The functions of a query over objects in fragments: what sites ship, and programs for the kernel.

After Papapetrou, Garofalakis, "Continuous Fragmented Skylines over Distributed Streams" (ICDE 2014, papa14). A function
speaks of averages over sites. The variance rides on averages too: a site ships x and x², f = mean(x²) - mean(x)².
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from skytide.errors import PreferenceError
from skytide.expressions import parse, text_of
from skytide.kernel.functions import Programs
from skytide.model import Floats
from skytide.protocols.fragmented.programs import Component, Program, turned


class Functions:
    """The functions of a query, those to be minimised first.

    >>> functions = Functions(["norm(a, b)"], ["var(b) / 2"])
    >>> functions.columns, functions.components
    (('a', 'b'), (('a', 1), ('b', 1), ('b', 2)))
    >>> functions.local(np.array([[1.0, 3.0]]))
    array([[1., 3., 9.]])
    >>> functions.minimize, functions.maximize
    (('norm(a, b)',), ('var(b) / 2.0',))
    """

    def __init__(
        self, minimize: Sequence[str] = (), maximize: Sequence[str] = (), columns: Collection[str] | None = None
    ) -> None:
        """From texts, as `skytide.expressions` reads them; with the data's columns, other columns are refused."""
        trees = [parse(text, columns) for text in (*minimize, *maximize)]
        if not trees:
            raise PreferenceError("a query needs at least one function", remedy="minimise or maximise an expression")
        texts = [text_of(tree) for tree in trees]
        for place, text in enumerate(texts):
            if text in texts[:place]:
                raise PreferenceError(
                    "is named more than once", value=text, remedy="minimise or maximise each expression once"
                )
        self.minimize, self.maximize = tuple(texts[: len(minimize)]), tuple(texts[len(minimize) :])
        """The same query in texts: `Functions(minimize, maximize)` is equal to this one anywhere."""
        components: dict[Component, int] = {}
        compiled = [Program(tree, components) for tree in trees]
        for text, program in zip(texts, compiled, strict=True):
            if program.constant:
                raise PreferenceError("speaks of no column", value=text, remedy="name a column of the data")
        self.components: tuple[Component, ...] = tuple(components)
        """What a site ships and the coordinator averages: columns (power 1) and their squares (power 2)."""
        self.columns = tuple(dict.fromkeys(name for name, _ in components))
        """The columns of the data that are used."""
        self.signs = np.array([1.0] * len(minimize) + [-1.0] * len(maximize))
        self.programs = _joined(compiled, self.signs, self.d)
        self._sources = np.array([self.columns.index(name) for name, _ in components])
        self._squares = np.array([power == 2 for _, power in components])

    def texts(self) -> dict[str, list[str]]:
        """The query as plain values, for storing."""
        return {"minimize": list(self.minimize), "maximize": list(self.maximize)}

    @classmethod
    def from_texts(cls, texts: Mapping[str, Any]) -> Functions:
        """The query that `texts` gave."""
        return cls(*([str(text) for text in texts[name]] for name in ("minimize", "maximize")))

    @property
    def d(self) -> int:
        """How many components a vector has."""
        return len(self.components)

    @property
    def k(self) -> int:
        """How many functions there are."""
        return len(self.signs)

    def local(self, values: Floats) -> Floats:
        """The components of local vectors, from a matrix with the columns of `columns`. O(n d)."""
        found = np.ascontiguousarray(np.asarray(values, np.float64)[:, self._sources])
        with np.errstate(over="ignore"):
            found[:, self._squares] *= found[:, self._squares]
        return found


def _joined(compiled: Sequence[Program], signs: Floats, d: int) -> Programs:
    start = np.cumsum([0, *(len(program.nodes) for program in compiled)])
    nodes = np.concatenate([program.placed(int(first)) for program, first in zip(compiled, start[:-1], strict=True)])
    coefficients, sizes = np.zeros((len(compiled), d + 1)), np.zeros((len(compiled), d + 1))
    for k, program in enumerate(compiled):
        if program.linear:
            for place, value in program.linear[0].items():
                coefficients[k, place] = signs[k] * value
            for place, value in program.linear[1].items():
                sizes[k, place] = value
    return Programs(
        nodes=nodes,
        constants=np.concatenate([np.array(program.constants) for program in compiled]),
        ranges=np.ascontiguousarray(np.concatenate([program.ranges for program in compiled])),
        start=start.astype(np.int64),
        shape=np.array([p.shape if s > 0 else turned(p.shape) for p, s in zip(compiled, signs, strict=True)], np.int64),
        sign=signs,
        form=np.array([program.form for program in compiled], np.int64),
        coefficients=coefficients,
        sizes=sizes,
        scratch=np.zeros((len(nodes), 3)),
    )
