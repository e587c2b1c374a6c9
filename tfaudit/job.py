"""What is audited, as a value: a model, the data it is trained on and how ``fit`` was called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Job:
    """A training job.

    ``model`` is a compiled Keras model; ``dataset`` is anything that ``Model.fit`` accepts as ``x``: a
    ``tf.data.Dataset`` of batches, arrays, a ``PyDataset`` or a generator. ``fit`` holds further
    arguments of ``Model.fit`` (``y``, ``batch_size``, ``callbacks``, …).

    For a training loop of your own give ``train_step(model, batch)``, which trains on one batch and
    may return the loss or a dict with a ``loss``; ``dataset`` must then be iterable, and each batch's
    first dimension counts the samples. The model need not be compiled then.
    """

    model: Any
    dataset: Any
    train_step: Callable[[Any, Any], Any] | None = None
    fit: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class VariedJob(Job):
    """A job as a variant runs it: what it trains, and what the variant changed about it.

    ``jit_compile`` None leaves the user's setting; ``trains`` False only iterates the data.
    ``constant`` is a batch that every step is given instead of the data's, or None.
    ``notes`` are sentences on the change for the report.
    ``original_fit`` is the framework's own ``Model.fit``. ``form`` is the `Target.kind` it came from.
    """

    form: str = "script"
    framework: str = "keras"
    original_fit: Callable[..., Any] | None = None
    location: str | None = None
    jit_compile: bool | None = None
    trains: bool = True
    constant: Any = None
    notes: tuple[str, ...] = ()
    left_out: tuple[tuple[Any, str], ...] = ()
