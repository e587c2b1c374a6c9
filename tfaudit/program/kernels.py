"""The matrices that a model's dense and convolutional layers multiply by. Runs in the child."""

from __future__ import annotations

from math import prod
from typing import Any

from ..records import Kernel

#: Keras classes whose kernel is ``(…, channels in, channels out)``, these two exchanged in transposed ones.
_KINDS = ("Dense", "Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")


def kernels(model: Any) -> tuple[Kernel, ...]:
    """A model's kernels in the order of its layers, as far as they have been built."""
    flatten = getattr(model, "_flatten_layers", None)
    layers = {id(layer): layer for layer in flatten()} if flatten else {}
    found = (_kernel(layer) for layer in layers.values())
    return tuple(kernel for kernel in found if kernel is not None)


def _kernel(layer: Any) -> Kernel | None:
    kinds = [kind.__name__ for kind in type(layer).__mro__]
    kind = next((name for name in kinds if name in _KINDS), None)
    if kind is None:
        return None
    try:
        shape = [int(size) for size in layer.kernel.shape]
    except (AttributeError, TypeError, ValueError):
        return None  # not built yet
    into, out = shape[-2:]
    if kind.endswith("Transpose"):
        into, out = out, into
    return Kernel(
        layer=str(layer.name),
        kind=kind,
        channels_in=into,
        channels_out=out,
        parameters=prod(shape),
        data_format=str(getattr(layer, "data_format", None) or ""),
    )
