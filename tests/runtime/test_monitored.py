"""Tables into the simulation: when a timestamp is over, which row counts, and what is not taken."""

from __future__ import annotations

import numpy as np
import pytest

from skytide.errors import IdError, InputError
from skytide.model import Preference
from skytide.runtime.monitored import Monitored


def test_a_timestamp_is_over_when_a_later_row_comes_or_time_is_let_pass() -> None:
    monitor = Monitored(Preference(minimize=["a"]))
    assert len(monitor.extend({"a": [1.0]}, times=[5], ids=["x"])) == 0
    assert [tuple(one) for one in monitor.extend({"a": [2.0]}, times=[6], ids=["y"])] == [(5, "+", "x")]
    assert len(monitor.extend({"a": [0.0]}, times=[6], ids=["y"])) == 0
    assert [tuple(one) for one in monitor.advance(6)] == [(6, "-", "x"), (6, "+", "y")]
    assert len(monitor.advance(7)) == 0 and monitor.latest == 7


def test_rows_of_a_timestamp_that_is_over_are_late() -> None:
    monitor = Monitored(Preference(minimize=["a"]))
    monitor.extend({"a": [1.0]}, times=[5], ids=["x"])
    monitor.advance(5)
    found = monitor.extend({"a": [1.0, 2.0, 3.0, 4.0]}, times=[5, 7, 6, 7], ids=["x", "y", "z", "z"])
    assert found.late.tolist() == [0, 2]


def test_of_several_rows_of_a_client_the_last_counts_also_when_it_goes_and_returns() -> None:
    monitor = Monitored(Preference(minimize=["a"]), "filter")
    rows = {"a": [1.0, np.nan, 3.0, 2.0, np.nan]}
    monitor.extend(rows, times=[1] * 5, ids=["x", "x", "x", "y", "z"])
    assert [tuple(one) for one in monitor.advance(1)] == [(1, "+", "y")]
    assert monitor.cost()["initial"]["uplink"] == 2


def test_groups_do_not_compete_and_clients_change_groups() -> None:
    monitor = Monitored(Preference(minimize=["a"], by=["g"]))
    first = monitor.extend({"a": [1.0, 2.0, 5.0], "g": ["p", "q", "q"]}, times=[1, 1, 1], ids=[1, 2, 3])
    assert len(first) == 0
    found = list(monitor.extend({"a": [5.0], "g": ["p"]}, times=[2], ids=[3])) + list(monitor.advance(2))
    assert [tuple(one) for one in found] == [(1, "+", 1), (1, "+", 2)]
    assert [tuple(one) for one in monitor.extend({"a": [9.0], "g": ["p"]}, times=[3], ids=[2])] == []
    assert [tuple(one) for one in monitor.advance(3)] == [(3, "-", 2)]


def test_missing_values_follow_the_policy() -> None:
    rows = {"a": [1.0, np.nan], "b": [1.0, 0.0]}
    preference = Preference(minimize=["a", "b"])
    with pytest.raises(InputError, match="row 2, column 'a'"):
        Monitored(preference).extend(rows, times=[1, 1], ids=[1, 2])
    assert Monitored(preference, nulls="drop").extend(rows, times=[1, 1], ids=[1, 2]).bad.tolist() == [1]
    worst = Monitored(preference, nulls="worst")
    worst.extend(rows, times=[1, 1], ids=[1, 2])
    assert [tuple(one) for one in worst.advance(1)] == [(1, "+", 1), (1, "+", 2)]


def test_rows_without_time_or_id_are_refused() -> None:
    monitor = Monitored(Preference(minimize=["a"]))
    with pytest.raises(InputError, match="the time is missing"):
        monitor.extend({"a": [1.0]}, times=[np.nan], ids=["x"])
    with pytest.raises(IdError):
        monitor.extend({"a": [1.0]}, times=[1.0], ids=[None])
