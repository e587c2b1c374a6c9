"""The files that a ``tf.data`` pipeline reads, told from its graph. Runs in the child.

A reader's names are a constant in the graph, or elements of the stage before it, such as ``list_files``,
which is run alone. File systems are asked for sizes, no file is opened, and none of the user's Python runs.
"""

from __future__ import annotations

import os
import random
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import sources
from ..datasetgraph import DatasetGraph, producer
from ..failures import describe
from ..records import Files
from ..sourcecache import MOST_ARRAY_BYTES, array_bytes
from .pipeline import PYTHON_OPS

#: Bounds on what is looked at: more names tell no more of their sizes.
MOST_NAMES = 10_000
LONGEST_S = 2.0

#: Stages that give the names they are given, some of them only after a long while or for ever.
_REARRANGES = re.compile(r"(Shuffle|ShuffleAndRepeat|Repeat|Prefetch)Dataset")

#: Names that are taken from the pipeline at once.
BATCH = 256


@dataclass(frozen=True)
class Opened:
    """A reader with the names that it is given; ``is_complete`` says that these are all."""

    reader: sources.Reader
    names: tuple[str, ...] = ()
    is_complete: bool = True


@dataclass(frozen=True)
class Listing:
    """What a pipeline opens, and a sentence on what could not be told."""

    opened: tuple[Opened, ...] = ()
    is_cached: bool = False
    problem: str = ""


def read(dataset: Any, *, longest_s: float = LONGEST_S, most: int = MOST_NAMES) -> Files:
    """What is told of the files that a ``tf.data.Dataset`` reads."""
    deadline = time.monotonic() + longest_s
    listing = listed(dataset, deadline, most)
    names = list(dict.fromkeys(name for opened in listing.opened for name in opened.names))
    # Should time run out, those that were sized are like the others.
    random.Random(0).shuffle(names)
    sizes = sorted(_sizes(names, deadline))
    return Files(
        readers=tuple(dict.fromkeys(opened.reader.name for opened in listing.opened)),
        compressions=tuple(
            dict.fromkeys(opened.reader.compression or "" for opened in listing.opened if opened.names)
        ),
        count=len(names),
        is_complete=all(opened.is_complete for opened in listing.opened),
        sized=len(sizes),
        sized_bytes=sum(sizes),
        smallest_bytes=sizes[0] if sizes else 0,
        median_bytes=sizes[len(sizes) // 2] if sizes else 0,
        largest_bytes=sizes[-1] if sizes else 0,
        example=min(names, default=""),
        is_cached=listing.is_cached,
        problem=listing.problem,
    )


def listed(dataset: Any, deadline: float, most: int = MOST_NAMES) -> Listing:
    """What a pipeline opens, of each reader at most so many names. Raises nothing."""
    try:
        if (arrays := array_bytes(dataset)) > MOST_ARRAY_BYTES:
            return Listing(
                problem=f"The pipeline contains arrays of {arrays / 1e6:,.0f} MB, too much to look through."
            )
        graph = DatasetGraph.of(dataset)
    except Exception as error:
        return Listing(problem=f"TensorFlow cannot serialise this pipeline: {describe(error)}")
    found = sources.find(graph)
    opened = tuple(_opened(graph, each, deadline, most) for each in sources.readers(graph, found))
    nameless = dict.fromkeys(each.reader.name for each in opened if not each.names)
    problem = ""
    if nameless:
        problem = f"Which files {' and '.join(nameless)} reads cannot be told from the pipeline's graph."
    elif found.python:
        problem = "Python code in the pipeline may read files, which TensorFlow cannot tell."
    return Listing(opened, found.cached, problem)


def _opened(graph: DatasetGraph, reader: sources.Reader, deadline: float, most: int) -> Opened:
    if not reader.opens_names:
        return Opened(reader)
    try:
        before = graph.inputs(reader.stage)[:1]
        if not before:
            return Opened(reader, _constant(graph, reader.stage))
        names = dict.fromkeys(_elements(graph, before[0], deadline, most))
    except Exception:
        return Opened(reader)
    return Opened(reader, tuple(names)[:most], len(names) <= most and time.monotonic() < deadline)


def _constant(graph: DatasetGraph, stage: str) -> tuple[str, ...]:
    """The names that a reader at the pipeline's beginning is given."""
    import tensorflow as tf

    node = graph.nodes[producer(graph.nodes[stage].input[0])]
    while node.op == "Identity":
        node = graph.nodes[producer(node.input[0])]
    if node.op != "Const":
        return ()
    return tuple(map(os.fsdecode, tf.make_ndarray(node.attr["value"].tensor).ravel().tolist()))


def _elements(graph: DatasetGraph, stage: str, deadline: float, most: int) -> Iterator[str]:
    """The strings in a stage's elements that name files; nothing where Python code makes them."""
    import tensorflow as tf

    while _REARRANGES.match(graph.nodes[stage].op):
        (stage,) = graph.inputs(stage)
    ops = frozenset().union(*(graph.ops(name) for name in (stage, *graph.upstream(stage))))
    if not PYTHON_OPS.isdisjoint(ops):
        return
    elements = graph.build(stage)
    specs = elements.element_spec
    texts = [place for place, spec in enumerate(specs) if spec.dtype == tf.string and spec.shape.rank == 0]
    if not texts:
        return
    strings = elements.map(lambda *parts: tuple(parts[place] for place in texts))
    chosen = None
    # One more than is kept tells that there are more; a repeated source ends there, too.
    for columns in strings.take(most + 1).batch(BATCH):
        rows = [list(map(os.fsdecode, column.numpy())) for column in columns]
        if chosen is None:
            chosen = next((place for place, row in enumerate(rows) if size(row[0]) is not None), None)
        if chosen is None:
            return
        yield from rows[chosen]
        if time.monotonic() > deadline:
            return


def _sizes(names: list[str], deadline: float) -> Iterator[int]:
    for name in names:
        if (found := size(name)) is not None:
            yield found
        if time.monotonic() > deadline:
            return


def size(name: str) -> int | None:
    """The bytes of a file, local or on another file system that TensorFlow knows; None without it."""
    import tensorflow as tf

    try:
        if "://" not in name:
            found = Path(name).stat()
            return found.st_size if stat.S_ISREG(found.st_mode) else None
        told = tf.io.gfile.stat(name)
        return None if told.is_directory else int(told.length)
    except (OSError, ValueError, tf.errors.OpError):
        return None
