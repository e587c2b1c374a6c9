"""TensorFlow's device placement log as a table."""

from __future__ import annotations

import re
from collections import Counter

from ..records import Placement

#: Graph ops: ``name: (Type): /job:…/device:GPU:0``; eager ops: ``Executing op Type in device /job:…``.
_GRAPH = re.compile(r": \((?P<op>\w+)\): (?:/\w+:[^/\s]*)*?/device:(?P<device>\w+):\d+")
_EAGER = re.compile(r"Executing op (?P<op>\w+) in device \S*?/device:(?P<device>\w+):\d+")


def parse(log: str) -> Placement:
    """Count ops by device type and op type, as TensorFlow 2.10 to 2.21 words them."""
    ops: dict[str, Counter[str]] = {}
    for pattern in (_GRAPH, _EAGER):
        for match in pattern.finditer(log):
            ops.setdefault(match["device"], Counter())[match["op"]] += 1
    return Placement(ops={device: dict(sorted(counts.items())) for device, counts in ops.items()})
