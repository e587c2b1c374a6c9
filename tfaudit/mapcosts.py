"""What the maps of a pipeline cost, from the variant that weighed them: functions of records alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .evidence import Evidence
from .records import Interval, Stage, Weighed
from .statistics import median_interval

#: Fewer rounds than this tell nothing.
FEWEST_ROUNDS = 3

#: A share known no better than this is not known.
TOO_WIDE = 0.15

#: A map that takes less of the pipeline's work is not worth a change.
WORTH_SHARE = 0.05


@dataclass(frozen=True)
class MapCost:
    """One map: ``share`` of the time that one thread needs for the whole pipeline, ``batch_ms`` per batch.

    ``until`` is the share of the map and of all that feeds it. ``saved`` is the share that compiling the map
    with XLA saves, below 0 where it costs more; None where it was not compiled, as ``problem`` may explain.
    """

    share: Interval
    until: Interval
    batch_ms: Interval
    saved: Interval | None = None
    problem: str = ""

    @property
    def is_light(self) -> bool:
        """Whether it is certain to take little of the pipeline's work."""
        return self.share.high < WORTH_SHARE


class MapCosts:
    """What the maps of one program cost; stages are told apart as objects, since two may be alike."""

    def __init__(self, found: Iterable[tuple[int, Stage, MapCost]] = ()) -> None:
        self._found = tuple(found)

    def of(self, stage: Stage) -> MapCost | None:
        """What a stage of the program costs; None where it was not weighed."""
        return next((cost for _, known, cost in self._found if known is stage), None)

    def by_place(self) -> dict[int, MapCost]:
        """The costs by the stage's place in the program's pipeline."""
        return {place: cost for place, _, cost in self._found}


def weighed_in(evidence: Evidence) -> Weighed | None:
    """What weighing the pipeline gave; None where it was not tried."""
    result = evidence.variant("weighed")
    return result.weighed if result else None


def map_costs(evidence: Evidence) -> MapCosts:
    """The maps that were weighed, those aside of which too little is certain."""
    weighed, program = weighed_in(evidence), evidence.program
    if weighed is None or program is None or len(weighed.whole_s) < FEWEST_ROUNDS:
        return MapCosts()
    found = []
    for each in weighed.maps:
        if each.stage >= len(program.pipeline) or program.pipeline[each.stage].op != "map":
            continue  # the program is another each time that it is loaded
        rounds = list(zip(weighed.whole_s, each.from_input_s, each.from_output_s, strict=True))
        share = median_interval([(whole_in - given) / whole for whole, whole_in, given in rounds])
        until = median_interval([(whole - given) / whole for whole, _, given in rounds])
        batch_ms = median_interval([1e3 * (whole_in - given) for _, whole_in, given in rounds])
        saved = [
            (plain - compiled) / whole
            for (whole, plain, _), compiled in zip(rounds, each.compiled_s, strict=False)
        ]
        assert share is not None and until is not None and batch_ms is not None
        if (share.high - share.low) / 2 <= TOO_WIDE:
            cost = MapCost(share, until, batch_ms, median_interval(saved), each.problem)
            found.append((each.stage, program.pipeline[each.stage], cost))
    return MapCosts(found)


def why_not_weighed(evidence: Evidence) -> str:
    """Why a map has no cost, in a sentence."""
    weighed = weighed_in(evidence)
    told = weighed.problem if weighed else ""
    untold = "What it takes is too uncertain, or it lies within a function or behind many others."
    return evidence.why_missing("weighed") or told or untold


def heavy_ones(stages: Iterable[Stage], costs: MapCosts) -> list[Stage]:
    """The stages that are not certain to take little of the pipeline's work."""
    return [stage for stage in stages if (cost := costs.of(stage)) is None or not cost.is_light]


def share_of(stages: Iterable[Stage], costs: MapCosts) -> Interval | None:
    """The share of several stages together; None where one is not known."""
    return together(cost.share if (cost := costs.of(stage)) else None for stage in stages)


def together(shares: Iterable[Interval | None]) -> Interval | None:
    """What several shares come to; None where one is not known."""
    known = list(shares)
    if not known or None in known:
        return None
    low, median, high = (sum(getattr(share, end) for share in known) for end in ("low", "median", "high"))
    return Interval(median=median, low=low, high=high)


def bounded(gain: Interval, share: Interval | None, cores: float) -> Interval:
    """The most that a job can gain by sparing that share of its pipeline's work; ``gain`` if that is unknown.

    ``gain`` is what sparing all of it gives. Work W on C cores takes at least W ÷ C, and s W where a stage of
    share s runs serially; without that stage at least (1 - s) W ÷ C. Where nothing runs in parallel it is W
    before and (1 - s) W after.
    """
    if share is None:
        return gain

    def most(spared: float) -> float:
        return math.inf if spared >= 1 else max(1.0, cores * spared) / (1 - max(0.0, spared))

    return Interval(
        median=min(gain.median, most(share.median)),
        low=min(gain.low, most(share.low)),
        high=min(gain.high, most(share.high)),
    )


def in_words(cost: MapCost) -> str:
    """``34 % of the pipeline's work (31–37 %), 4.1 ms per batch``."""
    low, median, high = (100 * share for share in (cost.share.low, cost.share.median, cost.share.high))
    low, median, high = (min(100.0, max(0.0, share)) for share in (low, median, high))
    return (
        f"{median:.0f} % of the pipeline's work ({low:.0f}–{high:.0f} %),"
        f" {max(0.0, cost.batch_ms.median):.3g} ms per batch"
    )
