"""What the function of a tf.data stage does, told from its graph and TensorFlow's own registries.

Runs in the child, with the user's TensorFlow. Ops are looked up in the registries of op definitions and of
kernels, which are no public interface: where they are not found, nothing is said of an op.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from ..datasetgraph import MUST_COMPILE
from ..records import Work

#: Ops whose result depends on chance, or on a seed that is handed on from one element to the next.
IS_RANDOM = re.compile(r"Random|Rng|Multinomial|TruncatedNormal|DistortedBoundingBox|StochasticCast")

#: Ops that TensorFlow marks as stateful and that give the same for the same input all the same: calls, whose
#: functions are looked at themselves, checks, and look-ups in tables and variables that others fill.
HARMLESS = frozenset(
    {
        "Arg", "Assert", "Case", "HashTableV2", "If", "LookupTableFindV2", "LookupTableSizeV2", "NoOp",
        "Placeholder", "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "StatefulPartitionedCall",
        "VarHandleOp", "While",
    }
)  # fmt: skip

#: Datasets within a function are stages of their own; a shuffle keeps its seeds in one resource, a cache its
#: elements in another.
_HARMLESS = re.compile(r"Dataset(V\d+)?$|(SeedGenerator|MemoryCache)$")

#: What TensorFlow calls a map's function once it is traced.
_TRACED = re.compile(r"__inference_Dataset_map_(.+)_\d+$")

#: TensorFlow takes these at their word that they keep no state, but they run Python.
PYTHON = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})

#: Kernels for any device are registered as ``DEFAULT``; XLA's for a GPU exist in builds without CUDA, too.
ACCELERATOR_KERNELS = frozenset({"DEFAULT", "GPU", "XLA_GPU_JIT"})
XLA_KERNELS = frozenset({"XLA_CPU_JIT"})

#: Every build that can look anything up knows a kernel of this op.
_PROBE = "AddV2"

#: Texts of error messages: on an accelerator, and by XLA, checks are left out.
_ONLY_FOR_CHECKS = frozenset({"Assert", "Const"})


def of_graph(graph: Any) -> Work | None:
    """What a function's ``FuncGraph`` does; None where it cannot be read."""
    try:
        definition = graph.as_graph_def()
    except Exception:
        return None  # larger than a message may be
    return of_nodes(_nodes(definition))


def of_inner_maps(graph: Any, kind: str) -> Iterator[tuple[str, Work]]:
    """The maps of that kind (``ParallelMapDatasetV2``) that a stage's own function makes, in order.

    Each with the name of its function, as far as TensorFlow kept it.
    """
    definition = graph.as_graph_def()
    library = {function.signature.name: function.node_def for function in definition.library.function}
    for node in _nodes(definition):
        if node.op == kind:
            name = node.attr["f"].func.name
            yield _written_name(name), of_nodes(_reached(name, library))


def _reached(name: str, library: Mapping[str, Any]) -> Iterator[Any]:
    """The nodes of a function and of all that it calls."""
    names = [name]
    for called in names:
        for node in library.get(called, ()):
            yield node
            values = [value for attribute in node.attr.values() for value in _functions(attribute)]
            names += [other for other in (node.op, *values) if other in library and other not in names]


def _functions(attribute: Any) -> Iterator[str]:
    if attribute.HasField("func"):
        yield attribute.func.name
    yield from (function.name for function in attribute.list.func)


def _written_name(name: str) -> str:
    """``__inference_Dataset_map_decode_12`` to ``decode``; empty where a function is named otherwise."""
    match = _TRACED.match(name)
    written = match[1] if match else ""
    return "<lambda>" if written == "lambda" else written


def of_nodes(nodes: Iterable[Any]) -> Work:
    """What these ``NodeDef`` do, those of called functions included."""
    nodes = list(nodes)
    ops = sorted({node.op for node in nodes if _definition(node.op) is not None})
    strings = {node.op for node in nodes if _of_strings(node)} - _ONLY_FOR_CHECKS
    random = [op for op in ops if IS_RANDOM.search(op)]
    stateful = [op for op in ops if op not in random and _is_stateful(op)]
    return Work(
        ops=tuple(ops),
        random=tuple(random),
        stateful=tuple(stateful),
        not_on_accelerator=_without(ops, ACCELERATOR_KERNELS, strings),
        not_in_xla=_without(ops, XLA_KERNELS, strings),
        compiled=any(node.attr[MUST_COMPILE].b for node in nodes if MUST_COMPILE in node.attr),
    )


def static_bytes(spec: Any) -> int | None:
    """Bytes of an element; None where its shape varies, or it holds text or anything but tensors."""
    import tensorflow as tf

    total = 0
    for part in tf.nest.flatten(spec):
        if not isinstance(part, tf.TensorSpec) or part.dtype == tf.string:
            return None
        if not part.shape.is_fully_defined():
            return None
        total += int(part.shape.num_elements()) * int(part.dtype.size)
    return total


def _nodes(definition: Any) -> Iterator[Any]:
    yield from definition.node
    for function in definition.library.function:
        yield from function.node_def


def _of_strings(node: Any) -> bool:
    string = 7  # DT_STRING
    return any(value.type == string or string in value.list.type for value in node.attr.values())


def _is_stateful(op: str) -> bool:
    if op in PYTHON:
        return True
    return _definition(op).is_stateful and op not in HARMLESS and not _HARMLESS.search(op)


def _without(ops: Iterable[str], devices: frozenset[str], strings: set[str]) -> tuple[str, ...] | None:
    """The ops without a kernel for such a device; None where the registry knows no kernels for it."""
    if not _kernels(_PROBE) & (devices - {"DEFAULT"}):
        return None
    # "Placeholder" stands for an argument; functions are looked up op by op.
    told = (op for op in ops if op not in ("Arg", "Placeholder"))
    return tuple(op for op in told if op in PYTHON or op in strings or not _kernels(op) & devices)


@cache
def _definition(op: str) -> Any:
    """The registered definition of an op; None for a function's name, or without the registry."""
    try:
        from tensorflow.python.framework import op_def_registry
    except ImportError:
        return None
    return op_def_registry.get(op)


@cache
def _kernels(op: str) -> frozenset[str]:
    """Kinds of device for which a kernel of the op is registered."""
    _have_xla_register()
    try:
        from tensorflow.python.framework import kernels
    except ImportError:
        return frozenset()
    return frozenset(kernel.device_type for kernel in kernels.get_registered_kernels_for_op(op).kernel)


@cache
def _have_xla_register() -> None:
    """XLA registers its kernels when it first compiles something."""
    import contextlib

    import tensorflow as tf

    with contextlib.suppress(Exception):  # a build without XLA
        tf.function(tf.identity, jit_compile=True, autograph=False)(tf.constant(0.0))
