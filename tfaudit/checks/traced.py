"""Performance analysis.

Section 1 of the checklist, continued: what the profiler's trace shows.
"""

from __future__ import annotations

from ..checking import Outcome, check, failed, not_applicable, passed, percent, unknown, warned
from ..evidence import Evidence
from ..report import trace_words as words
from ..trace.summary import Copy, Device, TraceSummary
from ..trace.verdicts import (
    INPUT_BANDS,
    LAUNCH_BANDS,
    OTHER_BANDS,
    Part,
    Split,
    busiest,
    classify,
    differences,
    main_cause,
    median_step,
    split,
    steps_of,
    used,
)
from .performance import input_gain

#: The profiler's own tools drop the first and the last step.
FEWEST_TRACED_STEPS = 3

#: A GPU that is busy 95 % of the time is used, below 80 % it is not: the checklist's bands for 1.6.
WARN_IDLE, FAIL_IDLE = 0.05, 0.20

#: A gap is long above a millisecond and a twentieth of the step: shorter ones are launches.
LONG_GAP_MS, LONG_GAP_SHARE = 1.0, 0.05

#: CUDA stages a pageable copy of up to 64 KiB; a larger one blocks the host (CUDA Runtime API,
#: "API synchronization behavior").
PAGEABLE_BYTES = 64 * 1024

#: XProf advises 16-bit ops below a tenth of device compute (op_stats_to_overview_page.cc).
WARN_SIXTEEN_BIT = 0.10

#: Kernels whose names state no type (XLA's fusions) may be either: with more of them nothing is said.
MOST_UNTOLD = 0.5

#: What cached input saves beyond the waiting that a trace shows is explained from this much on.
CLEARLY_MORE = 0.10

#: Moving data is no work: a tenth of the device's time is worth a look.
WARN_MOVING = 0.10

#: Launching takes 20 to 40 us (TensorFlow's guide on GPU performance): where most kernels are
#: shorter, and these take a tenth of the time, the device waits for the host.
WARN_SMALL_COUNT, WARN_SMALL_TIME = 0.50, 0.10

#: Matrix units for 16 bits: NVIDIA from compute capability 7.0.
TENSOR_CORES_FROM = 7

NO_ACCELERATOR = "There is no accelerator: what ran is told by the host alone."
NO_DEVICE_EVENTS = "The trace shows nothing on the accelerator; 1.9 says why."


@check(
    number="1.9",
    needs=("trace", "machine"),
    threshold=f"at least {FEWEST_TRACED_STEPS} marked steps, and a device plane if there is an accelerator",
)
def profiler_trace(evidence: Evidence) -> Outcome:
    """Profiler trace

    What it looks at
    The trace of the profiled variant: its size, the steps marked in it, the planes of devices.

    Why it matters
    An empty or half trace looks like an idle device; all that is read from it depends on this.

    How to fix
    Without a device plane the profiler was refused by the driver: allow access to the GPU's
    performance counters (NVreg_RestrictProfilingToAdminUsers=0, or --cap-add=SYS_ADMIN in a
    container) and have libcupti on LD_LIBRARY_PATH.
    """
    trace = evidence.trace
    assert trace is not None and trace.summary is not None
    steps, devices = len(trace.summary.steps), len(trace.summary.devices)
    facts = {
        "steps": steps,
        "device_planes": devices,
        "size_bytes": trace.bytes,
        "health": [note.message for note in trace.summary.health],
    }
    if evidence.accelerators and not devices:
        return failed("The trace shows no device, although there is one.", **facts)
    if steps < FEWEST_TRACED_STEPS:
        return failed(f"Steps marked in the trace: {steps}.", **facts)
    where = f"{devices} of its devices" if devices else "the host alone, there being no accelerator"
    return passed(f"The trace shows {steps} steps and {where}.", **facts)


