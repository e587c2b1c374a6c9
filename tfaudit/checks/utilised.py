"""Performance analysis.

Section 1 of the checklist, continued: how busy the machine is while the job trains.
"""

from __future__ import annotations

from collections.abc import Callable

from ..checking import Outcome, check, failed, not_applicable, passed, percent, unknown, warned
from ..evidence import NO_ACCELERATOR, Evidence
from ..records import DeviceUsage, Interval, VariantResult
from ..report import numbers
from ..trace.summary import Device
from ..trace.verdicts import Split, busiest, main_cause, split
from ..utilisation import SATURATED, Load, load
from .cpu import pipeline_faults
from .performance import WARN_GAIN, input_gain, mean_batch

#: Below half, a batch of twice the size fits: memory grows with the batch, and at most in proportion to it.
WARN_MEMORY = 0.50

#: The checklist's bands: a GPU that works 95 % of the time is used, below 80 % it is not.
PASS_USED, FAIL_USED = 0.95, 0.80

#: A core counts as waiting only while nothing else can run on it: a tenth is much.
WARN_IOWAIT = 0.10

#: What one serial stage keeps busy, with a little beside it for the loop around it.
SERIAL_CORES = 1.2

FOR_BUSY_CORES = (
    "Have the pipeline do less per step: cache() what is the same in every epoch, map whole batches (after"
    " batch), prepare the rest once and store it (4.2). Or give it more cores (4.4)."
)

FOR_DISKS = (
    "Read several files at a time (interleave with num_parallel_calls=tf.data.AUTOTUNE), in files of about"
    " 100 MB (3.1); cache() what fits into memory; or put the data on a faster disk."
)

FOR_ONE_CORE = (
    "Find what runs one after another: Python in the pipeline or as the data (5.5), a single file, a source"
    " that answers one request at a time."
)

FOR_BUSY_HOST = (
    "Cached input makes it no faster, so the step itself keeps the cores busy: look at ops that run on the"
    " host (5.3), at launching (steps_per_execution, XLA: 5.2), and at callbacks."
)

UNSEEN = (
    "pip install 'tensorflow[and-cuda]'  # tf.config.list_physical_devices('GPU') should then name it; if"
    " not, the driver may be too old"
)

NO_NVML = (
    "The driver was not asked: `pip install 'tfaudit[gpu]'` on a machine with an NVIDIA GPU, and run again"
    " (1.9 says what the profiler's trace, which tells it too, may lack)."
)


