"""Preference, window, changes, ledger, errors."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.errors import InputError, OptionError, PreferenceError, SkytideError, WindowError
from skytide.model import Changes, Ledger, Preference, Window, check_missing_policy, duration_value


def test_a_preference_names_minimised_columns_before_maximised_ones() -> None:
    preference = Preference(minimize=["a"], maximize=["b", "c"], by=["g"])
    assert preference.names == ("a", "b", "c")
    assert preference.signs.tolist() == [1.0, -1.0, -1.0]


def test_a_single_name_is_one_column() -> None:
    assert Preference(minimize="price", by="city") == Preference(minimize=("price",), by=("city",))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({}, "at least one column"),
        ({"minimize": ["a"], "maximize": ["a"]}, "more than once"),
        ({"minimize": ["a", "a"]}, "more than once"),
        ({"minimize": ["a"], "by": ["a"]}, "both"),
    ],
)
def test_a_preference_that_is_none_is_refused(columns: dict[str, list[str]], reason: str) -> None:
    with pytest.raises(PreferenceError, match=reason):
        Preference(**columns)


@pytest.mark.parametrize("dimensions", [0, -1])
def test_a_bare_array_needs_a_column(dimensions: int) -> None:
    with pytest.raises(PreferenceError):
        Preference.columns(dimensions)


@pytest.mark.parametrize(
    "lengths",
    [
        {},
        {"count": 1, "duration": 1},
        {"count": 0},
        {"count": 1.5},
        {"count": True},
        {"duration": 0},
        {"duration": -1.0},
        {"duration": float("nan")},
        {"duration": "0s"},
        {"duration": "fast"},
        {"duration": "1.5"},
        {"duration": "0.0000000001s"},
        {"duration": 1, "lateness": -1},
        {"duration": True},
    ],
)
def test_a_window_without_one_positive_length_is_refused(lengths: dict[str, float]) -> None:
    with pytest.raises(WindowError):
        Window(**lengths)  # type: ignore[arg-type]


@given(
    whole=st.integers(0, 10**9),
    fraction=st.text("0123456789", max_size=3),
    unit=st.sampled_from(["us", "ms", "s", "m", "h", "d"]),
)
def test_durations_are_exact(whole: int, fraction: str, unit: str) -> None:
    nanoseconds = {"us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}[unit]
    text = f"{whole}.{fraction}" if fraction else str(whole)
    assert duration_value(text + unit) == Fraction(text) * nanoseconds


def test_an_unknown_missing_value_policy_is_refused() -> None:
    with pytest.raises(OptionError, match="error, drop or worst"):
        check_missing_policy("guess")


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.sampled_from([-1, 1]), st.one_of(st.integers(0, 120), st.text("ab1", max_size=3))
        ),
        max_size=30,
    )
)
def test_changes_are_ordered_by_time_then_minus_before_plus_then_id_as_text(
    rows: list[tuple[int, int, object]],
) -> None:
    ids = np.empty(len(rows), dtype=object)
    ids[:] = [one for _, _, one in rows]
    changes = Changes.of([time for time, _, _ in rows], [sign for _, sign, _ in rows], ids)
    expected = sorted(
        [(time, "+" if sign > 0 else "-", one) for time, sign, one in rows],
        key=lambda row: (row[0], row[1] == "+", str(row[2])),
    )
    assert [(time, change, str(one)) for time, change, one in changes] == [(t, c, str(one)) for t, c, one in expected]
    assert changes.symbols.tolist() == [change for _, change, _ in expected]


def test_runs_of_changes_join() -> None:
    one = Changes.of([1], [1], ["a"])
    two = Changes.of([2], [-1], ["a"])
    assert [tuple(change) for change in Changes.concatenate([one, two])] == [(1, "+", "a"), (2, "-", "a")]
    assert len(Changes.concatenate([])) == 0


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["up", "down"]),
            st.sampled_from(["probe", "failure"]),
            st.sampled_from(["s", "c1"]),
            st.integers(0, 100),
            st.booleans(),
        )
    )
)
def test_the_ledger_adds_up(sent: list[tuple[str, str, str, int, bool]]) -> None:
    ledger = Ledger()
    for direction, kind, receiver, size, initial in sent:
        ledger.record(direction, kind, receiver=receiver, size=size, initial=initial)  # type: ignore[arg-type]
    assert ledger.messages("up", kind="probe") == sum(
        1 for d, k, _, _, i in sent if (d, k, i) == ("up", "probe", False)
    )
    assert ledger.bytes("down", receiver="c1", initial=True) == sum(
        size for d, _, r, size, i in sent if (d, r, i) == ("down", "c1", True)
    )
    assert ledger.messages() == sum(sum(kinds.values()) for kinds in ledger.by_kind().values())


def test_the_ledger_refuses_what_cannot_be_sent() -> None:
    with pytest.raises(OptionError):
        Ledger().record("sideways", "probe", receiver="s", size=1)  # type: ignore[arg-type]
    with pytest.raises(OptionError):
        Ledger().record("up", "probe", receiver="s", size=-1)


def test_an_error_is_one_line_with_place_value_reason_and_remedy() -> None:
    error = InputError("is\nbad", value="x" * 200, row=3, column="c", remedy="mend it").at(file="f.csv", row=9)
    assert str(error).startswith("f.csv, row 3, column 'c': 'xxx")
    assert "\n" not in str(error) and str(error).endswith("is bad; mend it") and len(str(error)) < 150
    assert isinstance(error, SkytideError) and isinstance(error, ValueError)