@check(
    number="1.10",
    needs=("trace", "machine"),
    uses=("baseline", "cached-input"),
    threshold=f"of the step's time, waiting for input ≥ {percent(INPUT_BANDS[0])} warns,"
    f" ≥ {percent(INPUT_BANDS[1])} fails; on an accelerator launching ≥ {percent(LAUNCH_BANDS[0])} or other"
    f" ≥ {percent(OTHER_BANDS[0])} warns, either ≥ {percent(LAUNCH_BANDS[1])} fails",
)
def trace_input_bound(evidence: Evidence) -> Outcome:
    """Input wait in the trace

    What it looks at
    What each step's time went to: waiting for input, copies, launching, compute, communication and the
    rest. The bands are XProf's, whose own verdict stands beside ours with the reason when they differ.
    On a CPU cached input (1.8) may save more than the waiting, since the model shares its cores with
    the pipeline; the sentence says so.

    Why it matters
    While the step waits for its batch, nothing that makes the model faster makes training faster.

    How to fix
    Input: see the pipeline's slow stage (3.3, 4.1). Launching: steps_per_execution, XLA (5.2), or
    TF_GPU_THREAD_MODE=gpu_private. Other: callbacks, logging and Python between the steps.
    """
    summary = _summary(evidence)
    total = split(summary.steps)
    if total is None:
        return unknown("No step is marked in the trace, so nothing can be said per step.", **_xprof(evidence))
    facts = {f"{part.value}_fraction": total.share(part) for part in Part} | _xprof(evidence)
    bands = {Part.INPUT: INPUT_BANDS}
    if used(summary):  # on a CPU the executor launches and computes in one
        bands |= {Part.LAUNCH: LAUNCH_BANDS, Part.OTHER: OTHER_BANDS}
    worst = max(bands, key=lambda part: (_level(total, part, bands), total.share(part)))
    said = f"{percent(total.share(worst))} of the step's time goes to {worst.value}: {classify(total)}."
    judge = (passed, warned, failed)[_level(total, worst, bands)]
    return judge(said + _shared_cores(evidence, total), tfaudit_says=classify(total), **facts)


def _shared_cores(evidence: Evidence, total: Split) -> str:
    """Why 1.8 finds more than the trace's waiting for input, where it does; empty elsewhere."""
    gain = None if evidence.accelerators else input_gain(evidence)
    saved = 1 - 1 / gain.median if gain is not None else 0.0
    if saved < total.share(Part.INPUT) + CLEARLY_MORE:
        return ""
    return (
        f" Cached input saves {percent(saved)} (1.8): the model shares its cores with the pipeline and"
        " computes faster without it."
    )


def _level(total: Split, part: Part, bands: dict[Part, tuple[float, float]]) -> int:
    """0, 1 or 2: how many ends of its band a part reaches."""
    return sum(total.share(part) >= end for end in bands[part])


def _xprof(evidence: Evidence) -> dict[str, object]:
    """XProf's verdict as facts; empty when it was not asked."""
    assert evidence.trace is not None
    verdict = evidence.trace.xprof
    if verdict is None:
        return {}
    if verdict.error:
        return {"xprof_says": verdict.error}
    return {
        "xprof_says": verdict.classification or verdict.recommendation[:200] or "nothing",
        "xprof_input_fraction": verdict.input_fraction,
        "xprof_launch_fraction": verdict.launch_fraction,
        "xprof_others_fraction": verdict.other_fraction,
        "why_they_differ": list(differences(_summary(evidence), verdict)),
    }


def _summary(evidence: Evidence) -> TraceSummary:
    assert evidence.trace is not None and evidence.trace.summary is not None
    return evidence.trace.summary


def _device(evidence: Evidence) -> Device | Outcome:
    """The busiest device, or why there is none to judge."""
    device = busiest(_summary(evidence))
    if device is not None:
        return device
    return unknown(NO_DEVICE_EVENTS) if evidence.accelerators else not_applicable(NO_ACCELERATOR)


