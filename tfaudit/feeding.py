"""Changes to what a job is fed with. Runs in the child, with the user's TensorFlow."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import machine
from .job import VariedJob

#: Arguments of ``fit`` that describe arrays; a dataset of finished batches takes none of them.
ARRAY_ARGUMENTS = ("y", "batch_size", "sample_weight", "class_weight", "shuffle", "validation_split")


class NotTransformable(Exception):
    """The data cannot be changed as this variant needs; the message says why, in a sentence."""


def is_dataset(data: Any) -> bool:
    """Whether ``data`` is a ``tf.data.Dataset``."""
    import tensorflow as tf

    return isinstance(data, tf.data.Dataset)


def is_distributed(model: Any) -> bool:
    """Whether several replicas of a model train together."""
    strategy = getattr(model, "distribute_strategy", None)
    return strategy is not None and strategy.num_replicas_in_sync > 1


def before_prefetch(dataset: Any, change: Callable[[Any], Any]) -> Any:
    """Apply ``change`` to a dataset beneath its trailing prefetch, which stays the last stage.

    The inner dataset of a prefetch (and of the options wrapped around it) is no public attribute of
    tf.data; it has had this name since TensorFlow 2.0.
    """
    if _is_options(dataset):
        inner = before_prefetch(dataset._input_dataset, change)
        return inner.with_options(dataset.options())
    if (buffer := trailing_prefetch(dataset)) is not None:
        return change(dataset._input_dataset).prefetch(buffer)
    return change(dataset)


def trailing_prefetch(dataset: Any) -> int | None:
    """The buffer of the prefetch that ends a pipeline, options aside, in elements; None where none does."""
    if _is_options(dataset):
        return trailing_prefetch(dataset._input_dataset)
    return int(dataset._buffer_size) if type(dataset).__name__.endswith("PrefetchDataset") else None


def _is_options(dataset: Any) -> bool:
    return type(dataset).__name__.endswith("OptionsDataset")


def repeat_first_batch(job: VariedJob, times: int = 1) -> VariedJob:
    """The same job fed for ever with its first batch from memory, its samples ``times`` over.

    A ``tf.data.Dataset`` stays in place up to that batch. Arrays, generators and PyDatasets are
    asked for one batch through Keras, exactly as the model would get it. Where batches vary in more than
    their number of samples, as texts do in length, it is one of about the usual size instead of the first.
    """
    import tensorflow as tf

    if times > 1 and has_fixed_batch(job.model):
        raise NotTransformable("The model takes batches of one size only.")
    if is_dataset(job.dataset):
        if varies(job.dataset):
            typical = typical_batch(job.dataset)
            repeated = _larger(typical, times).repeat().prefetch(tf.data.AUTOTUNE)
            return replace(job, dataset=repeated, fit=_endless(job), notes=(_stands_for(typical),))
        repeated = before_prefetch(job.dataset, lambda data: _larger(data.take(1), times).cache().repeat())
        return replace(job, dataset=repeated, fit=_endless(job))
    batch = _times_over(first_batch(job), times)
    if job.train_step is not None:
        # A hand-written loop is given the very object that its own iterable would yield.
        return replace(job, dataset=Repeated(batch))
    repeated = tf.data.Dataset.from_tensors(batch).repeat().prefetch(tf.data.AUTOTUNE)
    fit = {name: value for name, value in _endless(job).items() if name not in ARRAY_ARGUMENTS}
    return replace(job, dataset=repeated, fit=fit)


def has_fixed_batch(model: Any) -> bool:
    """Whether a model was built for batches of one size."""
    try:
        return any(part.shape[0] is not None for part in model.inputs)
    except (AttributeError, IndexError, TypeError, ValueError):
        return False  # it has no inputs of its own, or they are of unknown shape


def _larger(dataset: Any, times: int) -> Any:
    """Batches whose samples are there ``times`` over."""
    if times == 1:
        return dataset
    return dataset.map(lambda *parts: _times_over(parts if len(parts) > 1 else parts[0], times))


def _times_over(batch: Any, times: int) -> Any:
    import tensorflow as tf

    def one(part: Any) -> Any:
        if isinstance(part, tf.SparseTensor):
            return tf.sparse.concat(0, [part] * times)
        return tf.concat([part] * times, 0) if len(part.shape) else part

    return batch if times == 1 else tf.nest.map_structure(one, batch)


#: Batches among which a typical one is sought.
MOST_TRIED = 16


def varies(dataset: Any) -> bool:
    """Whether its batches differ in more than how many samples they hold."""
    import tensorflow as tf

    specs = tf.nest.flatten(dataset.element_spec)
    return any(
        isinstance(spec, tf.RaggedTensorSpec)
        or (isinstance(spec, tf.TensorSpec) and spec.shape.rank and None in spec.shape.as_list()[1:])
        for spec in specs
    )


def typical_batch(dataset: Any) -> Any:
    """A dataset of one of the first batches: that whose number of values is nearest to their mean."""
    import tensorflow as tf

    batches = list(dataset.take(MOST_TRIED))
    if not batches:
        raise NotTransformable("The dataset gave no batch.")
    sizes = [
        sum(int(tf.size(part)) for part in tf.nest.flatten(batch, expand_composites=True))
        for batch in batches
    ]
    mean = sum(sizes) / len(sizes)
    typical = min(range(len(sizes)), key=lambda number: abs(sizes[number] - mean))
    return tf.data.Dataset.from_tensors(batches[typical])


def _stands_for(typical: Any) -> str:
    import tensorflow as tf

    shapes = [tuple(spec.shape.as_list() or ()) for spec in tf.nest.flatten(typical.element_spec)]
    shown = ", ".join("×".join("?" if size is None else str(size) for size in shape) for shape in shapes)
    return f"The batches vary in shape: one of about the usual size stands for all ({shown})."


def constant_batch(job: VariedJob) -> VariedJob:
    """The same job whose every step trains on its first batch, which lies on the device already."""
    import tensorflow as tf

    if is_distributed(job.model):
        raise NotTransformable("One batch for all of several replicas would be another job.")
    if is_dataset(job.dataset) and varies(job.dataset):
        job = repeat_first_batch(job)  # which then is not the first
    # identity places its result on the accelerator, where there is one
    batch = tf.nest.map_structure(tf.identity, first_batch(job), expand_composites=True)
    if job.train_step is not None:
        return replace(job, dataset=Repeated(batch))
    ticks = tf.data.Dataset.from_tensors(0).repeat()
    fit = {name: value for name, value in _endless(job).items() if name not in ARRAY_ARGUMENTS}
    return replace(job, dataset=ticks, fit=fit, constant=batch)


#: Bounds on what is held of a source: a share of the memory that is free, and how much and how long at most.
MOST_HELD_SHARE, MOST_HELD_BYTES, MOST_HELD_ELEMENTS, MOST_HELD_S = 0.05, 1 << 30, 20_000, 2.0


def cache_sources(job: VariedJob) -> VariedJob:
    """The same job with what its sources read held in memory."""
    from .sourcecache import cache_sources as hold

    room = min(MOST_HELD_BYTES, int(MOST_HELD_SHARE * machine.available_memory_bytes()))
    held = hold(job.dataset, elements=MOST_HELD_ELEMENTS, bytes_limit=room, seconds_limit=MOST_HELD_S)
    return replace(job, dataset=held.dataset, notes=held.notes)


#: Longest time given to filling the pipeline's own caches, before the clock starts.
MOST_FILLING_S = 10.0


def fill_caches(dataset: Any, seconds_limit: float = MOST_FILLING_S) -> bool | None:
    """Read what every ``cache()`` in a pipeline holds, so that a first epoch is not taken for all of them.

    A cache belongs to its dataset, and later iterators read what an earlier one filled. False when one is not
    full in that time, None when there is none.
    """
    if not is_dataset(dataset):
        return None
    until = time.monotonic() + seconds_limit
    caches = list(_caches(dataset))
    for cache in caches:
        for _ in cache:
            if time.monotonic() > until:
                return False
    return True if caches else None


def _caches(dataset: Any) -> Iterator[Any]:
    """The caches above a dataset, the first in the pipeline first."""
    for source in dataset._inputs():
        yield from _caches(source)
    if type(dataset).__name__.endswith("CacheDataset"):
        yield dataset


def keep_file_caches_in(folder: str) -> None:
    """Have ``cache(filename)`` use a file in ``folder``, unless its own is complete, and so only read.

    Variants live side by side, and only one process may fill a cache; one that is ended while it does leaves
    a lock behind, at which the next training fails.
    """
    import tensorflow as tf

    original, numbers = tf.data.Dataset.cache, itertools.count()

    def cache(self: Any, filename: Any = "", *arguments: Any, **options: Any) -> Any:
        if isinstance(filename, (str, os.PathLike)) and os.fspath(filename):
            filename = os.fspath(filename)
            if not Path(f"{filename}.index").exists():
                filename = str(Path(folder, f"cache-{next(numbers)}"))
        return original(self, filename, *arguments, **options)

    tf.data.Dataset.cache = cache


def _endless(job: VariedJob) -> dict[str, Any]:
    """The arguments of ``fit`` for data without end: as long epochs as before, which Keras 2 insists on."""
    if job.train_step is not None:
        return dict(job.fit)
    return {"steps_per_epoch": cardinality(job.dataset) or STEPS_PER_EPOCH, **job.fit}


#: The length of an epoch whose real length is not known.
STEPS_PER_EPOCH = 1000


def cardinality(data: Any) -> int | None:
    """Batches in a dataset; None when infinite, unknown, or other data."""
    if not is_dataset(data):
        return None
    count = int(data.cardinality())
    return count if count > 0 else None


class Repeated:
    """An iterable that yields the same batch for ever."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield self.batch


