"""What AUTOTUNE chose for a pipeline while it ran. In the child."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..records import Tuned


def chosen(iterator: Any) -> tuple[Tuned, ...] | None:
    """The values in force in an iterator of ``tf.data``, from the source to the end.

    None where TensorFlow does not tell: before 2.17, with AUTOTUNE off, and of other iterators.
    """
    import tensorflow as tf

    ask = getattr(tf.data.experimental, "get_model_proto", None)
    if ask is None:
        return None
    try:
        model = ask(iterator)
    except Exception:
        return None
    return tuple(
        Tuned(stage=node.name, parameter=parameter.name, value=parameter.value)
        for node in _from_source(model.nodes, model.output)
        for parameter in node.parameters
        if parameter.tunable
    )


def _from_source(nodes: Any, number: int) -> Iterator[Any]:
    """A node after all that feed it."""
    node = nodes[number]
    for source in node.inputs:
        yield from _from_source(nodes, source)
    yield node
