"""A pipeline made parallel where it is not: what TensorFlow's guides advise first. In the child."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .datasetgraph import DatasetGraph
from .failures import describe
from .feeding import NotTransformable, before_prefetch, is_dataset, trailing_prefetch
from .job import VariedJob

NOTHING_TO_ADD = "Every stage that can be parallel is, and a prefetch ends the pipeline."


def in_parallel(job: VariedJob) -> VariedJob:
    """The same job whose maps and interleaves run in parallel, with a prefetch at the end.

    Raises `NotTransformable` for other data than a ``tf.data.Dataset``, for one that TensorFlow cannot
    serialise, and where there is nothing to add.
    """
    import tensorflow as tf

    if not is_dataset(job.dataset):
        kind = type(job.dataset).__name__
        raise NotTransformable(f"Only a tf.data.Dataset takes parallel calls, not a {kind}.")
    changed: list[bool] = []

    def change(inner: Any) -> Any:
        graph = DatasetGraph.of(inner)
        parallel = graph.parallel()
        changed.append(parallel is not graph)
        if not changed[-1]:
            return inner
        built = parallel.build(parallel.output, inner.element_spec)
        return built.with_options(inner.options())  # in force already, but Python does not know it

    try:
        dataset = before_prefetch(job.dataset, change)
    except Exception as error:
        raise NotTransformable(f"TensorFlow cannot build this pipeline again: {describe(error)}") from error
    if trailing_prefetch(job.dataset) is None:
        return replace(job, dataset=dataset.prefetch(tf.data.AUTOTUNE))
    if not any(changed):
        raise NotTransformable(NOTHING_TO_ADD)
    return replace(job, dataset=dataset)
