"""What ran on a device: the top ops, number types, small kernels, and collectives."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from . import names
from .copies import DIRECTIONS
from .intervals import self_times
from .lanes import COPIES, Lanes
from .names import Work
from .steps import Steps, tail_fraction
from .summary import Collectives, Op, Precision
from .tables import PS_PER_MS, PS_PER_US, Plane

TOP_OPS = 10
# Launching a kernel takes 20 to 40 us (TensorFlow's guide on GPU performance): kernels shorter than
# that cannot keep the device busy one by one.
SMALL_KERNEL_PS = 20 * PS_PER_US


def own_times(plane: Plane) -> npt.NDArray[np.float64]:
    """Return each event's self time. Streams do not nest; the ops of a TPU do."""
    duration = plane.numbers("duration_ps")
    if plane.kind != "tpu":
        return duration.astype(np.float64)
    return self_times(plane.events["line"].to_numpy(), plane.numbers("start_ps"), duration)


def top_ops(plane: Plane) -> tuple[Op, ...]:
    """Return the events that took most of the device's time, by name."""
    events = pd.DataFrame(
        {
            "name": plane.events["name"],
            "kind": plane.events["kind"],
            "op": plane.events["op"],
            "own": own_times(plane),
        }
    )
    total = float(events["own"].sum())
    sums = events.groupby(["kind", "name"])["own"].agg(["sum", "size"]).nlargest(TOP_OPS, "sum")
    found = []
    for (kind, name), time_ps, count in zip(sums.index, sums["sum"], sums["size"], strict=True):
        mine = events[(events["name"] == name) & (events["kind"] == kind)]
        by_op = mine.groupby("op")["own"].sum()
        behind = int(by_op.idxmax()) if len(by_op) else -1
        full = plane.names[name]
        found.append(
            Op(
                name=plane.label(name),
                op=plane.texts[behind] if behind >= 0 else plane.description(name),
                kind=_KINDS[Work(kind)],
                count=int(count),
                time_ms=float(time_ps / PS_PER_MS),
                share_fraction=float(time_ps / total) if total else 0.0,
                sixteen_bit=_type_of(full),
                tensor_core=bool(names.matches(names.TENSOR_CORE, [full])[0]),
                changes_layout=bool(names.matches(names.LAYOUT, [full])[0]),
            )
        )
    return tuple(found)


_KINDS = {Work.KERNEL: "kernel", Work.COLLECTIVE: "collective", **DIRECTIONS}


def _type_of(name: str) -> bool | None:
    if names.matches(names.SIXTEEN_BIT, [name])[0]:
        return True
    return False if names.matches(names.OTHER_TYPE, [name])[0] else None


def precision(plane: Plane) -> Precision:
    """Return how much of the time of kernels was 16-bit, and on matrix units."""
    rows = plane.events["kind"].to_numpy() == Work.KERNEL
    used = np.bincount(
        plane.numbers("name")[rows], weights=own_times(plane)[rows], minlength=len(plane.names)
    )
    total = float(used.sum())
    if not total:
        return Precision(
            kernel_ms=0.0,
            sixteen_bit_fraction=None,
            tensor_core_fraction=None,
            untold_fraction=None,
        )
    sixteen = names.matches(names.SIXTEEN_BIT, plane.names)
    told = sixteen | names.matches(names.OTHER_TYPE, plane.names)
    cores = names.matches(names.TENSOR_CORE, plane.names)
    return Precision(
        kernel_ms=total / PS_PER_MS,
        sixteen_bit_fraction=float(used[sixteen].sum() / total),
        tensor_core_fraction=float(used[cores].sum() / total),
        untold_fraction=float(used[~told].sum() / total),
    )


def small_kernels(plane: Plane) -> tuple[int, float | None, float | None]:
    """Return the number of kernels under 20 us, and their share by number and by time."""
    rows = np.isin(plane.events["kind"].to_numpy(), COPIES, invert=True)
    duration = plane.numbers("duration_ps")[rows]
    small = duration < SMALL_KERNEL_PS
    total = float(duration.sum(dtype=float))
    return (
        int(small.sum()),
        float(small.mean()) if duration.size else None,
        float(duration[small].sum(dtype=float) / total) if total else None,
    )


def collectives(lanes: Lanes, plane: Plane, steps: Steps) -> Collectives:
    """Return the communication of a device and how much of it compute hides."""
    moments = lanes.during(Work.COLLECTIVE)
    exposed = lanes.communication
    return Collectives(
        count=int((plane.events["kind"].to_numpy() == Work.COLLECTIVE).sum()),
        busy_ms=moments.length / PS_PER_MS,
        exposed_ms=exposed.length / PS_PER_MS,
        overlapped_fraction=1 - exposed.length / moments.length if moments else None,
        tail_fraction=tail_fraction(steps, moments),
    )
