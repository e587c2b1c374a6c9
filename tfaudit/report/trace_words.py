"""How what is in a trace is written in words: copies, ops, names, devices."""

from __future__ import annotations

from collections.abc import Iterable

from ..trace.summary import Copies, Copy, CopySummary, Device, HostOp, Op, Step
from . import numbers

#: Names of C++ templates run to thousands of characters.
LONGEST_NAME = 90

SMALLEST_SHARE = 1e-4

#: The directions of copies by their names in the records.
WAYS = {
    "h2d": "host to device",
    "d2h": "device to host",
    "d2d": "device to device",
    "other": "direction unknown",
}


def duration(ms: float | None) -> str:
    """A duration given in milliseconds, in the unit that suits it."""
    return numbers.seconds(None if ms is None else ms / 1e3)


def share(fraction: float | None) -> str:
    """``54.2 %``, a dash for None; what is next to nothing is not written with a power of ten."""
    if fraction is not None and 0 < fraction < SMALLEST_SHARE:
        return f"< {100 * SMALLEST_SHARE:g} %"
    return numbers.fact(None if fraction is None else float(fraction), "fraction")


def short(name: str, limit: int = LONGEST_NAME) -> str:
    """A name of at most ``limit`` characters: paths are told apart by their end."""
    if len(name) <= limit:
        return name
    is_path = ("/" in name or "::" in name) and not set(" <(") & set(name)
    return f"…{name[1 - limit :]}" if is_path else f"{name[: limit - 1]}…"


def counted(count: int, thing: str, things: str = "") -> str:
    """``1 gap``, ``1,200 gaps``; ``things`` where the plural takes more than an s."""
    return f"{count:,} {thing if count == 1 else things or f'{thing}s'}"


def step_label(step: Step, steps: Iterable[Step]) -> str:
    """The step's number, with its name or its device where the number is not its own."""
    if step.step < 0:
        return step.name
    if sum(other.step == step.step for other in steps) < 2:
        return str(step.step)
    if step.name != str(step.step):
        return step.name if str(step.step) in step.name else f"{step.name} {step.step}"
    return f"{step.step} {(step.device or step.host).removeprefix('/device:')}"


def directions(copies: CopySummary) -> dict[str, Copies]:
    """The copies by direction, those directions left out in which there are none."""
    found = {name: getattr(copies, way) for way, name in WAYS.items()}
    return {name: each for name, each in found.items() if each.count}


def copies_in_words(copies: Copies, steps: int) -> str:
    """``20 (2 per step), 400 MiB, 12 GB/s, 3 ms of 30 ms not hidden by kernels, 4 with pageable memory``."""
    per_step = f" ({copies.count / steps:.3g} per step)" if steps else ""
    told = [f"{copies.count:,}{per_step}"]
    if copies.count > copies.unsized_count:
        told.append(numbers.size(copies.bytes))
    if copies.gb_per_s:
        told.append(f"{copies.gb_per_s:.3g} GB/s")
    told.append(f"{duration(copies.exposed_ms)} of {duration(copies.busy_ms)} not hidden by kernels")
    if copies.pageable_count:
        told.append(f"{copies.pageable_count:,} with pageable memory")
    return ", ".join(told)


def copy_in_words(copy: Copy) -> str:
    """``h2d 96 MiB in 30 ms in step 3``."""
    step = "" if copy.step is None else f" in step {copy.step}"
    return f"{copy.direction} {numbers.size(copy.bytes)} in {duration(copy.duration_ms)}{step}"


def op_name(op: Op, limit: int = LONGEST_NAME) -> str:
    """The kernel's name, and the framework's op behind it where it says more."""
    name = short(op.name, limit)
    return f"{name} for {short(op.op, limit)}" if op.op and op.op not in op.name else name


def host_op(op: HostOp) -> tuple[str, str]:
    """The type of an op and where it is: TensorFlow writes ``model/dense/MatMul:MatMul``."""
    place, _, kind = op.name.rpartition(":")
    if not place or not kind or place.endswith(":"):
        return op.name, ""
    return kind, "" if place == kind else place


def op_marks(op: Op) -> list[str]:
    """What is remarkable about an op, a word each."""
    marks = {
        "16-bit": op.sixteen_bit,
        "matrix units": op.tensor_core,
        "moves data": op.changes_layout or op.kind in WAYS,
        "communication": op.kind == "collective",
    }
    return [mark for mark, applies in marks.items() if applies]


def op_in_words(op: Op) -> str:
    """``26 % gemm for dense/MatMul (4.1 ms, 97×, 16-bit)``."""
    marks = ", ".join([duration(op.time_ms), f"{op.count:,}×", *op_marks(op)])
    return f"{share(op.share_fraction)} {op_name(op)} ({marks})"


def device_in_words(device: Device) -> str:
    """What the trace tells of the device's make; empty where it tells nothing."""
    told = [
        device.model or "",
        device.vendor or "",
        f"compute capability {device.compute_capability}" if device.compute_capability else "",
        f"{device.core_count} cores" if device.core_count else "",
        numbers.size(device.memory_bytes) if device.memory_bytes else "",
    ]
    return ", ".join(filter(None, told))
