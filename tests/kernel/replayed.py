"""The sites' sides of both protocols, played again from recorded input: in this process, or in one without numba.

As a program it refuses to load what a site must not need, reads a recording from each line of its input, and writes
what was said, and what is kept in the end, to a line of its output. The first line that it writes has the modules that
it has loaded.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

REFUSED = ("numba", "llvmlite", "pyarrow", "pandas", "pyspark", "starlette", "uvicorn")


class Refusal:
    """Finds no module that is refused."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in REFUSED:
            raise ImportError(f"{name} is refused")


def main() -> None:
    if "--refuse" in sys.argv:
        sys.meta_path.insert(0, Refusal())
    import warnings

    warnings.simplefilter("error")
    sys.path[:] = [folder for folder in sys.path if not folder.endswith("kernel")]  # that of this file
    play({"protocol": "fragmented", "minimize": ["a"], "maximize": [], "paired": False, "steps": []})
    play({"protocol": "filtering", "dimensions": 1, "steps": []})
    print(json.dumps(sorted(sys.modules)), flush=True)
    for line in sys.stdin:
        try:
            found = play(json.loads(line))
        except Exception as error:  # the caller has another answer to compare with
            found = repr(error)
        print(json.dumps(found), flush=True)


def play(recording: dict[str, Any]) -> Any:
    """All that is said and kept, as texts."""
    return {"functions": _functions, "fragmented": _fragmented, "filtering": _filtering}[recording["protocol"]](
        recording
    )


def _functions(recording: dict[str, Any]) -> list[str]:
    import numpy as np

    from skytide.kernel.functions import bounds_of, values
    from skytide.protocols.fragmented.functions import Functions

    functions = Functions(recording["minimize"], recording["maximize"])
    e, u = (np.array(recording[name], float).reshape(-1, functions.d) for name in ("e", "u"))
    found = [*functions.programs, values(functions.programs, e)]
    found += [bounds_of(functions.programs, k, e, u) for k in range(functions.k)]
    return [_bits(array) for array in found]


def _bits(array: Any) -> str:
    """An array to the last bit; what is not a number is alike."""
    import numpy as np

    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.nan, array)
    return str(array.tobytes().hex())


def _fragmented(recording: dict[str, Any]) -> list[Any]:
    import numpy as np

    from skytide.protocols.fragmented.functions import Functions
    from skytide.protocols.fragmented.messages import decode, encode, merged
    from skytide.protocols.fragmented.site import SiteBlock

    functions = Functions(recording["minimize"], recording["maximize"])
    block, found = SiteBlock(functions, paired=recording["paired"]), list[Any]()
    for name, *step in recording["steps"]:
        row, said = 0, list[Any]()
        if name == "obey":
            said = block.obey(*merged([decode(bytes.fromhex(data)) for data in step[0]]))
        else:
            time, sites, objects, vectors, gone, start, weights = step
            numbers = np.array(sites, np.int64), np.array(objects, np.int64)
            moved = np.array(vectors, np.float64).reshape(-1, functions.d)
            counts = None if weights is None else np.array(weights, np.float64)
            if name == "join":
                said = block.join(time, *numbers, moved, counts)
            else:
                row, said = block.take(time, *numbers, moved, gone and np.array(gone, np.bool_), start, counts)
        found.append([row, _told(data for report in said for data in encode(report, functions.d, functions.k))])
    return [*found, SiteBlock.from_bytes(block.to_bytes()).to_bytes().hex()]


def _filtering(recording: dict[str, Any]) -> list[Any]:
    import numpy as np

    from skytide.protocols.filtering.client import ClientBlock
    from skytide.protocols.filtering.messages import decode, encode

    d = recording["dimensions"]
    block, found = ClientBlock(d), list[Any]()
    for name, *step in recording["steps"]:
        if name == "obey":
            block.obey(decode(bytes.fromhex(step[0])))  # type: ignore[arg-type]
        elif name == "answer":
            asked = decode(bytes.fromhex(step[0]))
            found.append(encode(block.answer(asked), d).hex())  # type: ignore[arg-type]
        elif name == "absorb":
            time, cuts, clients, points = step
            numbers = np.array(cuts, np.int64), np.array(clients, np.int64)
            found.append(block.absorb(time, *numbers, np.array(points, np.float64).reshape(-1, d)))
        else:
            time, clients, points, gone = step
            moved = np.array(points, np.float64).reshape(-1, d)
            said = block.observe(time, np.array(clients, np.int64), moved, np.array(gone, np.int64))
            found.append(_told(encode(message, d) for message in said))
    return [*found, ClientBlock.from_bytes(block.to_bytes()).to_bytes().hex()]


def _told(messages: Any) -> Sequence[str]:
    return [data.hex() for data in messages]


if __name__ == "__main__":
    main()
