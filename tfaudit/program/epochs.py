"""How much data an epoch of training and one of validation go through, as far as ``fit`` knows beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..records import Epoch, Stage

#: What ``Model.fit`` and ``Model.evaluate`` use for arrays when no batch size is given.
DEFAULT_BATCH_SIZE = 32


def training(data: Any, fit: Mapping[str, Any], pipeline: tuple[Stage, ...]) -> Epoch:
    """One epoch of training."""
    if (samples := _samples(data)) is not None:
        samples -= _held_out(samples, fit)
    return _epoch(data, samples, fit.get("batch_size"), fit.get("steps_per_epoch"), pipeline)


def validation(data: Any, fit: Mapping[str, Any], pipeline: tuple[Stage, ...]) -> Epoch | None:
    """One evaluation within ``fit``, whose data have that pipeline; None when it is asked for none."""
    size = fit.get("validation_batch_size") or fit.get("batch_size")
    steps = fit.get("validation_steps")
    given = fit.get("validation_data")
    if given is not None:
        held = given[0] if isinstance(given, (tuple, list)) and len(given) > 0 else given
        return _epoch(held, _samples(held), size, steps, pipeline)
    if not fit.get("validation_split"):
        return None
    samples = _samples(data)
    return _epoch(data, None if samples is None else _held_out(samples, fit), size, steps, ())


def _epoch(data: Any, samples: int | None, size: Any, steps: Any, pipeline: tuple[Stage, ...]) -> Epoch:
    if samples is not None:
        size = int(size or DEFAULT_BATCH_SIZE)
        batches: int | None = -(-samples // size)
    else:
        size, batches = _batch_size(data, pipeline), _batches(data)
    if steps is not None:
        batches = int(steps)
    return Epoch(batches=batches, batch_size=size)


def _held_out(samples: int, fit: Mapping[str, Any]) -> int:
    """Samples that ``validation_split`` takes from the end of the arrays, where no other data is given."""
    if fit.get("validation_data") is not None:
        return 0
    return samples - int(samples * (1.0 - float(fit.get("validation_split") or 0.0)))


def _samples(data: Any) -> int | None:
    """The first dimension of arrays; None for anything else."""
    while isinstance(data, (Mapping, list, tuple)) and len(data) > 0:
        data = next(iter(data.values())) if isinstance(data, Mapping) else data[0]
    try:
        return int(data.shape[0])
    except (AttributeError, TypeError, IndexError, ValueError):
        return None


def _batches(data: Any) -> int | None:
    """The number of batches that data know themselves to have: a dataset's, a ``PyDataset``'s."""
    if isinstance(data, (Mapping, list, tuple)):
        return None
    try:
        count = int(data.cardinality()) if hasattr(data, "cardinality") else len(data)
        return count if count >= 0 else None  # a dataset says -1 for endless, -2 for unknown
    except Exception:
        return None  # the length of a ``PyDataset`` is the user's own code


def _batch_size(data: Any, pipeline: tuple[Stage, ...]) -> int | None:
    for stage in reversed(pipeline):
        if stage.batch_size is not None and not stage.inside:
            return stage.batch_size
    size = getattr(data, "batch_size", None)
    return size if isinstance(size, int) else None
