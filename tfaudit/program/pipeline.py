"""The tf.data pipeline of a job as a list of stages. Runs in the child, with the user's TensorFlow.

Stages are read from the Python objects that tf.data keeps for each transformation; their class and
attribute names are private, so whatever is not found is left out rather than guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from ..datasetgraph import is_map
from ..records import Stage, Work
from . import work

#: Ops that call back into the Python interpreter.
PYTHON_OPS = work.PYTHON | {"GeneratorDataset"}

#: Where the functions are that TensorFlow maps by itself, for ``unbatch`` or ``rebatch`` say.
_OF_TENSORFLOW = re.compile(r"[/\\]tensorflow[/\\]python[/\\]data[/\\]")

#: Class or op names, without ``Dataset`` and version, that differ from the method's name.
METHOD_NAMES = {
    "parallel_map": "map",
    "parallel_interleave": "interleave",
    "parallel_batch": "batch",
    "parallel_filter": "filter",
    "memory_cache": "cache",
    "tensor_slice": "from_tensor_slices",
    "tensor": "from_tensors",
    "csv": "CsvDataset",
    "tf_record": "TFRecordDataset",
    "text_line": "TextLineDataset",
    "fixed_length_record": "FixedLengthRecordDataset",
    "generator": "from_generator",
    "options": "with_options",
    "zip": "zip",
    "directed_interleave": "sample_from_datasets",
}


def stages(dataset: Any) -> tuple[Stage, ...]:
    """The pipeline of a ``tf.data.Dataset`` from its sources to its end."""
    return tuple(_walk(dataset))


def element_spec(dataset: Any) -> tuple[str, ...]:
    """``name: dtype[shape]`` for each component of a dataset's elements."""
    return tuple(_specs(dataset.element_spec, ""))


def _specs(spec: Any, name: str) -> list[str]:
    if isinstance(spec, Mapping):
        parts = list(spec.items())
    elif isinstance(spec, (tuple, list)):
        labels = ("x", "y", "sample_weight") if not name else range(len(spec))
        parts = list(zip(labels, spec, strict=False))
    else:
        shape = getattr(spec, "shape", None)
        if shape is None or shape.rank is None:
            dimensions = "…"
        else:
            dimensions = ", ".join("?" if size is None else str(size) for size in shape)
        ragged = "ragged " if "Ragged" in type(spec).__name__ else ""
        dtype = getattr(getattr(spec, "dtype", None), "name", type(spec).__name__)
        return [f"{name or 'x'}: {ragged}{dtype}[{dimensions}]"]
    return [line for key, part in parts for line in _specs(part, f"{name}.{key}" if name else str(key))]


def options(dataset: Any) -> dict[str, str]:
    """The options that are in force and set to something, by their full names.

    What is set lies in no public attribute of ``tf.data.Options``; it has had this name since TensorFlow 2.0.
    """
    return dict(_set_options(dataset.options(), ""))


def _set_options(given: Any, prefix: str) -> Iterator[tuple[str, str]]:
    usual = type(given)()
    for name, value in sorted(getattr(given, "_options", {}).items()):
        if hasattr(value, "_options"):
            yield from _set_options(value, f"{prefix}{name}.")
        elif value != getattr(usual, name):
            yield f"{prefix}{name}", str(getattr(value, "name", value))