@check(
    number="1.11",
    needs=("trace", "machine"),
    threshold=f"idle ≥ {percent(WARN_IDLE)} warns, ≥ {percent(FAIL_IDLE)} fails; a gap of more than"
    f" {LONG_GAP_MS:g} ms and {percent(LONG_GAP_SHARE)} of the step, copies that nothing hides for"
    f" ≥ {percent(INPUT_BANDS[0])} of the step, or one from pageable memory above"
    f" {PAGEABLE_BYTES // 1024} KiB warn",
)
def idle_device(evidence: Evidence) -> Outcome:
    """Idle device and copies

    What it looks at
    How long nothing ran on the busiest device, and what the host did meanwhile; copies between host and
    device by size, rate and memory, and how much of them no kernel hides.

    Why it matters
    An idle device costs as much as a busy one. A copy that nothing hides is idleness with another name.

    How to fix
    By cause: input (3.3, 4.1); launching (steps_per_execution, XLA); a read-back (fetch metrics less
    often). Copies: prefetch_to_device as the pipeline's last stage, smaller types, pinned memory.
    """
    device = _device(evidence)
    if isinstance(device, Outcome):
        return device
    summary = _summary(evidence)
    total = split(summary.steps)
    idle = total.idle_fraction if total else device.idle_fraction
    if idle is None:
        return unknown("The trace does not tell how long the device was idle.")
    gaps, exposed = long_gaps(summary, device), exposed_copies(device, total)
    blocking = [copy for copy in device.copies.longest if _blocks(copy)]
    facts = _idle_facts(summary, device, idle) | {
        "long_gaps": gaps,
        "exposed_copies_fraction": exposed,
        "pageable_copy": [words.copy_in_words(copy) for copy in blocking[:3]],
    }
    sentence = f"{device.plane} is idle {percent(idle)} of the time{main_cause(device, total)}."
    if idle >= FAIL_IDLE:
        return failed(sentence, **facts)
    if idle >= WARN_IDLE or gaps:
        return warned(sentence, **facts)
    if exposed >= INPUT_BANDS[0]:
        return warned(f"Copies that nothing hides take {percent(exposed)} of the time.", **facts)
    if blocking:
        return warned(
            f"A copy from pageable memory holds up the host: {words.copy_in_words(blocking[0])}.", **facts
        )
    return passed(sentence, **facts)


def long_gaps(summary: TraceSummary, device: Device) -> int:
    """Listed gaps (of steps, where there are any) above `LONG_GAP_MS` and `LONG_GAP_SHARE` of the step."""
    step = median_step(summary.steps)
    least = max(LONG_GAP_MS, LONG_GAP_SHARE * step.duration_ms if step else 0.0)
    return sum(gap.duration_ms > least and (step is None or gap.step is not None) for gap in device.gaps)


def exposed_copies(device: Device, total: Split | None) -> float:
    """Copies that no kernel overlaps, as a share of the steps' time or, without steps, of the device's."""
    if total:
        return total.share(Part.COPY)
    copies = device.copies
    exposed = copies.h2d.exposed_ms + copies.d2h.exposed_ms + copies.other.exposed_ms
    return exposed / device.span_ms if device.span_ms else 0.0


def _blocks(copy: Copy) -> bool:
    """Whether a copy holds up the host: from pageable memory, and too large to be staged."""
    return bool(copy.pageable) and (copy.bytes or 0) > PAGEABLE_BYTES


def _idle_facts(summary: TraceSummary, device: Device, idle: float) -> dict[str, object]:
    steps = steps_of(summary, device)
    others = {each.plane: percent(each.idle_fraction or 0.0) for each in used(summary) if each is not device}
    return {
        "idle_in_steps_fraction" if steps else "idle_fraction": idle,
        "idle_from_first_to_last_event_fraction": device.idle_fraction,
        "idle_of": others,
        "longest_gap_ms": device.longest_gap_ms,
        "gap": {
            each.cause.value: f"{words.duration(each.duration_ms)} in {each.count:,}"
            for each in device.idle_causes
        },
        "copies": {
            way: words.copies_in_words(each, steps) for way, each in words.directions(device.copies).items()
        },
    }


