"""Medians, bootstrap intervals and the verdict of a comparison."""

from __future__ import annotations

import random

import pytest

from tfaudit.records import Interval
from tfaudit.statistics import (
    kendall_p_value,
    median_interval,
    paired_ratio_interval,
    rate_interval,
    ratio_interval,
    student_t,
    verdict,
    widening,
)

NOISY = [96.0, 104.0, 99.0, 101.0, 90.0, 110.0, 100.0, 103.0, 97.0, 100.0]


def test_constant_data_has_an_interval_of_no_width() -> None:
    assert median_interval([100.0] * 8) == Interval(median=100.0, low=100.0, high=100.0)


def test_one_value_is_its_own_interval() -> None:
    assert median_interval([7.0]) == Interval(median=7.0, low=7.0, high=7.0)


def test_no_values_have_no_interval() -> None:
    assert median_interval([]) is None


def test_the_interval_holds_the_median_and_stays_within_the_data() -> None:
    interval = median_interval(NOISY)
    assert interval is not None
    assert interval.median == 100.0
    assert min(NOISY) <= interval.low < 100.0 < interval.high <= max(NOISY)


def test_the_interval_is_the_same_every_time() -> None:
    assert median_interval(NOISY) == median_interval(NOISY)
    assert ratio_interval(NOISY, NOISY[::-1]) == ratio_interval(NOISY, NOISY[::-1])


def test_more_of_the_same_data_narrows_the_interval() -> None:
    few, many = median_interval(NOISY), median_interval(NOISY * 10)
    assert few is not None and many is not None
    assert many.high - many.low < few.high - few.low


def test_the_median_and_not_the_mean_is_taken() -> None:
    interval = median_interval([1.0, 1.0, 1.0, 1.0, 1000.0])
    assert interval is not None and interval.median == 1.0


def test_a_ratio_of_constants_has_an_interval_of_no_width() -> None:
    assert ratio_interval([150.0] * 5, [100.0] * 5) == Interval(median=1.5, low=1.5, high=1.5)


def test_both_sides_of_a_ratio_widen_it() -> None:
    above, below = ratio_interval(NOISY, [100.0] * 10), ratio_interval([100.0] * 10, NOISY)
    both = ratio_interval(NOISY, NOISY)
    assert above is not None and below is not None and both is not None
    assert above.high - above.low < both.high - both.low
    assert below.high - below.low < both.high - both.low


@pytest.mark.parametrize(
    ("values", "reference"), [([], [1.0]), ([1.0], []), ([1.0], [0.0]), ([1.0], [5.0, 0.0])]
)
def test_a_ratio_to_nothing_or_to_zero_is_none(values: list[float], reference: list[float]) -> None:
    assert ratio_interval(values, reference) is None


def test_identical_variants_come_out_as_no_difference_at_least_19_times_of_20() -> None:
    """Blocks of a variant against blocks of itself, at a noise of 5 %."""
    draw = random.Random(7)
    verdicts = []
    for _ in range(40):
        ratio = ratio_interval(*([draw.gauss(100, 5) for _ in range(20)] for _ in range(2)))
        assert ratio is not None
        verdicts.append(verdict(ratio))
    assert verdicts.count("no difference") >= 38


def test_a_planted_effect_of_15_percent_is_found_at_least_9_times_of_10() -> None:
    draw = random.Random(7)
    verdicts = []
    for _ in range(40):
        ratio = ratio_interval(
            [draw.gauss(115, 5) for _ in range(20)], [draw.gauss(100, 5) for _ in range(20)]
        )
        assert ratio is not None
        verdicts.append(verdict(ratio))
    assert verdicts.count("faster") >= 36


VERDICTS = [
    (Interval(median=1.05, low=1.01, high=1.10), "faster"),
    (Interval(median=1.04, low=1.01, high=1.10), "no difference"),  # too small an effect
    (Interval(median=1.30, low=1.00, high=1.60), "no difference"),  # the interval reaches 1
    (Interval(median=1.30, low=0.90, high=1.70), "no difference"),
    (Interval(median=1.00, low=1.00, high=1.00), "no difference"),
    (Interval(median=0.95, low=0.90, high=0.99), "slower"),
    (Interval(median=0.96, low=0.90, high=0.99), "no difference"),
    (Interval(median=0.70, low=0.40, high=1.00), "no difference"),
]


@pytest.mark.parametrize(("ratio", "word"), VERDICTS)
def test_a_difference_must_exclude_1_and_be_large_enough(ratio: Interval, word: str) -> None:
    assert verdict(ratio) == word


def turns(*launches: list[tuple[float, float]]) -> dict[tuple[int, int], tuple[float, float]]:
    """Amounts and seconds of each launch's rounds."""
    return {(launch, number): turn for launch, own in enumerate(launches) for number, turn in enumerate(own)}


def test_a_rate_is_all_samples_over_all_the_time() -> None:
    """A stall in one block of ten counts for what it took, as in a loop that was timed as a whole."""
    rate = rate_interval(turns([(100.0, 1.0)] * 9 + [(100.0, 6.0)]))
    assert rate is not None
    assert rate.median == pytest.approx(1000 / 15)
    assert rate.low < 50 and rate.high > 100


