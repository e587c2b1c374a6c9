"""What each map of a ``tf.data`` pipeline costs, measured by leaving parts of the pipeline out.

The pipeline is built again so that the thread that asks for a batch does all of the work for it, and no
buffer lets it run ahead: what a batch takes is then the sum of what its stages take. What feeds a map, or
what it gives, is held in memory in turn, so that the difference is the map. Runs in the child, without
training, for a few seconds.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import machine
from .datasetgraph import DatasetGraph
from .failures import describe
from .feeding import NotTransformable, is_dataset
from .mapcosts import FEWEST_ROUNDS
from .program import moves
from .records import Program, Weighed, WeighedMap
from .sourcecache import MOST_ARRAY_BYTES, Held, Limits, array_bytes

#: What is held of what a stage gives: enough for its elements to differ, and of the free memory no more than
#: that share.
HELD, HELD_SHARE = Limits(elements=256, bytes=64_000_000, seconds=0.4), 0.01

#: All ways of running the pipeline take turns of at least `TURN_S`, for so many rounds or so long.
ROUNDS, TURN_S, LONGEST_S = 5, 0.04, 4.0

#: A pipeline that needs longer for all of it, or waits for what never comes, is left alone.
LONGEST_ALL_S = 40.0

#: A batch that takes longer by itself leaves no time for rounds.
LONGEST_BATCH_S = 0.4

#: More maps than this are not weighed.
MOST_MAPS = 4

_IS_CACHE = re.compile(r"(Cache|Snapshot)Dataset(V\d+)?$")


def weigh(dataset: Any, program: Program) -> Weighed:
    """Weigh the maps of ``dataset``, which ``program.pipeline`` describes.

    Raises `NotTransformable` for other data than a ``tf.data.Dataset``, and nothing else.
    """
    if not is_dataset(dataset):
        kind = type(dataset).__name__
        raise NotTransformable(f"Only the maps of a tf.data.Dataset can be weighed, not a {kind}'s.")
    late = f"Weighing the maps took more than {LONGEST_ALL_S:.0f} s."
    found = [Weighed(problem=late)]
    thread = threading.Thread(target=_weigh, args=(dataset, program, found), daemon=True)
    thread.start()
    thread.join(LONGEST_ALL_S)
    return found[-1]


def _weigh(dataset: Any, program: Program, found: list[Weighed]) -> None:
    """Append what is known as soon as it is."""
    graph = _built_again(dataset)
    if isinstance(graph, Weighed):
        found.append(graph)
        return
    found.append(Weighed(is_portable=True, problem=found[-1].problem))
    try:
        with _one_core():
            found.append(_weighed(graph.serial(), program))
    except Exception as error:
        problem = f"The maps could not be weighed: {describe(error)}"
        found.append(Weighed(is_portable=True, problem=problem))


def _built_again(dataset: Any) -> DatasetGraph | Weighed:
    """The pipeline's graph, which was seen to give a batch; or why there is none."""
    if (size := array_bytes(dataset)) > MOST_ARRAY_BYTES:
        return Weighed(
            problem=f"The pipeline contains arrays of {size / 1e6:,.0f} MB: it is not built again."
        )
    try:
        graph = DatasetGraph.of(dataset)
        next(iter(graph.build(graph.output, dataset.element_spec)))
    except Exception as error:
        problem = f"The pipeline cannot be serialised and built again: {describe(error)}"
        return Weighed(is_portable=False, problem=problem)
    return graph


def _weighed(graph: DatasetGraph, program: Program) -> Weighed:
    places = [place for place, stage in enumerate(program.pipeline) if stage.op == "map" and not stage.inside]
    names = graph.maps()
    if len(names) != len(places):
        return Weighed(is_portable=True, problem="The pipeline's maps were not found in its graph.")
    heavy, compilable = moves.worked(program), moves.compilable(program)
    chosen = {
        place: name for place, name in zip(places, names, strict=True) if program.pipeline[place] in heavy
    }
    if not chosen:
        return Weighed(is_portable=True)
    kept = {name: _held(graph, name, {}) for name in _caches(graph)}
    whole = _Course(graph.build(graph.output, fed=kept))
    if whole.batch_s > LONGEST_BATCH_S:
        problem = f"A batch takes one thread {whole.batch_s:.1f} s: too long to weigh its maps."
        return Weighed(is_portable=True, problem=problem)
    ways = {
        place: _Map(graph, name, kept, program.pipeline[place] in compilable)
        for place, name in list(chosen.items())[:MOST_MAPS]
    }
    courses = [whole, *(course for way in ways.values() for course in way.courses)]
    until = time.monotonic() + LONGEST_S
    for number in range(ROUNDS):
        if number >= FEWEST_ROUNDS and time.monotonic() > until:
            break
        for course in courses:
            course.run()
    return Weighed(
        whole_s=tuple(whole.batches_s),
        maps=tuple(
            WeighedMap(
                stage=place,
                from_input_s=tuple(way.from_input.batches_s),
                from_output_s=tuple(way.from_output.batches_s),
                compiled_s=tuple(way.compiled.batches_s) if way.compiled else (),
                problem=way.problem,
            )
            for place, way in ways.items()
        ),
        is_portable=True,
    )


