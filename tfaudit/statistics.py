"""Medians with bootstrap intervals, and the verdict of a comparison."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from .records import Interval

if TYPE_CHECKING:
    import numpy as np  # imported where it is used: the command line must stay quick

#: 95 % of this many resamples, drawn with a fixed seed, bound an interval.
RESAMPLES, CONFIDENCE, SEED = 2000, 0.95, 20260101

#: The 97.5 % quantile of the normal distribution.
_Z = 1.959964

#: A difference smaller than this is not called one, however narrow its interval.
SMALLEST_EFFECT = 0.05


def median_interval(values: Sequence[float]) -> Interval | None:
    """The median of ``values`` with its percentile bootstrap interval; None when there are none."""
    if not values:
        return None
    import numpy as np

    medians = _resampled_medians(values, np.random.default_rng(SEED))
    return _interval(float(np.median(values)), medians)


#: What was measured in each turn of one variant, by launch and round: an amount, and the seconds it took.
Turns = Mapping[tuple[int, int], tuple[float, float]]


def rate_interval(turns: Turns) -> Interval | None:
    """All amounts over all of the time. None without a turn that took time.

    Not the median of the turns' own rates: that would leave out what happens in few of them, such as the
    stall at the start of an epoch, which a user's own run pays for.
    The interval holds 95 % of what resamples of the turns, within each launch, give, `widening` with few of
    them; and every launch's own rate, since what differs from launch to launch no number of turns within them
    averages out.
    """
    if sum(time_s for _, time_s in turns.values()) <= 0:
        return None
    rounds = sorted(turns)
    drawn, parts = _resampled(turns, rounds)
    return _interval(_rate(turns.values()), drawn, parts, widening(rounds))


def paired_ratio_interval(turns: Turns, reference: Turns) -> Interval | None:
    """The ratio of two rates over the turns that both sides have, whole rounds being resampled.

    What slows a whole round slows both sides and cancels. The rates are those of `rate_interval`, so that a
    ratio fits the rates it stands beside; the interval is formed in the same way.
    None when no round is left, or the reference did nothing.
    """
    rounds = sorted(turns.keys() & reference.keys())
    if not rounds or not sum(reference[number][0] for number in rounds):
        return None
    drawn, parts = _resampled(turns, rounds)
    other_drawn, other_parts = _resampled(reference, rounds)
    ratio = _rate([turns[number] for number in rounds]) / _rate([reference[number] for number in rounds])
    return _interval(ratio, drawn / other_drawn, parts / other_parts, widening(rounds))


def time_shares(chain: Sequence[Turns]) -> list[Interval]:
    """What each adds to the time per amount of the one before, as a share of the last one's.

    Over the turns that all have, whole rounds being resampled; empty when there are none.
    """
    rounds = sorted(set.intersection(*(set(turns) for turns in chain)))
    if not rounds or not all(sum(turns[number][0] for number in rounds) for turns in chain):
        return []
    values = [1 / _rate([turns[number] for number in rounds]) for turns in chain]
    sampled = [tuple(1 / rates for rates in _resampled(turns, rounds)) for turns in chain]
    whole, (drawn, parts) = values[-1], sampled[-1]
    wider = widening(rounds)
    shares = [_interval(values[0] / whole, sampled[0][0] / drawn, sampled[0][1] / parts, wider)]
    for number in range(1, len(chain)):
        (before, before_parts), (after, after_parts) = sampled[number - 1 : number + 1]
        share = (values[number] - values[number - 1]) / whole
        shares.append(_interval(share, (after - before) / drawn, (after_parts - before_parts) / parts, wider))
    return shares


def _rate(turns: Iterable[tuple[float, float]]) -> float:
    amounts, times_s = zip(*turns, strict=True)
    return float(sum(amounts) / sum(times_s))


def _resampled(turns: Turns, rounds: Sequence[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Rates in resamples of the turns, drawn within each launch, and each launch's own rate.

    The same ``rounds`` are drawn whatever the turns, so that two sides can be paired.
    """
    import numpy as np

    generator = np.random.default_rng(SEED)
    total = np.zeros((2, RESAMPLES))
    parts = []
    for launch in sorted({launch for launch, _ in rounds}):
        own = np.array([turns[number] for number in rounds if number[0] == launch], dtype=float).T
        total += own[:, generator.integers(own.shape[1], size=(RESAMPLES, own.shape[1]))].sum(axis=2)
        parts.append(own[0].sum() / own[1].sum())
    return total[0] / total[1], np.array(parts)


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


def widening(rounds: Sequence[tuple[int, int]]) -> float:
    """By what a bootstrap interval of few rounds must be stretched to hold what it says.

    Resampling n values understates their variance by (n - 1) ÷ n, and takes it for known, which Student's t
    corrects (Hesterberg 2015, "What Teachers Should Know About the Bootstrap", expanded percentile interval).
    ``rounds`` names launch and round; each launch is resampled on its own.
    """
    counts = Counter(launch for launch, _ in rounds)
    free = len(rounds) - len(counts)
    if free < 1:
        return 1.0  # single rounds show no spread to stretch
    fewest = max(2, min(counts.values()))
    return math.sqrt(fewest / (fewest - 1)) * student_t(free) / _Z


def student_t(degrees_of_freedom: int) -> float:
    """The 97.5 % quantile of Student's t, by Cornish and Fisher's expansion: within 1 % from 3 degrees on."""
    z, n = _Z, degrees_of_freedom
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )


def _interval(
    value: float, resampled: np.ndarray, parts: Sequence[float] | np.ndarray = (), wider: float = 1.0
) -> Interval:
    """95 % of the resampled values, stretched about the value, and widened to hold it and its parts.

    What is positive, such as a rate or a ratio, is stretched by factors.
    """
    import numpy as np

    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    if low > 0:
        low, high = value * (low / value) ** wider, value * (high / value) ** wider
    else:
        low, high = value - wider * (value - low), value + wider * (high - value)
    return Interval(median=value, low=float(min(low, value, *parts)), high=float(max(high, value, *parts)))


def kendall_p_value(series: Sequence[Sequence[float]]) -> float:
    """The two-sided p-value of a trend that all series share; 1 when none has more than one value.

    Kendall's S of each series, summed, over the root of their summed variances with ties accounted for
    (Mann 1945, Kendall 1975; the sum over series is Hirsch, Slack and Smith's seasonal test of 1982).
    """
    total, variance = 0, 0.0
    for values in series:
        total += sum(
            (later > value) - (later < value) for n, value in enumerate(values) for later in values[n:]
        )
        counts = [len(values), *(-values.count(value) for value in set(values))]
        variance += sum(math.copysign(n * n - abs(n), n) * (2 * abs(n) + 5) for n in counts) / 18
    if variance <= 0:
        return 1.0
    z = max(0.0, abs(total) - 1) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def verdict(ratio: Interval) -> str:
    """``faster`` or ``slower`` only when the interval excludes 1 and the effect is large enough."""
    if ratio.low > 1 and ratio.median >= 1 + SMALLEST_EFFECT:
        return "faster"
    if ratio.high < 1 and ratio.median <= 1 - SMALLEST_EFFECT:
        return "slower"
    return "no difference"
