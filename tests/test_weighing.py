"""Pipelines built again for weighing them, and what their maps are found to take."""

from __future__ import annotations

import math
import threading
import time
from statistics import median
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tfaudit import weighing
from tfaudit.datasetgraph import DatasetGraph
from tfaudit.feeding import NotTransformable
from tfaudit.program import pipeline, tuning
from tfaudit.records import Program, Weighed
from tfaudit.weighing import weigh

pytestmark = pytest.mark.tensorflow

Dataset = tf.data.Dataset
AUTOTUNE = tf.data.AUTOTUNE


def sleeps(seconds: float) -> Any:
    """A function for a map that takes so long."""

    def sleep(value: Any) -> Any:
        time.sleep(seconds)
        return value

    return lambda value: tf.ensure_shape(tf.numpy_function(sleep, [value], tf.int64), [])


def numbers(dataset: Any) -> list[Any]:
    return [batch.tolist() for batch in dataset.as_numpy_iterator()]


def program_of(dataset: Any) -> Program:
    return Program(form="script", data_kind="tf.data", pipeline=pipeline.stages(dataset))


def weighed(dataset: Any) -> list[tuple[float, float, float, float]]:
    """Of each map that was weighed: seconds per batch as a whole, from its input, from its output, compiled.

    Medians, and planted effects so large that a busy machine hides none.
    """
    found = weigh(dataset, program_of(dataset))
    assert found.problem == ""
    whole = median(found.whole_s)
    return [
        (
            whole,
            median(each.from_input_s),
            median(each.from_output_s),
            median(each.compiled_s) if each.compiled_s else math.nan,
        )
        for each in found.maps
    ]


PIPELINES = {
    "serial": lambda: Dataset.range(6).map(lambda n: n * 2).batch(2),
    "parallel": lambda: (
        Dataset.range(6).map(lambda n: n * 2, num_parallel_calls=4).batch(2, num_parallel_calls=2).prefetch(1)
    ),
    "an interleave": lambda: (
        Dataset.range(2).interleave(lambda n: Dataset.from_tensors(n).repeat(3), cycle_length=2).batch(2)
    ),
    "a parallel interleave": lambda: (
        Dataset.range(2)
        .interleave(lambda n: Dataset.from_tensors(n).repeat(3), cycle_length=2, num_parallel_calls=AUTOTUNE)
        .batch(2)
    ),
    "a prefetch in the middle": lambda: Dataset.range(6).prefetch(2).map(lambda n: n + 1).batch(2),
    "a captured variable": lambda: Dataset.range(6).map(lambda n: n + VARIABLE).batch(2),
}
VARIABLE = tf.Variable(5, dtype=tf.int64)


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_gives_the_same_serial_and_parallel(name: str) -> None:
    dataset = PIPELINES[name]()
    graph, wanted = DatasetGraph.of(dataset), numbers(dataset)
    serial, parallel = graph.serial(), graph.parallel()
    assert numbers(serial.build(serial.output, dataset.element_spec)) == wanted
    assert numbers(parallel.build(parallel.output, dataset.element_spec)) == wanted
    ops = {node.op for node in serial.nodes.values()}
    assert not [op for op in ops if op.startswith(("Parallel", "Prefetch"))]
    assert not {node.op for node in parallel.nodes.values()} & {"MapDataset", "InterleaveDataset"}


def test_a_parallel_pipeline_stays_what_it_is() -> None:
    graph = DatasetGraph.of(PIPELINES["parallel"]())
    assert graph.parallel() is graph


def test_a_compiled_map_gives_the_same() -> None:
    """With what its function captured."""
    dataset = Dataset.range(4).map(lambda n: n * VARIABLE).batch(2)
    graph = DatasetGraph.of(dataset)
    (name,) = graph.maps()
    assert numbers(graph.compiled(name).build(graph.output, dataset.element_spec)) == [[0, 5], [10, 15]]


def test_what_xla_cannot_compile_raises() -> None:
    dataset = Dataset.range(4).map(lambda n: tf.strings.length(tf.strings.as_string(n)))
    graph = DatasetGraph.of(dataset)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?i)compil"):
        list(graph.compiled(graph.maps()[0]).build(graph.output, dataset.element_spec))


