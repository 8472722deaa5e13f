"""What readers are told of objects is what sites have told: by real sites, through real sockets."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skytide.protocols.network.query import Query
from skytide.reference.batch import skyline
from skytide.runtime.network import objects as module
from skytide.runtime.network.site import Site
from tests.runtime.network.coordinating import Coordinated, coordinated


def known(world: Coordinated, path: str = "/objects?all=1") -> dict[str, Any]:
    """What the coordinator says, objects by their ids."""
    found: dict[str, Any] = json.loads(world.read(path))
    return {**found, "objects": {one["id"]: one for one in found["objects"]}}


@pytest.mark.parametrize("method", ["naive", "filter"])
def test_values_are_those_that_were_told_and_lie_in_their_boxes(tmp_path: Path, method: str) -> None:
    options: dict[str, Any] = {"min": ("a",), "max": ("b",), "method": method, "honest": False}
    chance, now = random.Random(7), dict[int, tuple[float, float]]()
    with coordinated(tmp_path, **options) as world:
        with Site(world.url, "one") as site:
            for step in range(60):
                one = chance.randrange(8)
                now[one] = (chance.randrange(20) - 8.0, chance.randrange(20) - 8.0)
                site.put(one, now[one])
                site.flush()
                if step % 10 == 9:
                    told, best = known(world), skyline([(a, -b) for a, b in now.values()])
                    inside = {one for one, row in told["objects"].items() if row["inside"]}
                    assert inside == {list(now)[place] for place in best} == set(known(world, "/objects")["objects"])
                    assert told["objects"].keys() == now.keys() and told["count"] == len(now)
                    for one, row in told["objects"].items():
                        if method == "naive":
                            assert row.keys() == {"id", "inside", "values"} and tuple(row["values"]) == now[one]
                        else:
                            ends = zip(row["low"], row["high"], strict=True)
                            for (low, high), value, true in zip(ends, row["values"], now[one], strict=True):
                                assert float(low) <= value <= float(high) and float(low) <= true <= float(high)
            site.finish()
        before = known(world)
        assert before["query"] == {"protocol": "filtering", "method": method, "min": ["a"], "max": ["b"]}
    with coordinated(tmp_path, **options) as world:
        assert known(world)["objects"] == before["objects"]


@pytest.mark.parametrize("method", ["central", "auto"])
def test_objects_in_fragments_have_the_functions_of_what_sites_told(tmp_path: Path, method: str) -> None:
    query: dict[str, Any] = {"min": ("a",), "max": ("var(b)",), "protocol": "fragmented", "method": method}
    with coordinated(tmp_path, honest=False, **query) as world:
        for name, rows in (("n", {"x": (1, 2), "y": (7, 5)}), ("s", {"x": (4, 6)})):
            with Site(world.url, name) as site:
                for one, values in rows.items():
                    site.put(one, values)
                site.finish()
        told = known(world)["objects"]
        assert {one: row["values"] for one, row in told.items()} == {"x": [2.5, 4.0], "y": [7.0, 0.0]}
        assert [one for one, row in told.items() if row["inside"]] == ["x"]


def test_infinities_are_named_what_is_missing_is_null_and_others_are_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_OTHERS", 10)
    with coordinated(tmp_path, honest=False, max=("b",), nulls="worst") as world:
        with Site(world.url, "one") as site:
            site.put("best", (-math.inf, math.inf))
            for number in range(25):
                site.put(number, (math.nan, number))
            site.finish()
        told = known(world)
        assert told["objects"]["best"]["values"] == ["-Infinity", "Infinity"]
        assert told["count"] == 26 and len(told["objects"]) == 10
        assert told["objects"][3]["values"] == [None, 3.0] and not told["objects"][3]["inside"]


def test_rows_are_what_points_were_made_of() -> None:
    values = np.array([[1.5, -2.0], [np.nan, np.inf], [1.7976931348623157e308, -1.7976931348623157e308]])
    for nulls in ("drop", "worst"):
        query = Query("filtering", ("a",), ("b",), nulls=nulls)
        np.testing.assert_array_equal(query.rows(query.vectors(values)), values)
