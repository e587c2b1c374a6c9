"""What a summary amounts to: the split of all steps, XProf's words for it, and why XProf differs.

Pure functions of records: neither pandas nor NumPy is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from ..record import Record
from .summary import Cause, Device, Step, Timeline, TraceSummary, XprofVerdict

#: XProf's bands, as shares of the step: MODERATELY from the first, HIGHLY from the second
#: (openxla/xprof, op_stats_to_input_pipeline_analysis.cc).
INPUT_BANDS = (0.05, 0.20)
LAUNCH_BANDS = (0.03, 0.15)
OTHER_BANDS = (0.03, 0.15)

#: Shares that differ by less are the same: XProf leaves out the first and the last step.
SAME = 0.02

#: The share of 16-bit compute that must differ before a word is lost on it.
PRECISION_WORTH_TELLING = 0.1

#: Copies below this share of the step are not worth a word about where XProf counts them.
COPIES_WORTH_TELLING = 0.001


class Part(str, Enum):
    """What a step's time goes to, in the order in which they are drawn."""

    INPUT = "waiting for input"
    COPY = "copies"
    LAUNCH = "launching"
    COMPUTE = "compute"
    COMMUNICATION = "communication"
    OTHER = "other"


#: What counts as each part, in a sentence for people.
MEANINGS = {
    Part.INPUT: "The device idle (without one, the step itself) until the next batch is there.",
    Part.COPY: "Copies from, to and within the device that no kernel overlaps.",
    Part.LAUNCH: "The device idle while the host runs ops or puts work on its queue.",
    Part.COMPUTE: "Kernels; without a device, ops on the host's executor threads.",
    Part.COMMUNICATION: "Collectives that no other kernel overlaps.",
    Part.OTHER: "Nothing of these: Python, callbacks, logging, or what the profiler does not record.",
}

#: The parts in which a device idles, by what they are called as causes.
IDLE_PARTS = {
    Part.INPUT: Cause.INPUT.value,
    Part.LAUNCH: Cause.LAUNCH.value,
    Part.OTHER: Cause.OTHER.value,
}

_FIELDS = {
    Part.INPUT: "input_wait_ms",
    Part.COPY: "copy_ms",
    Part.LAUNCH: "launch_ms",
    Part.COMPUTE: "compute_ms",
    Part.COMMUNICATION: "communication_ms",
    Part.OTHER: "other_ms",
}


class Split(Record, frozen=True):
    """The time of one or more steps by part. ``idle_fraction`` is None where no device is seen."""

    count: int
    duration_ms: float
    parts_ms: dict[Part, float]
    idle_fraction: float | None

    def share(self, part: Part) -> float:
        """The part's share of the time, between 0 and 1."""
        return self.parts_ms[part] / self.duration_ms if self.duration_ms else 0.0


def split(steps: Sequence[Step]) -> Split | None:
    """The steps' time summed by part; None without steps."""
    duration = sum(step.duration_ms for step in steps)
    if not steps or not duration:
        return None
    idle = [(step.idle_fraction, step.duration_ms) for step in steps if step.idle_fraction is not None]
    seen_ms = sum(length for _, length in idle)
    return Split(
        count=len(steps),
        duration_ms=duration,
        parts_ms={part: sum(getattr(step, field) for step in steps) for part, field in _FIELDS.items()},
        idle_fraction=sum(share * length for share, length in idle) / seen_ms if seen_ms else None,
    )


def median_step(steps: Sequence[Step]) -> Step | None:
    """The step of median length (the shorter of two); None without steps."""
    ordered = sorted(steps, key=lambda step: step.duration_ms)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def busiest(summary: TraceSummary) -> Device | None:
    """The device on which most ran; None where nothing ran on any."""
    return max(used(summary), key=lambda device: device.busy_ms, default=None)


def shown(summary: TraceSummary, drawn: Timeline | None) -> Device | None:
    """The device of the timeline, or the busiest."""
    wanted = drawn.device if drawn else None
    return next((device for device in used(summary) if device.plane == wanted), busiest(summary))


def used(summary: TraceSummary) -> list[Device]:
    """The devices on which anything ran."""
    return [device for device in summary.devices if device.events]


def classify(total: Split) -> str:
    """XProf's words for how far a job waits for input, by our own split.

    What no event explains may be input where a device idles meanwhile, so it counts only there.
    """
    low, high = INPUT_BANDS
    if total.share(Part.INPUT) >= high:
        return "HIGHLY input-bound"
    if total.share(Part.INPUT) >= low:
        return "MODERATELY input-bound"
    if total.idle_fraction is not None and total.share(Part.OTHER) >= OTHER_BANDS[0]:
        return "POTENTIALLY input-bound"
    return "NOT input-bound"


