"""What a pipeline reads from storage, held in memory instead; the rest of the pipeline stays as it is.

A stage that reads records (``TFRecordDataset``, ``from_generator``, an ``interleave`` that opens files, …) is
replaced by a cache of its first elements. Files that a function reads whole (``tf.io.read_file``) are copied
to ``ram://``, TensorFlow's file system in memory, and read from there, so that what the function does
besides, such as decoding, is still done. Runs in the child, with the user's TensorFlow.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from . import sources
from .datasetgraph import DatasetGraph
from .failures import describe
from .feeding import NotTransformable, before_prefetch, is_dataset

#: Elements of a repeated source whose length is not known: more than any measurement takes, but not endless,
#: so that a stage which waits for the end of its input does not wait for ever.
LONG = 10**9

#: Arrays in a pipeline become part of its graph, a message of at most 2 GB that is copied several times.
MOST_ARRAY_BYTES = 500_000_000

_NUMBERS = itertools.count()


@dataclass(frozen=True)
class CachedSources:
    """``dataset`` gives what the user's gives; ``elements`` of its sources are held, ``bytes`` in all.

    ``notes`` are sentences for the report: how much is held, and what else the difference to the unchanged
    job may contain.
    """

    dataset: Any
    notes: tuple[str, ...]
    elements: int
    bytes: int


@dataclass(frozen=True)
class Limits:
    """Until when elements of one source are read into memory; the first one always is."""

    elements: int
    bytes: int
    seconds: float


def cache_sources(dataset: Any, *, elements: int, bytes_limit: int, seconds_limit: float) -> CachedSources:
    """A dataset like ``dataset`` whose sources have been read before it is asked for its first element.

    Of each source at most ``elements`` are held, and its equal share of ``bytes_limit`` and
    ``seconds_limit``. A source that fits gives what it gave. Another is repeated to its length, or to `LONG`
    when its length is not known. A trailing prefetch stays the last stage, and options stay in force.

    Raises `NotTransformable` for other data than a ``tf.data.Dataset``, for one that reads nothing, and for
    one that TensorFlow cannot serialise or read.
    """
    if not is_dataset(dataset):
        kind = type(dataset).__name__
        raise NotTransformable(
            f"Only the sources of a tf.data.Dataset can be held in memory, not a {kind}'s."
        )
    if (size := array_bytes(dataset)) > MOST_ARRAY_BYTES:
        raise NotTransformable(
            f"The pipeline contains arrays of {size / 1e6:,.0f} MB, too much to build it a second time."
        )
    made: list[CachedSources] = []

    def change(inner: Any) -> Any:
        made.append(_cached(inner, Limits(elements, bytes_limit, seconds_limit)))
        return made[-1].dataset

    # Python would not know a prefetch that is built again for one, and others look for it.
    whole = before_prefetch(dataset, change)
    return replace(made[-1], dataset=whole)


def _cached(dataset: Any, limits: Limits) -> CachedSources:
    try:
        graph = DatasetGraph.of(dataset)
    except Exception as error:
        raise NotTransformable(f"TensorFlow cannot serialise this pipeline: {describe(error)}") from error
    found = sources.find(graph)
    shares = len(found.records) + len(found.paths)
    if not shares:
        in_memory = "The data is in memory already: nothing is read from storage."
        raise NotTransformable(found.notes[0] if found.notes else in_memory)
    limits = Limits(limits.elements, limits.bytes // shares, limits.seconds / shares)
    try:
        filled = _filled(dataset, graph, found, limits)
    except Exception as error:
        raise NotTransformable(
            f"What the pipeline reads cannot be held in memory: {describe(error)}"
        ) from error
    if not filled.elements:
        raise NotTransformable("The sources of the pipeline gave no element.")
    return filled


def _filled(dataset: Any, graph: DatasetGraph, found: sources.Sources, limits: Limits) -> CachedSources:
    import tensorflow as tf

    fed: dict[str, Any] = {}
    held: list[Held] = []
    for stage in found.records:
        source = Held(graph.build(stage), sources.reader(graph, stage), limits)
        source.fill()
        fed[stage] = source.lengthened()
        held.append(source)

    # Files are copied while the stages that read them run over their first paths. Where these are all paths,
    # what gives the paths stays as it is, shuffled anew in every epoch.
    paths = {stage: Held(graph.build(stage, fed=fed), "read_file", limits) for stage in found.paths}
    files = _Files(paths.values())
    copying = graph.with_paths(lambda path: tf.numpy_function(files.copy, [path], tf.string))
    for stage in found.files:
        for _ in copying.build(stage, fed={**fed, **{name: source.first for name, source in paths.items()}}):
            pass
    fed |= {stage: source.lengthened() for stage, source in paths.items() if source.full}
    held += paths.values()

    result = graph.with_lengths().with_paths(lambda path: tf.strings.join([files.folder, path]))
    cached = result.build(graph.output, dataset.element_spec, fed)
    if (options := dataset.options()) != tf.data.Options():
        cached = cached.with_options(options)  # in force already, but Python does not know it
    return CachedSources(
        dataset=cached,
        notes=(*(source.note() for source in held), *found.notes),
        elements=sum(source.count for source in held),
        bytes=sum(source.bytes for source in held),
    )


class Held:
    """A dataset whose ``first`` elements are cached while they are iterated for the first time."""

    def __init__(self, dataset: Any, name: str, limits: Limits) -> None:
        import tensorflow as tf

        self.name = name
        self.limits = limits
        self.length = int(dataset.cardinality())
        self.started = 0.0
        self.count = 0
        self.bytes = 0
        self.full = False

        def has_room(index: Any, element: Any) -> Any:
            # Not a variable: within a strategy it would be one per replica.
            return tf.ensure_shape(tf.numpy_function(self.admit, [index], tf.bool), ())

        admitted = dataset.enumerate().take_while(has_room)
        self.first = admitted.map(lambda index, element: element).cache()

    def fill(self) -> None:
        """Read the elements to be held, which are counted in ``bytes``."""
        import tensorflow as tf

        one_by_one = tf.data.Options()
        one_by_one.experimental_optimization.apply_default_optimizations = False  # no prefetch, no threads
        for element in self.first.with_options(one_by_one):
            self.bytes += sum(map(_size, element))

    def admit(self, index: int) -> bool:
        """Whether the element with that index, which is there, is held; the first False is the end."""
        if index == 0:
            self.started = time.monotonic()
        late = time.monotonic() - self.started > self.limits.seconds
        enough = late or self.bytes >= self.limits.bytes or index >= self.limits.elements
        self.full = bool(enough and index > 0)
        if not self.full:
            self.count = int(index) + 1
        return not self.full

    def lengthened(self) -> Any:
        """The elements held, as many as the dataset has."""
        import tensorflow as tf

        unknown = self.length == tf.data.UNKNOWN_CARDINALITY
        if self.full:
            return self.first.repeat().take(LONG if unknown else self.length)  # take(-1) takes all
        return (
            self.first if unknown else self.first.apply(tf.data.experimental.assert_cardinality(self.length))
        )

    def note(self) -> str:
        """How much is held, in a sentence."""
        size = f"{self.bytes / 1e6:,.1f} MB"
        if not self.full:
            return f"All {self.count:,} elements of {self.name} are held in memory ({size})."
        of = f" of {self.length:,}" if self.length > 0 else ""
        return (
            f"The first {self.count:,}{of} elements of {self.name} are held in memory ({size}) and repeated:"
            " losses do not compare."
        )


class _Files:
    """Copies in memory of the files that some sources name."""

    def __init__(self, named_by: Iterable[Held]) -> None:
        self.folder = f"ram://tfaudit/{next(_NUMBERS)}/"
        self.named_by = tuple(named_by)
        self.copied: set[bytes] = set()
        self.lock = threading.Lock()

    def copy(self, path: bytes) -> bytes:
        """Copy a file unless it is there; returns the copy's path. Several threads call this at once."""
        import tensorflow as tf

        target = self.folder.encode() + path
        if path not in self.copied:
            contents = tf.io.read_file(path)
            with self.lock:
                if path not in self.copied:
                    tf.io.write_file(target, contents)
                    self.copied.add(path)
                    for source in self.named_by:
                        source.bytes += int(tf.strings.length(contents))
        return target


def _size(tensor: Any) -> int:
    """Bytes of what a tensor holds."""
    import tensorflow as tf

    if tensor.dtype == tf.variant:  # a ragged or sparse element
        return len(tf.io.serialize_tensor(tensor).numpy())
    if tensor.dtype == tf.string:
        return int(tf.reduce_sum(tf.strings.length(tensor)))
    return int(tf.size(tensor)) * int(tensor.dtype.size)


def array_bytes(dataset: Any) -> int:
    """Bytes of the arrays that a pipeline was made of, strings not counted.

    They are no public attribute; they have had these names since TensorFlow 2.0.
    """
    shapes = ((tensor.shape.num_elements() or 0, tensor.dtype) for tensor in getattr(dataset, "_tensors", ()))
    own = sum(count * int(dtype.size) for count, dtype in shapes)
    return own + sum(map(array_bytes, dataset._inputs()))