def _walk(dataset: Any, before: tuple[str, ...] = ()) -> Iterator[Stage]:
    """``before`` are the stages that the dataset feeds."""
    op = method_name(type(dataset).__name__)
    function = getattr(dataset, "_map_func", None) or getattr(dataset, "_predicate", None)
    graph = getattr(getattr(function, "function", None), "graph", None)
    written = getattr(function, "_func", None)
    inner = {} if graph is None else _op_types(graph)
    if "GeneratorDataset" in inner:
        # from_generator is built from flat_map over a one-element dataset of generator ids.
        yield Stage(op="from_generator", python=True, before=before, elements=_elements(dataset))
        return
    sources = [stage for source in dataset._inputs() for stage in _walk(source, (op, *before))]
    yield from sources
    after = tuple(stage.op for stage in sources if not stage.inside)
    after_varying = any(stage.after_varying or _varies(stage) for stage in sources)
    inner_varying = after_varying
    for nested in _nested(op, inner, graph):
        yield replace(nested, after=after, before=(op, *before), after_varying=inner_varying)
        inner_varying = inner_varying or _varies(nested)
    parallel = "Parallel" in type(dataset).__name__
    yield Stage(
        op=op,
        function=_name(written),
        location=_location(written),
        num_parallel_calls=_number(dataset, "_num_parallel_calls") if parallel else None,
        buffer_size=_number(dataset, "_buffer_size"),
        batch_size=_number(dataset, "_batch_size"),
        drop_remainder=_flag(dataset, "_drop_remainder"),
        deterministic={"true": True, "false": False}.get(getattr(dataset, "_deterministic", "")),
        element=_element(dataset),
        is_own=not _OF_TENSORFLOW.search(_location(written) or ""),
        python=not PYTHON_OPS.isdisjoint(inner),
        work=_work(dataset, graph),
        after=after,
        before=before,
        after_varying=after_varying,
        elements=_elements(dataset),
    )


def _varies(stage: Stage) -> bool:
    """Whether a stage may give something else in every epoch, another order aside."""
    if stage.op == "random" or stage.python:
        return True
    return stage.work is not None and not stage.work.is_deterministic


def _work(dataset: Any, graph: Any) -> Work | None:
    done = None if graph is None else work.of_graph(graph)
    if done is None:
        return None
    sources = [source.element_spec for source in dataset._inputs()]
    return replace(
        done, bytes_in=work.static_bytes(sources), bytes_out=work.static_bytes(dataset.element_spec)
    )


def _element(dataset: Any) -> tuple[str, ...]:
    try:
        return element_spec(dataset)
    except Exception:
        return ()  # a dataset of another package


def _elements(dataset: Any) -> int | None:
    """The cardinality: -1 for endless; None where it is not known."""
    try:
        count = int(dataset.cardinality())
    except Exception:
        return None  # a dataset of another package
    return count if count >= -1 else None


_DATASET_OPS = ("Dataset", "DatasetV2", "DatasetV3", "DatasetV4")


def method_name(kind: str) -> str:
    """``_ParallelMapDataset`` or ``ParallelMapDatasetV2`` to ``map``: the method that a user wrote."""
    bare = re.sub(r"Dataset(V\d)?$|DatasetV\dAdapter$", "", kind.lstrip("_"))
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", bare).lower()
    return METHOD_NAMES.get(snake, snake)


def _nested(op: str, kinds: Iterable[str], graph: Any) -> Iterator[Stage]:
    """The stages that a stage's function makes: every map with what it does, one of each other kind."""
    for kind in kinds:
        if not kind.endswith(_DATASET_OPS):
            continue
        parallel = -1 if kind.startswith("Parallel") else None
        stage = Stage(op=method_name(kind), inside=op, num_parallel_calls=parallel)
        if not is_map(kind):
            yield stage
            continue
        for name, done in work.of_inner_maps(graph, kind):
            yield replace(stage, function=name or None, work=done)


def _op_types(graph: Any) -> dict[str, None]:
    """Types of the ops in a function's graph and in the functions that it calls, in order."""
    definition = graph.as_graph_def()
    nodes = [*definition.node]
    for function in definition.library.function:
        nodes += function.node_def
    return dict.fromkeys(node.op for node in nodes)


def _name(function: Any) -> str | None:
    if function is None:
        return None
    return " ".join(str(getattr(function, "__name__", None) or type(function).__name__).split())


def _location(function: Any) -> str | None:
    function = getattr(function, "__wrapped__", function)
    method = vars(type(function)).get("__call__")
    code = getattr(function, "__code__", None) or getattr(method, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else None


def _number(dataset: Any, attribute: str) -> int | None:
    value = getattr(dataset, attribute, None)
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None  # a symbolic tensor inside another function


def _flag(dataset: Any, attribute: str) -> bool | None:
    value = getattr(dataset, attribute, None)
    try:
        return None if value is None else bool(value)
    except TypeError:
        return None
