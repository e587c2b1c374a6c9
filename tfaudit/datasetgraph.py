"""A ``tf.data`` pipeline as a graph that can be built again with other datasets in place of some stages.

TensorFlow serialises a dataset to a ``GraphDef``: a node per stage, the users' functions in its library.
Tables, variables and random generators that a function captured become copies, which hold what they held
then. Python functions stay tokens, valid in this process for as long as what they belong to is kept.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

#: Names of ops that make a dataset.
IS_DATASET = re.compile(r"Dataset(V\d+)?$")

#: Where a ``shuffle`` keeps its seeds and a ``cache`` its elements; made where there is none of that name.
_IS_MEMORY = re.compile(r"/(SeedGenerator|MemoryCache)_\d+$")

#: The value of ``external_state_policy`` with which state is copied without a warning.
_IGNORE_STATE = 1

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
