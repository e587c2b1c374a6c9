"""Sets of moments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfaudit.trace.intervals import Intervals, self_times


def made(*pairs: tuple[int, int]) -> Intervals:
    start, stop = np.array(pairs, np.int64).reshape(-1, 2).T
    return Intervals.union(start, stop)


def pairs(intervals: Intervals) -> list[tuple[int, int]]:
    return list(zip(intervals.start.tolist(), intervals.stop.tolist(), strict=True))


def test_union_merges_what_overlaps_or_touches_in_any_order() -> None:
    assert pairs(made((5, 7), (0, 2), (2, 3), (6, 9), (4, 4))) == [(0, 3), (5, 9)]


def test_an_interval_inside_another_adds_nothing() -> None:
    assert pairs(made((0, 10), (2, 3), (4, 5))) == [(0, 10)]


def test_gaps_leave_out_what_is_before_the_first_and_after_the_last() -> None:
    assert pairs(made((2, 3), (7, 8)).gaps()) == [(3, 7)]


def test_within_clips_to_the_window() -> None:
    assert pairs(made((0, 4), (6, 9)).within(3, 7)) == [(3, 4), (6, 7)]


def test_covered_measures_each_window() -> None:
    covered = made((0, 4), (6, 9)).covered(np.array([0, 3, 4, 20]), np.array([9, 7, 6, 30]))
    assert covered.tolist() == [7, 2, 0, 0]


def test_nothing_is_empty_and_covers_nothing() -> None:
    none = Intervals.none()
    assert not none
    assert none.length == 0
    assert not (none | none) and not (none & made((0, 1))) and not (none - made((0, 1)))


spans = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda pair: tuple(sorted(pair))),
    max_size=8,
)


@given(spans, spans)
def test_set_operations_agree_with_sets_of_moments(left: list, right: list) -> None:
    a, b = made(*left), made(*right)
    moments_a = {m for start, stop in left for m in range(start, stop)}
    moments_b = {m for start, stop in right for m in range(start, stop)}
    for found, expected in (
        (a | b, moments_a | moments_b),
        (a & b, moments_a & moments_b),
        (a - b, moments_a - moments_b),
    ):
        assert {m for start, stop in pairs(found) for m in range(start, stop)} == expected
        assert (found.start[1:] > found.stop[:-1]).all()


def test_self_time_is_what_nested_events_leave() -> None:
    line = np.zeros(4, np.int32)
    start = np.array([0, 10, 20, 50])
    duration = np.array([100, 30, 5, 10])
    assert self_times(line, start, duration).tolist() == [60.0, 25.0, 5.0, 10.0]


def test_self_time_does_not_cross_lines() -> None:
    line = np.array([0, 1], np.int32)
    own = self_times(line, np.array([0, 1]), np.array([10, 5]))
    assert own.tolist() == pytest.approx([10.0, 5.0])