class _Map:
    """The pipeline with what feeds one of its maps held in memory, with what that gives, and compiled."""

    def __init__(self, graph: DatasetGraph, name: str, kept: Mapping[str, Any], compilable: bool) -> None:
        (feeding, *_) = graph.inputs(name)
        fed = {**kept, feeding: kept[feeding] if feeding in kept else _held(graph, feeding, kept)}
        given = {**kept, name: _held(graph, name, fed)}
        self.from_input = _Course(graph.build(graph.output, fed=fed))
        self.from_output = _Course(graph.build(graph.output, fed=given))
        self.compiled: _Course | None = None
        self.problem = ""
        if compilable:
            try:
                compiled = _Course(graph.compiled(name).build(graph.output, fed=fed))
                if compiled.batch_s <= LONGEST_BATCH_S:
                    self.compiled = compiled
                else:
                    self.problem = f"Compiled by XLA, a batch takes {compiled.batch_s:.1f} s"
            except Exception as error:
                self.problem = f"XLA did not compile it: {describe(error)}"

    @property
    def courses(self) -> list[_Course]:
        return [self.from_input, self.from_output, *([self.compiled] if self.compiled else [])]


class _Course:
    """One way of running the pipeline, for a few batches each time."""

    def __init__(self, dataset: Any) -> None:
        self._batches = iter(dataset.repeat().with_options(_one_thread()))
        self.batches_s: list[float] = []
        self._next()  # traces, compiles and opens files
        self._count = 1
        self.batch_s = self._time()
        self._count = max(1, math.ceil(TURN_S / self.batch_s))

    def _next(self) -> None:
        if next(self._batches, None) is None:
            raise ValueError("what is held in memory of a stage gives no batch")

    def run(self) -> None:
        """Take a turn."""
        self.batches_s.append(self._time())

    def _time(self) -> float:
        began = time.perf_counter()
        for _ in range(self._count):
            self._next()
        return (time.perf_counter() - began) / self._count


@contextlib.contextmanager
def _one_core() -> Iterator[None]:
    """Have all threads run on the same core, where the system lets a process choose.

    Otherwise they hand work to each other across cores, and what a batch takes jumps up and down.
    """
    if not hasattr(os, "sched_setaffinity"):  # other systems than Linux
        yield
        return
    allowed = os.sched_getaffinity(0)
    chosen = sorted(allowed)[os.getpid() % len(allowed)]  # another audit may have chosen one as well
    _run_on({chosen})
    try:
        yield
    finally:
        _run_on(allowed)


def _run_on(cores: set[int]) -> None:
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            os.sched_setaffinity(int(thread.name), cores)


def _one_thread() -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    options.threading.max_intra_op_parallelism = 1
    options.threading.private_threadpool_size = 1
    return options


def _held(graph: DatasetGraph, stage: str, fed: Mapping[str, Any]) -> Any:
    """What a stage gives, from memory."""
    room = min(HELD.bytes, int(HELD_SHARE * machine.available_memory_bytes()))
    held = Held(graph.build(stage, fed=fed), stage, replace(HELD, bytes=room))
    held.fill()
    if not held.count:
        raise ValueError("a stage gave no element")
    return held.lengthened()


def _caches(graph: DatasetGraph) -> list[str]:
    """The stages that keep what they give, those aside that feed another of them."""
    upstream = graph.upstream(graph.output)
    found = [name for name in (graph.output, *upstream) if _IS_CACHE.match(graph.nodes[name].op)]
    return [name for name in found if not any(name in graph.upstream(other) for other in found)]