@check(
    number="1.5",
    needs=("machine",),
    uses=("baseline", "cached-input", "batch-x2", "batch-x4", "trace"),
    threshold=f"peak ÷ total < {percent(WARN_MEMORY)} warns, unless batches of two and four times the size"
    f" gain less than {WARN_GAIN:g}× on cached input",
)
def device_memory(evidence: Evidence) -> Outcome:
    """Device memory use

    What it looks at
    The most memory that the baseline's tensors took on its first GPU, by TensorFlow's own count, over all
    that the GPU has; and what batches of two and four times the size give on cached input, or that they do
    not fit. The driver's figure stands beside it: it holds what all processes have reserved, the
    other variants' included, so that it can only be too large.

    Why it matters
    Memory is paid for, used or not. A larger batch gives the device more to do at a time, and launches,
    copies and gradients are then shared by more samples.

    How to fix
    Double the batch size until the memory is used or samples per second no longer rise, and adapt the
    learning rate; or choose a GPU with less memory.
    """
    larger = larger_batches(evidence)
    if not evidence.accelerators:
        return not_applicable(NO_ACCELERATOR, **larger)
    baseline = evidence.variant("baseline")
    during = load(baseline.blocks) if baseline else None
    first = during.devices[0] if during and during.devices else None
    _, traced = _traced(evidence)
    total = (first.memory_total_bytes if first else None) or (traced.memory_bytes if traced else None)
    own = baseline.peak_device_bytes if baseline else None
    reserved = first.memory_used_bytes if first else None
    facts = {
        "peak_of_tensors_bytes": own,
        "reserved_by_all_processes_bytes": reserved,
        "total_bytes": total,
        **larger,
    }
    if not total:
        return unknown(f"How much memory the device has is not known. {NO_NVML}", **facts)
    if own:
        share = own / total
        summary = f"The job's tensors take up to {percent(share)} of the device's {numbers.size(total)}."
        if share >= WARN_MEMORY:
            return passed(summary, **facts)
        gains = [gain for gain in larger.values() if isinstance(gain, Interval)]
        if gains and max(gain.high for gain in gains) < WARN_GAIN:
            return passed(f"{summary} Larger batches gain nothing: a smaller device would do.", **facts)
        best = max((gain for gain in gains if gain.low >= WARN_GAIN), key=lambda gain: gain.low, default=None)
        return warned(summary, fix=larger_batch(baseline, total // own), at_most=best, **facts)
    if reserved and reserved / total < WARN_MEMORY:
        share = reserved / total
        summary = f"All processes together reserve up to {percent(share)} of the device's memory."
        return warned(summary, fix=larger_batch(baseline, total // reserved), **facts)
    return unknown("How much of the device's memory is the baseline's own is not known.", **facts)


def larger_batches(evidence: Evidence) -> dict[str, Interval | str]:
    """What larger batches give on cached input, as facts, or why they do not run."""
    found: dict[str, Interval | str] = {}
    for times in (2, 4):
        variant = f"batch-x{times}"
        result = evidence.variant(variant)
        gain = evidence.ratio(variant, to="cached-input")
        if gain is not None and not evidence.why_missing(variant):
            found[f"batches_of_{times}_times_the_size_over_cached_input_ratio"] = gain
        elif result is not None and result.failure is not None:
            found[f"batches_of_{times}_times_the_size"] = result.failure.message
    return found


def larger_batch(baseline: VariantResult | None, times: int) -> str:
    """Advice for a batch that many times as large, rounded down to a power of two."""
    times = 1 << (times.bit_length() - 1)
    batch = mean_batch(baseline) if baseline else None
    size = f"{times}× the batch" + (f", {times * batch:,.4g} samples," if batch else "")
    return (
        f"{size} should fit (an estimate: memory grows at most in proportion to it). Double it step by step"
        " as long as samples per second rise, and adapt the learning rate."
    )


@check(
    number="1.6",
    needs=("machine",),
    uses=("baseline", "trace"),
    threshold=f"a kernel runs ≥ {percent(PASS_USED)} of the time passes, < {percent(FAIL_USED)} fails, by the"
    " driver's figure or the trace's, whichever is lower",
)
def gpu_utilisation(evidence: Evidence) -> Outcome:
    """GPU utilisation

    What it looks at
    The share of time in which the device works, told twice. The driver (NVML) samples it during the
    baseline's blocks, over all GPUs that the job may use. The trace tells it to the microsecond: the
    device's busy time per step, over what a step of the baseline takes without the profiler, which slows
    the host. Both err upwards, the driver because it averages over up to a second, other processes included,
    the trace because it looks at one device and at steps alone; so the lower one decides. A GPU that
    TensorFlow does not see is not used at all.

    Why it matters
    An idle GPU costs as much as a busy one. That it is busy does not say that it is used well: 1.12 and 5.1
    look at that.

    How to fix
    1.10 and 1.11 tell what the device waits for. Input: 3.3 and 4.1. Launching: steps_per_execution, XLA
    (5.2), a larger batch (1.5).
    """
    baseline = evidence.variant("baseline")
    during = load(baseline.blocks) if baseline else None
    if not evidence.accelerators:
        if during is None or not during.devices:
            return not_applicable(NO_ACCELERATOR)
        return failed(f"TensorFlow does not see the GPU that is there: {during.devices[0].name}.", fix=UNSEEN)
    figures = device_figures(evidence, during)
    if not figures:
        return unknown(f"Neither the driver nor a trace tells how busy the device is. {NO_NVML}")
    used = min(figures.values())
    facts = {
        "by_the_driver_fraction": figures.get("driver"),
        "by_the_trace_fraction": figures.get("trace"),
        "in_traced_steps_fraction": _busy_in_trace(evidence),
        "device": [_in_words(device) for device in during.devices] if during else None,
    }
    told = ", ".join(f"the {source} says {percent(share)} busy" for source, share in figures.items())
    if used >= PASS_USED:
        return passed(f"The device works {percent(used)} of the time: {told}.", **facts)
    total, device = _traced(evidence)
    cause = main_cause(device, total) if device else ""
    idle = f"The device is idle {percent(1 - used)} of the time{cause}: {told}."
    return (failed if used < FAIL_USED else warned)(idle, **facts)


def device_figures(evidence: Evidence, during: Load | None) -> dict[str, float]:
    """The share of time in which the device works, by each source that tells it."""
    told = {"driver": during.device_fraction if during else None, "trace": used_by_trace(evidence)}
    return {source: share for source, share in told.items() if share is not None}


def used_by_trace(evidence: Evidence) -> float | None:
    """The device's busy time per traced step over the time of an untraced one.

    The profiler makes the host slower, which leaves longer gaps in the trace than there are without it, but
    kernels take as long. Without steps, or a baseline to compare with, it is the share in the trace itself.
    """
    share, usual_ms = _busy_in_trace(evidence), _step_ms(evidence.variant("baseline"))
    total, _ = _traced(evidence)
    if share is None or total is None or not usual_ms:
        return share
    return min(1.0, share * total.duration_ms / total.count / usual_ms)


def _busy_in_trace(evidence: Evidence) -> float | None:
    """The share of the traced steps, or without steps of the device's span, in which it was busy."""
    seen = next((part for part in _traced(evidence) if part), None)
    return None if seen is None or seen.idle_fraction is None else 1 - seen.idle_fraction


def _traced(evidence: Evidence) -> tuple[Split | None, Device | None]:
    """The steps and the busiest device of the trace, as far as it has them."""
    summary = evidence.trace.summary if evidence.trace else None
    return (split(summary.steps), busiest(summary)) if summary else (None, None)


def _step_ms(result: VariantResult | None) -> float | None:
    """The mean time of a call of the train function, which is what a step of the trace is."""
    blocks = result.blocks if result else ()
    calls = sum(len(block.step_ns) for block in blocks)
    return sum(block.duration_ns for block in blocks) / calls / 1e6 if calls else None


def _in_words(device: DeviceUsage) -> str:
    """What the driver tells of a GPU besides its memory."""
    told = [device.name]
    if device.utilisation_fraction is not None:
        told.append(f"{percent(device.utilisation_fraction)} busy")
    if device.power_w is not None:
        told.append(f"{device.power_w:.0f} W")
    if device.temperature_c is not None:
        told.append(f"{device.temperature_c:.0f} °C")
    if device.throttled:
        told.append(f"clocks held back: {', '.join(device.throttled)}")
    return ", ".join(told)


@check(
    number="1.7",
    needs=("baseline", "machine"),
    uses=("cached-input", "trace", "program"),
    threshold=f"cores ≥ {percent(SATURATED)} busy fail where an accelerator works < {percent(FAIL_USED)} of"
    f" the time; waiting for disks ≥ {percent(WARN_IOWAIT)} of the cores' time warns; where cached input"
    f" gives ≥ {WARN_GAIN:g}×, so do cores ≥ {percent(SATURATED)} busy, and a job that uses"
    f" ≤ {SERIAL_CORES:g} of several",
)
def system_bottleneck(evidence: Evidence) -> Outcome:
    """CPU, disk and network load

    What it looks at
    The machine's counters around the baseline's blocks, all other variants being frozen: how many cores were
    busy and how many of them with the job, how long cores waited for disks, bytes to and from disks and
    network. Where cached input makes the job no faster, neither disks nor the pipeline hold it up.

    Why it matters
    The step waits for the slowest part. A faster accelerator or a better model does nothing for a job that
    waits for the CPU, a disk or the network.

    How to fix
    CPU: do less per step (cache, 4.2), on the accelerator (4.3), or with more cores (4.4). Disk: larger
    files read in parallel (3.1), a faster disk, cache(). One core at work: num_parallel_calls=AUTOTUNE and
    a prefetch (4.1), no Python in the pipeline (5.5).
    """
    baseline = evidence.variant("baseline")
    assert baseline is not None
    during = load(baseline.blocks)
    if during is None or during.busy_fraction is None:
        return unknown("What the machine did during the baseline's blocks was not recorded.")
    figures = device_figures(evidence, during) if evidence.accelerators else {}
    gain = input_gain(evidence)
    judge, sentence, fix = _bottleneck(evidence, during, min(figures.values(), default=1.0), gain)
    bounds = judge is not passed and gain is not None and gain.low >= WARN_GAIN
    facts = _load_facts(during, figures, gain)
    return judge(f"{sentence}{_others(during)}", fix=fix, at_most=gain if bounds else None, **facts)


def _bottleneck(
    evidence: Evidence, during: Load, device: float, gain: Interval | None
) -> tuple[Callable[..., Outcome], str, str]:
    """The verdict, a sentence and advice; ``device`` is how much of the time the accelerator works."""
    waits = gain is not None and gain.low >= WARN_GAIN
    may_wait = gain is None or gain.high >= WARN_GAIN
    busy, iowait = during.busy_fraction or 0.0, during.iowait_fraction or 0.0
    saturated, job = busy >= SATURATED, _job(during)
    if saturated and device < FAIL_USED:
        both = f"The accelerator works {percent(device)} of the time, the cores {percent(busy)}"
        # Where others take them, nobody knows what the job alone would do.
        judge = warned if during.is_crowded else failed
        return judge, f"{both}: the CPU holds it up.", FOR_BUSY_CORES if may_wait else FOR_BUSY_HOST
    if iowait >= WARN_IOWAIT and may_wait:
        return warned, f"Cores wait for disks {percent(iowait)} of their time.", FOR_DISKS
    if waits and saturated and during.is_crowded:
        return unknown, f"Training waits for input while others keep the cores busy: {job}.", ""
    if waits and saturated:
        return warned, f"Training waits for input while the cores are busy: {job}.", FOR_BUSY_CORES
    if waits and is_serial(during):
        fix = _for_serial_stages(evidence)
        return warned, f"Training waits for what runs one after another: {job}.", fix
    if saturated:
        alone = gain is not None and gain.median < WARN_GAIN and not during.is_crowded
        return passed, f"The cores are busy{' with the model itself' if alone else ''}: {job}.", ""
    elsewhere = " What it waits for (1.8) is neither." if waits else ""
    return passed, f"Neither cores nor disks are at their limit: {job}.{elsewhere}", ""


def is_serial(during: Load) -> bool:
    """Whether the job keeps about one core busy where there are several."""
    several = during.core_limit is not None and during.core_limit >= 2
    return several and during.job_cores is not None and during.job_cores <= SERIAL_CORES


def _job(during: Load) -> str:
    """``the job uses 1.9 of 2 cores``."""
    if during.job_cores is None or during.core_limit is None:
        return f"{percent(during.busy_fraction or 0.0)} of what they can do is taken"
    used = min(during.job_cores, during.core_limit)
    return f"the job uses {used:.2g} of {during.core_limit:g} cores"


def _others(during: Load) -> str:
    if not during.is_crowded:
        return ""
    share = percent(during.others_fraction or 0.0)
    return f" Other processes took {share} of the busy time: the rate may be higher on a quiet machine."


def _for_serial_stages(evidence: Evidence) -> str:
    """The lines that make this program's stages parallel, where there are any."""
    _, advice = pipeline_faults(evidence.program) if evidence.program else ([], [])
    return "\n".join(advice) or FOR_ONE_CORE


def _load_facts(during: Load, figures: dict[str, float], gain: Interval | None) -> dict[str, object]:
    return {
        "cores": during.core_limit,
        "cores_busy": during.busy_cores,
        "cores_used_by_the_job": during.job_cores,
        "busy_time_of_other_processes_fraction": during.others_fraction,
        "waiting_for_disks_fraction": during.iowait_fraction,
        "disk": {
            "read": _speed(during.disk_read_bytes_per_s),
            "written": _speed(during.disk_written_bytes_per_s),
        },
        "network": {
            "received": _speed(during.network_received_bytes_per_s),
            "sent": _speed(during.network_sent_bytes_per_s),
        },
        "memory_of_the_job_bytes": during.job_memory_bytes,
        "memory_available_bytes": during.available_memory_bytes,
        "accelerator_works_fraction": min(figures.values(), default=None),
        "cached_input_over_baseline_ratio": gain,
    }


def _speed(bytes_per_s: float | None) -> str:
    return numbers.MISSING if bytes_per_s is None else f"{bytes_per_s / 1e6:,.3g} MB/s"