def test_shares_are_those_that_were_planted() -> None:
    """3 ms and 1 ms per element, behind a source of 2 ms that counts for neither."""
    dataset = (
        Dataset.range(64)
        .map(sleeps(0.003), num_parallel_calls=AUTOTUNE)
        .shuffle(64)
        .map(sleeps(0.001))
        .batch(4)
        .prefetch(AUTOTUNE)
    )
    first, second = ((fed - given) / whole for whole, fed, given, _ in weighed(dataset))
    assert first == pytest.approx(0.75, abs=0.2)
    assert second == pytest.approx(0.25, abs=0.2)


def test_what_a_cache_holds_is_not_weighed() -> None:
    dataset = Dataset.range(64).map(sleeps(0.002)).cache().map(sleeps(0.001)).batch(4)
    ((whole, fed, given, _),) = weighed(dataset)
    assert (fed - given) / whole > 0.6


def test_compiling_saves_what_starting_many_small_ops_costs() -> None:
    def features(row: Any) -> Any:
        for _ in tf.range(100):
            row = row - 0.1 * tf.sin(row)
        return row

    dataset = Dataset.from_tensor_slices(np.ones((16, 32), "f4")).map(features).batch(4)
    ((_, fed, _, compiled),) = weighed(dataset)
    assert compiled < fed / 2


def test_a_pipeline_without_weight_is_only_built_again() -> None:
    dataset = Dataset.range(8).batch(2)
    assert weigh(dataset, program_of(dataset)) == Weighed(is_portable=True)


def test_a_batch_that_takes_too_long_is_said_to() -> None:
    dataset = Dataset.range(8).map(sleeps(0.2)).batch(4)
    found = weigh(dataset, program_of(dataset))
    assert found.maps == ()
    assert found.problem == "A batch takes one thread 0.8 s: too long to weigh its maps."


def test_what_is_held_may_give_no_batch() -> None:
    dataset = Dataset.range(5000).map(
        lambda n: tf.math.bincount([tf.cast(n, tf.int32)])[0] + tf.cast(n, tf.int32)
    )
    dataset = dataset.filter(lambda n: n >= 4000).batch(8)
    found = weigh(dataset, program_of(dataset))
    assert found.is_portable
    assert found.problem == (
        "The maps could not be weighed: ValueError: what is held in memory of a stage gives no batch."
    )


def test_what_does_not_end_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighing, "LONGEST_ALL_S", 0.3)
    dataset = Dataset.range(8).map(sleeps(0.5)).batch(4)
    before = set(threading.enumerate())
    found = weigh(dataset, program_of(dataset))
    for left in set(threading.enumerate()) - before:  # an audit's child ends with it; other tests would not
        left.join(60.0)
    assert (found.problem, found.is_portable) == ("Weighing the maps took more than 0 s.", None)


def test_what_cannot_be_built_again_is_told() -> None:
    def broken(value: Any) -> Any:
        raise ValueError("no such row")

    dataset = Dataset.range(8).map(lambda n: tf.numpy_function(broken, [n], tf.int64)).batch(2)
    found = weigh(dataset, program_of(dataset))
    assert found.is_portable is False
    assert found.problem.startswith("The pipeline cannot be serialised and built again: ")


def test_other_data_is_not_weighed() -> None:
    with pytest.raises(
        NotTransformable, match=r"^Only the maps of a tf.data.Dataset can be weighed, not a list's.$"
    ):
        weigh([1, 2], Program(form="script"))


def test_autotune_tells_what_it_chose() -> None:
    dataset = Dataset.range(10_000).map(lambda n: n + 1, num_parallel_calls=AUTOTUNE).batch(8)
    batches = iter(dataset.prefetch(AUTOTUNE))
    for _ in range(100):
        next(batches)
    found = tuning.chosen(batches)
    if hasattr(tf.data.experimental, "get_model_proto"):
        assert found is not None
        assert {"parallelism", "buffer_size"} <= {each.parameter for each in found}
        assert all(each.value >= 0 for each in found)
    else:
        assert found is None


def test_other_iterators_are_not_asked() -> None:
    assert tuning.chosen(iter([1, 2])) is None
    assert tuning.chosen(None) is None