def first_batch(job: VariedJob) -> Any:
    """The first batch as a train step of this job would receive it.

    Keras is made to run one eager step that hands its data over instead of training, so that every
    kind of data goes through the adapter that ``fit`` uses, class weights included.
    """
    if job.train_step is not None:
        for batch in job.dataset:
            return batch
        raise NotTransformable("The dataset gave no batch.")

    caught: list[Any] = []

    def hand_over(data: Any) -> Any:
        caught.append(data)
        if len(caught) == 2:
            raise _Caught
        return {"loss": 0.0}

    assert job.original_fit is not None
    arguments = {**job.fit, "epochs": 1, "initial_epoch": 0, "verbose": 0, "callbacks": None}
    eagerly = replaced(job.model, train_step=hand_over, train_function=None, get_metrics_result=dict)
    with eagerly, _run_eagerly(job.model), contextlib.suppress(_Caught):
        job.original_fit(job.model, job.dataset, **arguments)
    if not caught:
        raise NotTransformable("The data gave no batch.")
    batch = max(caught, key=_size)  # a shuffled PyDataset may begin with its small last batch
    if isinstance(batch, (tuple, list)):
        return tuple(part for part in batch if part is not None)
    return batch


def _size(batch: Any) -> int:
    import tensorflow as tf

    shapes = (getattr(part, "shape", None) for part in tf.nest.flatten(batch))
    return next((int(shape[0]) for shape in shapes if shape), 0)


@contextlib.contextmanager
def replaced(model: Any, **attributes: Any) -> Iterator[None]:
    """Give a model other instance attributes for a while, past Keras's tracking of assignments."""
    before = {name: model.__dict__[name] for name in attributes if name in model.__dict__}
    for name, value in attributes.items():
        object.__setattr__(model, name, value)
    try:
        yield
    finally:
        for name in attributes:
            if name in before:
                object.__setattr__(model, name, before[name])
            else:
                model.__dict__.pop(name, None)


@contextlib.contextmanager
def _run_eagerly(model: Any) -> Iterator[None]:
    eagerly, compiled = model.run_eagerly, model.jit_compile
    model.jit_compile, model.run_eagerly = False, True
    try:
        yield
    finally:
        model.run_eagerly, model.jit_compile = eagerly, compiled


class _Caught(BaseException):
    """Leaves ``fit`` once the batch is in hand; no user code may catch it by accident."""
