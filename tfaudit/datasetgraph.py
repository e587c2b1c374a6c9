"""A ``tf.data`` pipeline as a graph that can be built again with other datasets in place of some stages.

TensorFlow serialises a dataset to a ``GraphDef``: a node per stage, the users' functions in its library.
Tables, variables and random generators that a function captured become copies, which hold what they held
then. Python functions stay tokens, valid in this process for as long as what they belong to is kept.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

#: Names of ops that make a dataset.
IS_DATASET = re.compile(r"Dataset(V\d+)?$")

#: Ops that make elements before they are asked for, and give them on unchanged.
_IS_AHEAD = re.compile(r"(Prefetch|Shuffle)Dataset(V\d+)?$")

_IS_MAP = re.compile(r"(Parallel)?MapDataset(V\d+)?$")

#: Where a ``shuffle`` keeps its seeds and a ``cache`` its elements; made where there is none of that name.
_IS_MEMORY = re.compile(r"/(SeedGenerator|MemoryCache)_\d+$")

#: The value of ``external_state_policy`` with which state is copied without a warning.
_IGNORE_STATE = 1

#: Parallel stages: the serial ones that do the same, and which of their inputs, after those of the
#: function, these do without, counted from the end.
_SERIAL = {
    "ParallelBatchDataset": ("BatchDatasetV2", slice(-2, -1)),
    "ParallelFilterDataset": ("FilterDataset", slice(-1, None)),
    "ParallelInterleaveDatasetV4": ("InterleaveDataset", slice(-3, None)),
    "ParallelMapDatasetV2": ("MapDataset", slice(-1, None)),
}

#: Serial stages: the parallel ones that do the same, and what these take besides, `AUTOTUNE` all of it.
_PARALLEL = {
    "InterleaveDataset": ("ParallelInterleaveDatasetV4", 3),
    "MapDataset": ("ParallelMapDatasetV2", 1),
}

#: Marks a call of what ``tf.function(jit_compile=True)`` made, and that function.
MUST_COMPILE = "_XlaMustCompile"

#: Attributes that only one of the two forms of a stage has.
_ONLY_OF_ONE = ("deterministic", "force_synchronous", "use_unbounded_threadpool")

#: The value by which tf.data chooses for itself.
AUTOTUNE = -1

#: Tell apart what is built again: a process has one function of each name.
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class DatasetGraph:
    """``nodes`` and ``functions`` are protocol buffers by name; ``output`` names the last stage.

    ``keeps`` are the Python objects without which the functions in the graph would not run.
    """

    nodes: Mapping[str, Any]
    functions: Mapping[str, Any]
    output: str
    versions: Any
    keeps: tuple[Any, ...]

    @classmethod
    def of(cls, dataset: Any) -> DatasetGraph:
        """The graph of a ``tf.data.Dataset``, arrays in it included. Raises what TensorFlow raises."""
        import tensorflow as tf

        serialised = tf.raw_ops.DatasetToGraphV2(
            input_dataset=tf.data.experimental.to_variant(dataset), external_state_policy=_IGNORE_STATE
        )
        graph = tf.compat.v1.GraphDef.FromString(serialised.numpy())
        if not graph.node:
            raise ValueError("what it contains exceeds 2 GB")
        nodes = {node.name: node for node in graph.node}
        (end,) = (node for node in graph.node if node.op == "_Retval")
        del nodes[end.name]
        functions = {function.signature.name: function for function in graph.library.function}
        return cls(nodes, functions, producer(end.input[0]), graph.versions, (dataset,))

    def inputs(self, stage: str) -> tuple[str, ...]:
        """The stages that feed a stage; datasets that its function captured come last."""
        names = map(producer, self.nodes[stage].input)
        return tuple(name for name in names if IS_DATASET.search(self.nodes[name].op))

    def upstream(self, stage: str) -> tuple[str, ...]:
        """All stages that feed a stage, directly or not, the nearest first."""
        found = list(self.inputs(stage))
        for name in found:
            found += [source for source in self.inputs(name) if source not in found]
        return tuple(found)

    def ops(self, stage: str) -> frozenset[str]:
        """The types of a stage's own op and of all ops in its functions, however deep."""
        return frozenset(node.op for node, _ in self.reached(stage))

    def reached(self, stage: str) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        """A stage's own node and all in its functions, however deep, each with its neighbours by name."""
        yield self.nodes[stage], self.nodes
        functions = list(_called(self.nodes[stage]))
        for name in functions:
            body = (
                {node.name: node for node in self.functions[name].node_def} if name in self.functions else {}
            )
            for node in body.values():
                yield node, body
                functions += [other for other in _called(node) if other not in functions]

    def with_paths(self, change: Callable[[Any], Any]) -> DatasetGraph:
        """The same graph, in which ``tf.io.read_file`` reads ``change(path)`` instead of ``path``.

        ``change`` is traced with a scalar string; its ops must name their one output ``output``.
        """
        import tensorflow as tf

        with tf.Graph().as_default() as graph:
            path = tf.compat.v1.placeholder(tf.string, (), name="path")
            last = change(path).op.name
        added = [node for node in graph.as_graph_def().node if node.name != "path"]
        functions = {name: _copy(function) for name, function in self.functions.items()}
        for function in functions.values():
            for reader in [node for node in function.node_def if node.op == "ReadFile"]:
                names = {node.name: f"{reader.name}_{node.name}:output:0" for node in added}
                names["path"] = reader.input[0]
                for node in added:
                    copy = function.node_def.add()
                    copy.CopyFrom(node)
                    copy.name = f"{reader.name}_{node.name}"
                    copy.input[:] = [names[source] for source in node.input]
                reader.input[0] = names[last]
        return replace(self, functions=functions, keeps=(*self.keeps, graph))

    def with_lengths(self) -> DatasetGraph:
        """The same graph, in which ``assert_cardinality`` takes no more elements than it asserts."""
        nodes = dict(self.nodes)
        for name, node in self.nodes.items():
            if node.op == "AssertCardinalityDataset":
                take, asserted = _copy(node), _copy(node)
                take.name, take.op = f"{name}/take", "TakeDataset"
                asserted.input[0] = take.name
                nodes |= {take.name: take, name: asserted}
        return replace(self, nodes=nodes)

    def serial(self) -> DatasetGraph:
        """The same graph in which one element is made at a time, when it is asked for.

        Stages that are parallel become serial, and those that prefetch or shuffle, which would make more
        than is asked for, are left out, their names with them; what is within functions stays.
        """
        nodes = {}
        ahead = {name: node.input[0] for name, node in self.nodes.items() if _IS_AHEAD.match(node.op)}
        for name, node in self.nodes.items():
            if name in ahead:
                continue
            nodes[name] = _copy(node)
            if node.op in _SERIAL:
                nodes[name].op, left_out = _SERIAL[node.op]
                del nodes[name].input[left_out]
                _remove(nodes[name], _ONLY_OF_ONE)
            nodes[name].input[:] = [_past(ahead, source) for source in nodes[name].input]
        return replace(self, nodes=nodes, output=producer(_past(ahead, f"{self.output}:0")))

    def parallel(self) -> DatasetGraph:
        """The same graph with all maps and interleaves parallel, except within functions.

        It is this very object where all are.
        """
        serial = [name for name, node in self.nodes.items() if node.op in _PARALLEL]
        if not serial:
            return self
        chosen = "tfaudit_autotune"
        nodes = {**self.nodes, chosen: _constant(chosen, AUTOTUNE)}
        for name in serial:
            nodes[name] = _copy(self.nodes[name])
            nodes[name].op, more = _PARALLEL[nodes[name].op]
            nodes[name].input.extend([chosen] * more)
            _remove(nodes[name], _ONLY_OF_ONE)
        return replace(self, nodes=nodes)

    def compiled(self, stage: str) -> DatasetGraph:
        """The same graph, in which XLA compiles the function of a stage."""
        nodes = {**self.nodes, stage: _copy(self.nodes[stage])}
        called = nodes[stage].attr["f"].func
        signature = self.functions[called.name].signature
        around = type(self.functions[called.name])()
        around.signature.CopyFrom(signature)
        around.signature.name = f"{called.name}_compiled"
        around.attr[MUST_COMPILE].b = True
        call = around.node_def.add(name="call", op="StatefulPartitionedCall")
        call.input.extend(argument.name for argument in signature.input_arg)
        call.attr["f"].func.name = called.name
        call.attr["Tin"].list.type.extend(argument.type for argument in signature.input_arg)
        call.attr["Tout"].list.type.extend(result.type for result in signature.output_arg)
        call.attr[MUST_COMPILE].b = True
        for number, result in enumerate(signature.output_arg):
            around.ret[result.name] = f"call:output:{number}"
        called.name = around.signature.name
        return replace(self, nodes=nodes, functions={**self.functions, called.name: around})

    def maps(self) -> tuple[str, ...]:
        """The stages that map, from the sources to the end, those within functions left out."""
        return tuple(name for name in self._from_source(self.output) if is_map(self.nodes[name].op))

    def _from_source(self, stage: str) -> Iterator[str]:
        for source in self.inputs(stage):
            yield from self._from_source(source)
        yield stage

    def build(self, stage: str, spec: Any = None, fed: Mapping[str, Any] | None = None) -> Any:
        """The dataset that ends with ``stage``, in which those in ``fed`` stand for the stages of that name.

        ``spec`` is its element spec; without one its elements are tuples of their flat tensors. It starts
        anew: what a ``shuffle`` or ``cache`` of the original remembers is not shared.
        """
        import tensorflow as tf

        fed = fed or {}
        spec = spec or self._flat_spec(stage)
        if stage in fed:
            return tf.data.experimental.from_variant(tf.data.experimental.to_variant(fed[stage]), spec)
        needed = self._needed(stage, fed)
        fed = {name: dataset for name, dataset in fed.items() if name in needed}
        graph = tf.compat.v1.GraphDef(versions=self.versions)
        graph.node.extend(self.nodes[name] for name in needed if name not in fed)
        graph.library.function.extend(self.functions.values())
        _set_apart(graph, f"_again_{next(_NUMBERS)}")

        def again(*variants: Any) -> Any:
            inputs = dict(zip(fed, variants, strict=True))
            return tf.graph_util.import_graph_def(graph, inputs, [f"{stage}:0"], name="")[0]

        # A tf.function would run eagerly, which this cannot, where the program has told functions to.
        build = tf.compat.v1.wrap_function(again, [tf.TensorSpec((), tf.variant)] * len(fed))
        with tf.device("CPU:0"):
            variant = build(*map(tf.data.experimental.to_variant, fed.values()))
        dataset = tf.data.experimental.from_variant(variant, spec)
        dataset.tfaudit_keeps = self.keeps
        return dataset

    def _needed(self, stage: str, fed: Mapping[str, Any]) -> list[str]:
        """The nodes for a stage, and the names in ``fed`` at which they begin."""
        needed = [stage]
        for name in needed:
            if name not in fed:
                sources = dict.fromkeys(map(producer, self.nodes[name].input))
                needed += [source for source in sources if source not in needed]
        return needed

    def _flat_spec(self, stage: str) -> tuple[Any, ...]:
        import tensorflow as tf

        attributes = self.nodes[stage].attr
        types = attributes["output_types" if "output_types" in attributes else "Toutput_types"].list.type
        shapes = map(tf.TensorShape, attributes["output_shapes"].list.shape)
        return tuple(map(tf.TensorSpec, shapes, map(tf.dtypes.as_dtype, types)))