def headline(summary: TraceSummary) -> str:
    """One sentence on where the time goes."""
    total, device = split(summary.steps), busiest(summary)
    if total:
        part = max(Part, key=total.share)
        share = f"{100 * total.share(part):.0f} %"
        most = f"Of a step's time, {share} goes to {part.value}"
        waiting = f"{100 * total.share(Part.INPUT):.0f} % to waiting for input"
        return f"{most}{'' if part is Part.INPUT else f' and {waiting}'} ({classify(total)})."
    if device and device.idle_fraction is not None:
        return f"{device.plane} is idle {100 * device.idle_fraction:.0f} % of its time{main_cause(device)}."
    return "Neither a device nor a step is in this trace: only the host's ops are told."


def main_cause(device: Device, total: Split | None = None) -> str:
    """What most of the idle time is due to, to be put behind a figure; empty where there is none.

    With ``total`` that of the steps, which holds the wait before a step's first event, else the device's.
    """
    if total is not None:
        part = max(IDLE_PARTS, key=total.share)
        return f", mostly {IDLE_PARTS[part]}" if total.share(part) else ""
    return f", mostly {device.idle_causes[0].cause.value}" if device.idle_causes else ""


def steps_of(summary: TraceSummary, device: Device) -> int:
    """How many steps a device took part in: those of its host, each counted once.

    A step that devices did at different times is listed once for each of them.
    """
    mine = (step for step in summary.steps if step.host == device.host)
    return len({(step.name, step.step if step.step >= 0 else step.start_ms) for step in mine})


def nothing_to_tell(summary: TraceSummary) -> str:
    """Why a trace that could be read gives no figures, in a sentence; empty when it gives some."""
    if used(summary) or summary.steps:
        return ""
    if any(host.top_ops or host.top_input_ops or host.input_wait_ms for host in summary.hosts):
        return ""
    where = summary.sources[0] if summary.sources else "The trace"
    if summary.devices:
        return (
            f"{where} has {len(summary.devices)} device plane(s) but nothing on them and no step on the host:"
            " nothing ran while it was recorded; profile a few steps in the middle of training."
        )
    return (
        f"{where} has a host plane alone, with neither steps nor ops on it: profile a few steps of training;"
        " on a GPU, check that the profiler may read its counters."
    )


def differences(summary: TraceSummary, verdict: XprofVerdict) -> tuple[str, ...]:
    """Why XProf says something else of the same trace, a sentence each; empty where it agrees."""
    if verdict.error:
        return ()
    return tuple(_differences(summary, verdict))


def _differences(summary: TraceSummary, verdict: XprofVerdict) -> Iterator[str]:
    total = split(summary.steps)
    if total and not verdict.steps:
        unrooted = any(note.kind == "markers-without-root" for note in summary.health)
        why = ": their markers lack _r=1, which tfaudit does not need" if unrooted else ""
        yield f"XProf finds none of the {total.count} steps{why}."
    elif total and verdict.steps:
        if verdict.steps < total.count:
            yield f"XProf looks at {verdict.steps} of the {total.count} steps: not at those at the edges."
        yield from _shares(total, verdict)
    yield from _precision(summary, verdict)


def _shares(total: Split, verdict: XprofVerdict) -> Iterator[str]:
    """Where the same time has another name."""
    copies, wait = total.share(Part.COPY), total.share(Part.INPUT)
    seen = (verdict.input_fraction or 0.0) + (verdict.output_fraction or 0.0)
    if copies >= COPIES_WORTH_TELLING and seen < min(SAME, copies) + wait and not verdict.output_fraction:
        yield (
            f"XProf does not know TensorFlow's names of copies (MemcpyH2D): the {100 * copies:.1f} % of the"
            " step that nothing hides is in its device compute."
        )
    others = verdict.other_fraction or 0.0
    missed = wait - (verdict.input_fraction or 0.0)
    if others > total.share(Part.OTHER) + SAME:
        names = {Part.INPUT: missed, Part.LAUNCH: total.share(Part.LAUNCH) - (verdict.launch_fraction or 0.0)}
        told = [f"{100 * share:.0f} % is {part.value}" for part, share in names.items() if share > SAME]
        what = f", of which {' and '.join(told)} by the host's events" if told else ""
        yield f"XProf calls {100 * others:.0f} % of the step “others”{what}."
    elif missed > SAME:
        yield f"XProf sees {100 * missed:.0f} % of the step less as waiting for input."
    elif missed < -SAME:
        yield (
            f"XProf counts {-100 * missed:.0f} % of the step more as waiting for input: it takes the whole"
            " wait and the copies to the device, tfaudit only what neither compute nor a copy overlaps."
        )


def _precision(summary: TraceSummary, verdict: XprofVerdict) -> Iterator[str]:
    device = busiest(summary)
    ours = device.precision.sixteen_bit_fraction if device else None
    theirs = verdict.compute_16bit_fraction
    if device is None or ours is None or theirs is None or abs(ours - theirs) < PRECISION_WORTH_TELLING:
        return
    sixteen = [op.name.lower() for op in device.top_ops if op.sixteen_bit]
    unnamed = sixteen and not any("half" in name or "fp16" in name for name in sixteen)
    why = ": it knows half and fp16 in a kernel's name, no other 16-bit type" if unnamed else ""
    yield f"XProf counts {100 * theirs:.0f} % of device compute as 16-bit, tfaudit {100 * ours:.0f} %{why}."
