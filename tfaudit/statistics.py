"""Medians with bootstrap intervals, and the verdict of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .records import Interval

if TYPE_CHECKING:
    import numpy as np  # imported where it is used: the command line must stay quick

#: 95 % of this many resamples, drawn with a fixed seed, bound an interval.
RESAMPLES, CONFIDENCE, SEED = 2000, 0.95, 20260101

#: A difference smaller than this is not called one, however narrow its interval.
SMALLEST_EFFECT = 0.05


def median_interval(values: Sequence[float]) -> Interval | None:
    """The median of ``values`` with its percentile bootstrap interval; None when there are none."""
    if not values:
        return None
    import numpy as np

    medians = _resampled_medians(values, np.random.default_rng(SEED))
    return _interval(float(np.median(values)), medians)


def rate_interval(amounts: Sequence[float], durations_s: Sequence[float]) -> Interval | None:
    """All amounts over all of the time, and what that is in resamples of the blocks.

    Not the median of the blocks' own rates: that would leave out what happens in few of them, such as the
    stall at the start of an epoch, which a user's own run pays for. None without a block that took time.
    """
    if sum(durations_s) <= 0:
        return None
    import numpy as np

    blocks = np.array([amounts, durations_s], dtype=float)
    drawn = np.random.default_rng(SEED).integers(blocks.shape[1], size=(RESAMPLES, blocks.shape[1]))
    amount, time_s = blocks[:, drawn].sum(axis=2)
    return _interval(float(np.median(amount / time_s)), amount / time_s)


#: Blocks of one variant: amounts, and the seconds that they took.
Blocks = Sequence[tuple[float, float]]


def paired_ratio_interval(blocks: Blocks, reference: Blocks) -> Interval | None:
    """The ratio of two rates over the rounds that both sides have, whole rounds being resampled.

    ``blocks[i]`` and ``reference[i]`` are of the same round, so what slows a whole round slows both and
    cancels. The rates are those of `rate_interval`, so that a ratio fits the rates it stands beside.
    None when no round is left, or the reference did nothing.
    """
    rounds = min(len(blocks), len(reference))
    if not rounds or not sum(amount for amount, _ in reference[:rounds]):
        return None
    import numpy as np

    drawn = np.random.default_rng(SEED).integers(rounds, size=(RESAMPLES, rounds))
    amount, time_s = np.array(blocks[:rounds], dtype=float).T[:, drawn].sum(axis=2)
    other_amount, other_time_s = np.array(reference[:rounds], dtype=float).T[:, drawn].sum(axis=2)
    ratios = (amount / time_s) / (other_amount / other_time_s)
    return _interval(float(np.median(ratios)), ratios)


def ratio_interval(values: Sequence[float], reference: Sequence[float]) -> Interval | None:
    """The ratio of two medians, each side resampled on its own; None when a side is missing or zero."""
    if not values or not reference or min(reference) <= 0:
        return None
    import numpy as np

    generator = np.random.default_rng(SEED)
    above = _resampled_medians(values, generator)
    below = _resampled_medians(reference, generator)
    return _interval(float(np.median(values) / np.median(reference)), above / below)


def _resampled_medians(values: Sequence[float], generator: np.random.Generator) -> np.ndarray:
    import numpy as np

    array = np.asarray(values, dtype=float)
    drawn = generator.choice(array, size=(RESAMPLES, len(array)))
    return np.asarray(np.median(drawn, axis=1))


def _interval(median: float, resampled: np.ndarray) -> Interval:
    import numpy as np

    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return Interval(median=median, low=float(low), high=float(high))


def verdict(ratio: Interval) -> str:
    """``faster`` or ``slower`` only when the interval excludes 1 and the effect is large enough."""
    if ratio.low > 1 and ratio.median >= 1 + SMALLEST_EFFECT:
        return "faster"
    if ratio.high < 1 and ratio.median <= 1 - SMALLEST_EFFECT:
        return "slower"
    return "no difference"
