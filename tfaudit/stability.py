"""How steady a variant's throughput is: drift over its rounds, long steps, stalls where epochs begin."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from .evidence import block_rates
from .records import Block, Interval, VariantResult
from .statistics import kendall_p_value, ratio_interval

#: A step beyond so many times the median is an outlier.
OUTLIER_FACTOR = 2.0

#: The median absolute deviation of a normal distribution times this is its standard deviation.
MAD_TO_SIGMA = 1.4826

#: Steps are steady once so many in a row take, by their median, no more than that much longer than they do in
#: the second half of the launch.
STEADY_WINDOW, STEADY_WITHIN = 5, 0.10


def launches(result: VariantResult) -> list[list[Block]]:
    """Blocks by launch, in the order in which they were measured."""
    numbers = sorted({block.launch for block in result.blocks})
    return [[block for block in result.blocks if block.launch == number] for number in numbers]


def drift(result: VariantResult) -> Interval | None:
    """Samples per second in the second half of each launch's rounds over the first's; None with few."""
    halves: tuple[list[float], list[float]] = ([], [])
    for blocks in launches(result):
        half = len(blocks) // 2
        rates = block_rates(blocks)
        halves[0].extend(rates[:half])
        halves[1].extend(rates[len(rates) - half :])
    return ratio_interval(halves[1], halves[0]) if len(halves[0]) >= 2 else None


def drift_p_value(result: VariantResult) -> float:
    """How likely rounds of that spread show such a trend by chance: Mann's and Kendall's test."""
    return kendall_p_value([block_rates(blocks) for blocks in launches(result)])


def outlier_share(blocks: Sequence[Block]) -> float:
    """Share of the timed nanoseconds that went into steps beyond `OUTLIER_FACTOR` × the median step.

    The first steps of epochs are told by `epoch_start_share`.
    """
    steps, limit = _others(blocks), OUTLIER_FACTOR * median_step_ns(blocks)
    total = _total_ns(blocks)
    return sum(step for step in steps if step > limit) / total if total else 0.0


def beyond_three_sigma(blocks: Sequence[Block]) -> int:
    """Steps further than three robust standard deviations above the median."""
    steps = _others(blocks)
    if not steps:
        return 0
    median = statistics.median(steps)
    sigma = MAD_TO_SIGMA * statistics.median(abs(step - median) for step in steps)
    return sum(step > median + 3 * sigma for step in steps)


def median_step_ns(blocks: Sequence[Block]) -> float:
    """0 when no step was timed."""
    steps = [step for block in blocks for step in block.step_ns]
    return float(statistics.median(steps)) if steps else 0.0


def epoch_stalls_ns(blocks: Sequence[Block]) -> list[float]:
    """What the first step of each epoch took beyond the median step."""
    median = median_step_ns(blocks)
    return [max(0.0, step - median) for step in _firsts(blocks)]


def epoch_start_share(blocks: Sequence[Block]) -> float:
    """Share of the timed nanoseconds that went into the stalls where epochs begin."""
    total = _total_ns(blocks)
    return sum(epoch_stalls_ns(blocks)) / total if total else 0.0


def _firsts(blocks: Sequence[Block]) -> list[int]:
    return [block.step_ns[n] for block in blocks for n in block.epoch_starts if n < len(block.step_ns)]


def _others(blocks: Sequence[Block]) -> list[int]:
    starts = [(block.step_ns, set(block.epoch_starts)) for block in blocks]
    return [step for steps, firsts in starts for n, step in enumerate(steps) if n not in firsts]


def _total_ns(blocks: Sequence[Block]) -> int:
    return sum(sum(block.step_ns) for block in blocks)


def steps_to_steady(result: VariantResult) -> int | None:
    """Steps after which the slowest launch was steady, its first step and its warm-up included.

    Found from the steps themselves, in calls of the train function; None without any.
    """
    found = []
    for number, warm_up in enumerate(result.warm_ups):
        timed = [step for block in result.blocks if block.launch == number for step in block.step_ns]
        if timed:
            found.append(_steady_from([warm_up.first_step_ns, *warm_up.step_ns, *timed]))
    return max(found, default=None)


def _steady_from(steps: Sequence[int]) -> int:
    limit = (1 + STEADY_WITHIN) * statistics.median(steps[len(steps) // 2 :])
    for number in range(len(steps)):
        if statistics.median(steps[number : number + STEADY_WINDOW]) <= limit and steps[number] <= limit:
            return number
    return len(steps)


def warm_up_steps(result: VariantResult) -> int | None:
    """Steps before the clock was started, in the launch with the fewest; None without a warm-up."""
    return min((1 + len(warm_up.step_ns) for warm_up in result.warm_ups), default=None)


def variation(rates: Sequence[float]) -> float:
    """Coefficient of variation: standard deviation ÷ mean."""
    return statistics.pstdev(rates) / statistics.fmean(rates) if rates else math.nan