def producer(source: str) -> str:
    """``name:0`` and ``^name`` to ``name``."""
    return source.lstrip("^").partition(":")[0]


def is_map(op: str) -> bool:
    """Whether an op is a dataset's ``map``."""
    return _IS_MAP.match(op) is not None


def _past(ahead: Mapping[str, str], source: str) -> str:
    """What a stage is fed by once those in ``ahead`` are left out."""
    while producer(source) in ahead:
        source = ahead[producer(source)]
    return source


def _remove(node: Any, attributes: Iterable[str]) -> None:
    for name in attributes:
        node.attr.pop(name, None)


def _constant(name: str, value: int) -> Any:
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        tf.constant(value, tf.int64, name=name)
    (node,) = graph.as_graph_def().node
    return node


def _copy(message: Any) -> Any:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _references(node: Any) -> Iterator[Any]:
    """The attributes of a node that name functions."""
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func
        yield from value.list.func


def _called(node: Any) -> Iterator[str]:
    """The names of the functions that a node calls; an op may be one itself."""
    yield node.op
    yield from (function.name for function in _references(node))


def _set_apart(graph: Any, suffix: str) -> None:
    """Give the functions, and the memory of shuffles and caches, names that nothing else has."""
    known = {function.signature.name for function in graph.library.function}
    for function in graph.library.function:
        function.signature.name += suffix
    for node in itertools.chain(graph.node, *(function.node_def for function in graph.library.function)):
        for function in _references(node):
            if function.name in known:
                function.name += suffix
        if node.op in known:
            node.op += suffix
        if node.op == "Const":
            for handle in node.attr["value"].tensor.resource_handle_val:
                if _IS_MEMORY.search(handle.name):
                    handle.name += suffix
