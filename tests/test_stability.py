"""Drift, long steps, stalls where epochs begin, and the warm-up that the steps themselves show."""

from __future__ import annotations

import pytest
from checks.builders import block, in_rounds, measured

from tfaudit import stability
from tfaudit.records import Block, VariantResult, WarmUp


def of_steps(*step_ms: float, epoch_starts: tuple[int, ...] = ()) -> tuple[Block, ...]:
    """One block of steps that took so many milliseconds."""
    step_ns = tuple(round(step * 1e6) for step in step_ms)
    return (block(100.0, step_ns=step_ns, duration_ns=sum(step_ns), epoch_starts=epoch_starts),)


def test_the_drift_is_that_within_launches() -> None:
    """The second launch is slower as a whole, which is no drift; within each there is a fall by 10 %."""
    result = measured("baseline", [100.0, 100.0, 90.0, 90.0, 50.0, 50.0, 45.0, 45.0], launches=2)
    drift = stability.drift(result)
    assert drift is not None and drift.median == pytest.approx(0.9)


def test_launches_without_a_trend_have_none_whatever_lies_between_them() -> None:
    result = measured("baseline", [100.0, 101.0, 100.0, 101.0, 50.0, 51.0, 50.0, 51.0], launches=2)
    assert stability.drift_p_value(result) > 0.3


def test_a_fall_in_each_of_two_launches_is_a_trend() -> None:
    result = measured("baseline", [100.0, 99.0, 98.0, 97.0, 96.0] * 2, launches=2)
    assert stability.drift_p_value(result) < 0.001


@pytest.mark.parametrize(("rounds", "known"), [(3, False), (4, True)])
def test_two_rounds_per_half_are_needed(rounds: int, known: bool) -> None:
    assert (stability.drift(measured("baseline", [100.0] * rounds)) is not None) is known


def test_outliers_are_steps_beyond_twice_the_median_that_begin_no_epoch() -> None:
    blocks = of_steps(30, *[10] * 12, 20, 21, 50, epoch_starts=(0,))
    total = 30 + 120 + 20 + 21 + 50
    assert stability.outlier_share(blocks) == pytest.approx((21 + 50) / total)
    assert stability.epoch_start_share(blocks) == pytest.approx(20 / total)
    assert stability.epoch_stalls_ns(blocks) == [20e6]


def test_an_epoch_that_begins_behind_a_blocks_last_step_stalls_nothing_yet() -> None:
    assert stability.epoch_stalls_ns(of_steps(10, 10, epoch_starts=(2,))) == []


def test_three_robust_sigma_are_less_than_twice_the_median_where_steps_are_even() -> None:
    even = [9.0, 10.0, 11.0] * 5
    assert stability.beyond_three_sigma(of_steps(*even, 14.4)) == 0
    assert stability.beyond_three_sigma(of_steps(*even, 14.5)) == 1


def test_no_steps_give_no_figures() -> None:
    assert stability.outlier_share(()) == stability.epoch_start_share(()) == 0.0
    assert stability.beyond_three_sigma(()) == 0


def launched(*step_ms: float, warm_up: tuple[float, ...]) -> VariantResult:
    first, *others = (round(step * 1e6) for step in warm_up)
    warm = WarmUp(first_step_ns=first, step_ns=tuple(others))
    return measured("baseline", blocks=in_rounds(of_steps(*step_ms)), warm_ups=(warm,))


def test_the_warm_up_is_found_from_the_steps() -> None:
    """A compiling step and three slow ones; the clock was started after six."""
    result = launched(*[10.0] * 20, warm_up=(900.0, 30.0, 25.0, 22.0, 10.0, 10.0))
    assert (stability.steps_to_steady(result), stability.warm_up_steps(result)) == (4, 6)


def test_a_clock_that_was_started_too_early_shows() -> None:
    result = launched(*[20.0] * 8, *[10.0] * 20, warm_up=(900.0, 20.0, 20.0))
    assert (stability.steps_to_steady(result), stability.warm_up_steps(result)) == (11, 3)


def test_what_was_not_timed_has_no_warm_up() -> None:
    assert stability.steps_to_steady(measured("baseline", [])) is None