@check(
    number="1.12",
    needs=("trace", "machine"),
    threshold=f"16-bit kernels < {percent(WARN_SIXTEEN_BIT)} of the time, or none on matrix units, warns"
    f" where at most {percent(MOST_UNTOLD)} state no type and the device has such units; copies and"
    f" transposes ≥ {percent(WARN_MOVING)} of the time among the ten warn; kernels < 20 µs warn when they are"
    f" ≥ {percent(WARN_SMALL_COUNT)} of all and take ≥ {percent(WARN_SMALL_TIME)} of the time",
)
def top_device_ops(evidence: Evidence) -> Outcome:
    """Top device ops

    What it looks at
    The ten ops that took most of the busiest device's time, with the framework's op behind each; number
    types and matrix units by the kernels' names, which XLA's fusions do not state.

    Why it matters
    The matrix products of the model should lead this list. Conversions, transposes and many tiny kernels
    are time without work.

    How to fix
    Not 16-bit: mixed precision (5.1). Transposes: the layout that the device wants (5.6). Tiny kernels:
    XLA (5.2), a larger batch, or fused layers.
    """
    device = _device(evidence)
    if isinstance(device, Outcome):
        return device
    if not device.top_ops:
        return unknown("The trace names no op on the device.")
    faults = list(op_faults(device))
    precision = device.precision
    facts = {
        "sixteen_bit_fraction": precision.sixteen_bit_fraction,
        "on_matrix_units_fraction": precision.tensor_core_fraction,
        "no_type_stated_fraction": precision.untold_fraction,
        "kernels_under_20_us_fraction": device.small_kernel_fraction,
        "their_share_of_the_time_fraction": device.small_kernel_time_fraction,
        "top_op": [words.op_in_words(op) for op in device.top_ops],
    }
    if faults:
        return warned(f"{'; '.join(faults)}.", **facts)
    first = device.top_ops[0]
    return passed(f"Most time, {percent(first.share_fraction)}, went to {words.op_name(first, 50)}.", **facts)


def op_faults(device: Device) -> list[str]:
    """What is unexpected among a device's ops, in words."""
    found = []
    precision = device.precision
    small, small_time = device.small_kernel_fraction or 0.0, device.small_kernel_time_fraction or 0.0
    untold = precision.untold_fraction if precision.untold_fraction is not None else 1.0
    if untold <= MOST_UNTOLD and has_matrix_units(device):
        sixteen = (precision.sixteen_bit_fraction or 0.0) / (1 - untold)
        if sixteen < WARN_SIXTEEN_BIT:
            found.append(f"{percent(sixteen)} of the kernels that state a type are 16-bit")
        elif not precision.tensor_core_fraction:
            found.append("no kernel runs on matrix units, although there are some")
    moving = sum(op.share_fraction for op in device.top_ops if "moves data" in words.op_marks(op))
    if moving >= WARN_MOVING:
        found.append(f"copies and transposes among the ten take {percent(moving)} of the time")
    if small >= WARN_SMALL_COUNT and small_time >= WARN_SMALL_TIME:
        taken = f"take {percent(small_time)} of the time"
        found.append(f"{percent(small)} of the kernels are shorter than 20 µs and {taken}")
    return [found[0][0].upper() + found[0][1:], *found[1:]] if found else []


def has_matrix_units(device: Device) -> bool:
    """Whether a GPU multiplies 16-bit matrices in units of their own, as far as the trace tells."""
    major = (device.compute_capability or "").partition(".")[0]
    nvidia = (device.vendor or "nvidia").lower() == "nvidia"
    return nvidia and major.isdecimal() and int(major) >= TENSOR_CORES_FROM
