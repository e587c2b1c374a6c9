"""Whether a variant's loss follows the baseline's: after the same steps, from the same seed.

Each launch has a seed of its own, so the baseline's launches show how far apart losses lie that differ in the
seed alone. A change of precision or compilation that moves the loss no further than that is harmless.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from .records import Numerics, VariantResult

#: Beyond so many times the spread of two seeds a distance is called one.
WARN_DISTANCE = 3.0

#: Where two seeds come out closer than this fraction of the loss, or of that before training, this stands for
#: their spread: after a few steps they may agree by chance, and threads that race move a loss by as much.
SMALLEST_SPREAD = 0.05


def compare(result: VariantResult, baseline: VariantResult) -> Numerics | None:
    """A variant's loss beside the baseline's; None when they have no step in common.

    They are compared at the latest step at which all their launches noted a loss. A variant whose last loss
    of all is no number, the baseline's being one, has none that is finite.
    """
    launches = list(zip(losses(result), losses(baseline), strict=False))
    common = [own.keys() & reference.keys() for own, reference in launches]
    step = max(set.intersection(*map(set, common)), default=0) if common else 0
    if not step:
        return None
    pairs = [(own[step], reference[step]) for own, reference in launches]
    if any(reference is None for _, reference in pairs):
        is_finite = None
    else:
        ended_well = _last(result) is not None or _last(baseline) is None
        is_finite = ended_well and all(own is not None for own, _ in pairs)
    loss, reference_loss = pairs[0]
    if not is_finite:
        return Numerics(step=step, loss=loss, reference_loss=reference_loss, is_finite=is_finite)
    return Numerics(
        step=step,
        loss=loss,
        reference_loss=reference_loss,
        is_finite=True,
        distance=_root_mean_square(
            [own - other for own, other in pairs if own is not None and other is not None]
        ),
        spread=seed_spread(baseline, step),
    )


def _last(result: VariantResult) -> float | None:
    return result.blocks[-1].loss if result.blocks else None


def seed_spread(baseline: VariantResult, step: int) -> float | None:
    """How far the baseline's first two launches lie apart after that many steps; None with one launch."""
    noted = losses(baseline)
    known = [loss for own in noted if (loss := own.get(step)) is not None]
    if len(known) < 2:
        return None
    first, second = known[:2]
    before = noted[0].get(1) or 0.0
    return max(abs(first - second), SMALLEST_SPREAD * max(abs(first), abs(before)))


def losses(result: VariantResult) -> list[dict[int, float | None]]:
    """The losses that each launch noted, by the number of the step."""
    noted = [dict(warm_up.losses) for warm_up in result.warm_ups]
    for block in result.blocks:
        if block.launch < len(noted):
            noted[block.launch] |= block.losses
    return noted


def diverged_at(result: VariantResult) -> int | None:
    """The first noted step at which the loss was no number, in the launch where that came last.

    None if a launch gave none, or ended with numbers.
    """
    steps = []
    for noted in losses(result):
        if not noted or noted[max(noted)] is not None:
            return None
        steps.append(min(step for step, loss in noted.items() if loss is None))
    return max(steps, default=None)


def follows(numerics: Numerics) -> bool | None:
    """Whether the loss stays as close as another seed's would; None when that is not known."""
    if numerics.is_finite is not True or numerics.distance is None or numerics.spread is None:
        return None if numerics.is_finite is not False else False
    return numerics.distance <= WARN_DISTANCE * numerics.spread


def _root_mean_square(values: Iterable[float]) -> float:
    squares = [value * value for value in values]
    return math.sqrt(sum(squares) / len(squares))