def test_a_rate_without_time_is_none() -> None:
    assert rate_interval({}) is None
    assert rate_interval(turns([(1.0, 0.0)])) is None


def test_a_ratio_within_rounds_fits_the_rates_and_cancels_what_slows_a_round() -> None:
    """Every other round is five times as slow for both; the ratio is 2 and known exactly."""
    slow = [1.0, 5.0] * 6
    ratio = paired_ratio_interval(turns([(200.0, s) for s in slow]), turns([(100.0, s) for s in slow]))
    assert ratio is not None
    assert (ratio.median, ratio.low, ratio.high) == pytest.approx((2.0, 2.0, 2.0))


def test_rounds_that_only_one_side_has_are_left_out() -> None:
    ratio = paired_ratio_interval(turns([(200.0, 1.0), (1.0, 9.0)]), turns([(100.0, 1.0)]))
    assert ratio is not None and ratio.median == pytest.approx(2.0)
    assert paired_ratio_interval({}, turns([(100.0, 1.0)])) is None
    assert paired_ratio_interval(turns([(1.0, 1.0)]), turns([(0.0, 1.0)])) is None


def test_rounds_of_different_launches_are_no_pair() -> None:
    first, second = {(0, 0): (100.0, 1.0)}, {(1, 0): (100.0, 1.0)}
    assert paired_ratio_interval(first, second) is None


def test_an_interval_holds_what_each_launch_gave() -> None:
    """Within a launch every round agrees; between the two lies what no round shows."""
    steady = [(100.0, 1.0)] * 8
    faster = [(110.0, 1.0)] * 8
    ratio = paired_ratio_interval(turns(steady, faster), turns(steady, steady))
    assert ratio is not None
    assert (ratio.median, ratio.low, ratio.high) == pytest.approx((1.05, 1.0, 1.1))
    rate = rate_interval(turns(steady, faster))
    assert rate is not None and (rate.low, rate.high) == pytest.approx((100.0, 110.0))


TRENDS = [
    # S = 10 of 10 pairs, variance 5·4·15 ÷ 18 = 16.67: z = 9 ÷ 4.08 = 2.2
    ([[1.0, 2.0, 3.0, 4.0, 5.0]], 0.0275),
    ([[5.0, 4.0, 3.0, 2.0, 1.0]], 0.0275),
    # two series: S = 20, variance 33.3
    ([[1.0, 2.0, 3.0, 4.0, 5.0]] * 2, 0.00100),
    # ties: S = 16, variance (8·7·21 − 2·4·3·13) ÷ 18 = 48
    ([[1.0] * 4 + [2.0] * 4], 0.0304),
    ([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], 1.0),
    ([[1.0, 1.0, 1.0]], 1.0),
    ([[1.0], []], 1.0),
    ([], 1.0),
]


@pytest.mark.parametrize(("series", "p_value"), TRENDS)
def test_the_significance_of_a_trend(series: list[list[float]], p_value: float) -> None:
    assert kendall_p_value(series) == pytest.approx(p_value, rel=0.01)


@pytest.mark.parametrize(("degrees_of_freedom", "t"), [(3, 3.182), (4, 2.776), (8, 2.306), (30, 2.042)])
def test_students_t(degrees_of_freedom: int, t: float) -> None:
    assert student_t(degrees_of_freedom) == pytest.approx(t, rel=0.01)


@pytest.mark.parametrize(
    ("launches", "factor"),
    [
        ((100, 100), 1.011),
        ((3, 3), 1.731),  # sqrt(3 ÷ 2) × 2.77 ÷ 1.96
        ((10, 2), 1.608),  # the launch with the fewest counts
        ((1, 1), 1.0),
        ((), 1.0),
    ],
)
def test_intervals_of_few_rounds_are_stretched(launches: tuple[int, ...], factor: float) -> None:
    rounds = [(launch, number) for launch, count in enumerate(launches) for number in range(count)]
    assert widening(rounds) == pytest.approx(factor, rel=0.002)


def test_a_stretched_ratio_stays_positive() -> None:
    ratio = paired_ratio_interval(
        turns([(1.0, 1.0), (100.0, 1.0), (100.0, 1.0)]), turns([(100.0, 1.0), (1.0, 1.0), (50.0, 1.0)])
    )
    assert ratio is not None and 0 < ratio.low < ratio.median < ratio.high


def test_an_interval_of_three_rounds_in_two_launches_holds_the_truth() -> None:
    """Rounds that vary by 10 %, a thousand times over: without stretching 81 % would hold it."""
    generator = random.Random(1)

    def rounds() -> list[tuple[float, float]]:
        return [(100.0, generator.gauss(1.0, 0.1)) for _ in range(3)]

    ratios = [
        paired_ratio_interval(turns(rounds(), rounds()), turns(rounds(), rounds())) for _ in range(1000)
    ]
    assert sum(ratio.low <= 1 <= ratio.high for ratio in ratios if ratio) >= 920
