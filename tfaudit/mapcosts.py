"""What the maps of a pipeline cost, from the variant that weighed them: functions of records alone."""

from __future__ import annotations

from dataclasses import dataclass

from .evidence import Evidence
from .records import Interval, Stage
from .statistics import median_interval

#: Fewer rounds than this tell nothing.
FEWEST_ROUNDS = 3

#: A map that takes less of the pipeline's work is not worth a change.
WORTH_SHARE = 0.05


@dataclass(frozen=True)
class MapCost:
    """One map: ``share`` of the time that one thread needs for the whole pipeline, ``batch_ms`` per batch.

    ``saved`` is the share of that time which compiling the map with XLA saves, below 0 where it costs more;
    None where it was not compiled, for which ``problem`` may give the reason.
    """

    share: Interval
    batch_ms: Interval
    saved: Interval | None = None
    problem: str = ""

    @property
    def is_light(self) -> bool:
        """Whether it is certain to take little of the pipeline's work."""
        return self.share.high < WORTH_SHARE


def map_costs(evidence: Evidence) -> dict[Stage, MapCost]:
    """The maps that were weighed, by their stage; empty where none was."""
    result, program = evidence.variant("weighed"), evidence.program
    weighed = result.weighed if result else None
    if weighed is None or program is None or len(weighed.whole_s) < FEWEST_ROUNDS:
        return {}
    found = {}
    for each in weighed.maps:
        if each.stage >= len(program.pipeline) or program.pipeline[each.stage].op != "map":
            continue  # the program is another each time that it is loaded
        rounds = list(zip(weighed.whole_s, each.from_input_s, each.from_output_s, strict=True))
        share = median_interval([(whole_in - given) / whole for whole, whole_in, given in rounds])
        batch_ms = median_interval([1e3 * (whole_in - given) for _, whole_in, given in rounds])
        saved = [
            (plain - compiled) / whole
            for (whole, plain, _), compiled in zip(rounds, each.compiled_s, strict=False)
        ]
        assert share is not None and batch_ms is not None
        found[program.pipeline[each.stage]] = MapCost(share, batch_ms, median_interval(saved), each.problem)
    return found


def in_words(cost: MapCost) -> str:
    """``34 % of the pipeline's work (31–37 %), 4.1 ms per batch``."""
    low, high = 100 * max(0.0, cost.share.low), 100 * min(1.0, cost.share.high)
    return (
        f"{100 * max(0.0, cost.share.median):.0f} % of the pipeline's work ({low:.0f}–{high:.0f} %),"
        f" {cost.batch_ms.median:.3g} ms per batch"
    )
