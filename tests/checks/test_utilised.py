"""How busy the machine is, in section 1: one line on each side of each threshold."""

from __future__ import annotations

from typing import Any

import pytest
from checks.builders import BLOCKS, CPU, GPU, SERIAL, block, evidence, failed, judged, measured, usage
from checks.traces import device, step, summary, traced

from tfaudit import checking
from tfaudit.evidence import Evidence, TraceEvidence
from tfaudit.records import DeviceUsage, Status, Usage, VariantResult

GIB = 2**30


def under(load: Usage | None, samples_per_s: float = 100.0, **fields: Any) -> VariantResult:
    """The baseline, in each of whose blocks the machine did that."""
    blocks = [block(samples_per_s, usage=load)] * BLOCKS
    return measured("baseline", **{"blocks": blocks, **fields})


def gpu(
    used: float | None = None, reserved: int | None = None, total: int | None = 100, **fields: Any
) -> Any:
    """What the driver tells of one GPU; memory in GiB."""
    sizes = {"memory_used_bytes": reserved, "memory_total_bytes": total}
    sizes = {name: size and size * GIB for name, size in sizes.items()}
    return DeviceUsage(**{"name": "Some GPU", "utilisation_fraction": used, **sizes, **fields})


def on_gpu(*gpus: DeviceUsage, peak: int | None = None, **given: Any) -> Evidence:
    """A machine with a GPU, what the driver tells of it and what TensorFlow does; memory in GiB."""
    baseline = under(usage(devices=gpus), peak_device_bytes=peak and peak * GIB)
    return evidence(baseline, **{"devices": (CPU, GPU), **given})


def larger(twice: float, four_times: float) -> Evidence:
    """A GPU half empty, and what larger batches give where cached input gives 100."""
    return on_gpu(gpu(), peak=49, cached_input=100.0, batch_x2=twice, batch_x4=four_times)


def both(driver: float, idle: float) -> Evidence:
    """The driver's figure, and a trace of steps that take as long as the baseline's."""
    found = TraceEvidence(summary=summary(step(idle_fraction=idle), device()))
    baseline = under(usage(devices=(gpu(driver),)), 1000.0)
    return evidence(baseline, devices=(CPU, GPU), trace=found)


def load(gain: float | None = None, driver: float | None = None, **fields: Any) -> Evidence:
    """A load under the baseline, what cached input gives, and the driver's figure where there is a GPU."""
    devices = (CPU,) if driver is None else (CPU, GPU)
    gpus = () if driver is None else (gpu(driver),)
    rates = {} if gain is None else {"cached_input": 100.0 * gain}
    return evidence(under(usage(devices=gpus, **fields)), devices=devices, program=SERIAL, **rates)


def busy(share: float, **fields: Any) -> dict[str, Any]:
    """Four cores that are busy for that share of the time, with the job unless told otherwise."""
    return {"busy_core_s": (share,) * 4, "job_cpu_s": 4 * share, **fields}


TOTAL_BY_TRACE = TraceEvidence(summary=summary(step(), device(memory_bytes=100 * GIB)))

CASES = {
    "1.5 half": ("1.5", on_gpu(gpu(), peak=50), Status.PASS),
    "1.5 less than half": ("1.5", on_gpu(gpu(), peak=49), Status.WARN),
    "1.5 what others reserve does not count": ("1.5", on_gpu(gpu(reserved=99), peak=49), Status.WARN),
    "1.5 all reserve less than half": ("1.5", on_gpu(gpu(reserved=49)), Status.WARN),
    "1.5 all reserve half": ("1.5", on_gpu(gpu(reserved=50)), Status.UNKNOWN),
    "1.5 the size is in the trace": ("1.5", on_gpu(peak=49, trace=TOTAL_BY_TRACE), Status.WARN),
    "1.5 nobody tells the size": ("1.5", on_gpu(peak=49), Status.UNKNOWN),
    "1.5 the driver tells neither": ("1.5", on_gpu(gpu(total=None), peak=49), Status.UNKNOWN),
    "1.5 only the size": ("1.5", on_gpu(gpu()), Status.UNKNOWN),
    "1.5 less than half, larger batches gain 5 %": ("1.5", larger(105.0, 105.0), Status.WARN),
    "1.5 less than half, they gain 4 %": ("1.5", larger(104.0, 104.0), Status.PASS),
    "1.5 less than half, the largest gains": ("1.5", larger(104.0, 110.0), Status.WARN),
    "1.5 no accelerator": ("1.5", evidence(under(usage())), Status.NOT_APPLICABLE),
    "1.5 no baseline": ("1.5", evidence(devices=(CPU, GPU)), Status.UNKNOWN),
    "1.6 driver 95 %": ("1.6", on_gpu(gpu(0.95)), Status.PASS),
    "1.6 driver 94 %": ("1.6", on_gpu(gpu(0.94)), Status.WARN),
    "1.6 driver 80 %": ("1.6", on_gpu(gpu(0.80)), Status.WARN),
    "1.6 driver 79 %": ("1.6", on_gpu(gpu(0.79)), Status.FAIL),
    "1.6 driver 0 %": ("1.6", on_gpu(gpu(0.0)), Status.FAIL),
    "1.6 one GPU of two": ("1.6", on_gpu(gpu(1.0), gpu(0.0)), Status.FAIL),
    "1.6 trace idle 5 %": ("1.6", traced(step(idle_fraction=0.05), device(), baseline=1000.0), Status.PASS),
    "1.6 trace idle 6 %": ("1.6", traced(step(idle_fraction=0.06), device(), baseline=1000.0), Status.WARN),
    "1.6 trace idle 20 %": ("1.6", traced(step(idle_fraction=0.2), device(), baseline=1000.0), Status.WARN),
    "1.6 trace idle 21 %": ("1.6", traced(step(idle_fraction=0.21), device(), baseline=1000.0), Status.FAIL),
    "1.6 the trace alone": ("1.6", traced(step(idle_fraction=0.21), device()), Status.FAIL),
    "1.6 no steps, idle 21 %": ("1.6", traced(device(idle_fraction=0.21), baseline=1000.0), Status.FAIL),
    "1.6 idle only because of the profiler": (
        "1.6",  # 60 ms of work per step, which takes 62.5 ms without the profiler
        traced(step(idle_fraction=0.4), device(), baseline=1600.0),
        Status.PASS,
    ),
    "1.6 busy only while the buffers were full": (
        "1.6",
        traced(step(idle_fraction=0.0), device(), baseline=500.0),
        Status.FAIL,
    ),
    "1.6 the trace is lower": ("1.6", both(driver=0.99, idle=0.21), Status.FAIL),
    "1.6 the driver is lower": ("1.6", both(driver=0.79, idle=0.0), Status.FAIL),
    "1.6 both high": ("1.6", both(driver=0.99, idle=0.01), Status.PASS),
    "1.6 neither": ("1.6", on_gpu(gpu(None)), Status.UNKNOWN),
    "1.6 a trace without the device": (
        "1.6",
        traced(step(device=None, idle_fraction=None), baseline=1000.0),
        Status.UNKNOWN,
    ),
    "1.6 no usage": ("1.6", evidence(baseline=100.0, devices=(CPU, GPU)), Status.UNKNOWN),
    "1.6 no accelerator": ("1.6", evidence(under(usage())), Status.NOT_APPLICABLE),
    "1.6 a GPU that TensorFlow does not see": ("1.6", on_gpu(gpu(0.0), devices=(CPU,)), Status.FAIL),
    "1.7 GPU 79 %, cores 90 %": ("1.7", load(driver=0.79, **busy(0.90)), Status.FAIL),
    "1.7 GPU 79 %, cores 89 %": ("1.7", load(driver=0.79, **busy(0.89)), Status.PASS),
    "1.7 GPU 80 %, cores 90 %": ("1.7", load(driver=0.80, **busy(0.90)), Status.PASS),
    "1.7 GPU 79 %, cores taken by others": (
        "1.7",
        load(driver=0.79, **busy(0.95, job_cpu_s=1.0)),
        Status.WARN,
    ),
    "1.7 GPU 79 %, all of the quota": (
        "1.7",
        load(driver=0.79, busy_core_s=(0.1,) * 64, core_limit=6.0, job_cpu_s=5.5),
        Status.FAIL,
    ),
    "1.7 disks 10 %": ("1.7", load(iowait_core_s=0.4), Status.WARN),
    "1.7 disks 9 %": ("1.7", load(iowait_core_s=0.36), Status.PASS),
    "1.7 disks 10 %, and input costs": ("1.7", load(gain=1.06, iowait_core_s=0.4), Status.WARN),
    "1.7 disks 10 %, but input costs nothing": ("1.7", load(gain=1.04, iowait_core_s=0.4), Status.PASS),
    "1.7 one core at work": ("1.7", load(gain=1.06, job_cpu_s=1.2), Status.WARN),
    "1.7 one core at work, waiting for nothing": ("1.7", load(gain=1.04, job_cpu_s=1.2), Status.PASS),
    "1.7 one core at work, nobody knows": ("1.7", load(job_cpu_s=1.2), Status.PASS),
    "1.7 more than one core at work": ("1.7", load(gain=1.06, job_cpu_s=1.21), Status.PASS),
    "1.7 one core at work, as there are no more": (
        "1.7",
        load(gain=1.06, busy_core_s=(0.5,), core_limit=1.0, job_cpu_s=0.5),
        Status.PASS,
    ),
    "1.7 a CPU that works": ("1.7", load(gain=1.0, **busy(1.0)), Status.PASS),
    "1.7 a CPU that works, input not measured": ("1.7", load(**busy(1.0)), Status.PASS),
    "1.7 a CPU that works for the input too": ("1.7", load(gain=1.06, **busy(1.0)), Status.WARN),
    "1.7 a quiet CPU": ("1.7", load(gain=1.0), Status.PASS),
    "1.7 the job is not told": ("1.7", load(gain=1.06, job_cpu_s=None), Status.PASS),
    "1.7 cores are not told": ("1.7", load(busy_core_s=(), core_limit=None), Status.UNKNOWN),
    "1.7 no usage": ("1.7", evidence(baseline=100.0), Status.UNKNOWN),
    "1.7 no baseline": ("1.7", evidence(cached_input=100.0), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", CASES)
def test_status(case: str) -> None:
    number, given, status = CASES[case]
    assert judged(number, given).status == status


def facts(number: str, given: Evidence) -> dict[str, object]:
    return {fact.name: fact.value for fact in judged(number, given).facts}


# 1.5 ------------------------------------------------------------------------------------------------


def test_a_larger_batch_is_an_estimate_and_a_power_of_two() -> None:
    """Seven times the memory that is in use: four times the batch of 100 fits."""
    result = judged("1.5", on_gpu(gpu(), peak=14))
    assert result.summary == "The job's tensors take up to 14 % of the device's 100 GiB."
    assert result.fix.startswith("4× the batch, 400 samples, should fit (an estimate: ")
    assert result.gain is None


def test_what_all_reserve_stands_beside_the_jobs_own() -> None:
    told = facts("1.5", on_gpu(gpu(reserved=90), peak=60))
    assert told["peak of tensors"] == 60 * GIB
    assert told["reserved by all processes"] == 90 * GIB
    assert told["total"] == 100 * GIB


def test_how_to_learn_the_size_is_said() -> None:
    assert "pip install 'tfaudit[gpu]'" in judged("1.5", on_gpu(peak=49)).summary


# 1.6 ------------------------------------------------------------------------------------------------


def test_both_figures_stand_side_by_side() -> None:
    result = judged("1.6", both(driver=0.9, idle=0.3))
    assert result.summary == (
        "The device is idle 30 % of the time: the driver says 90 % busy, the trace says 70 % busy."
    )
    told = facts("1.6", both(driver=0.9, idle=0.3))
    assert (told["by the driver"], told["by the trace"]) == pytest.approx((0.9, 0.7))


def test_what_the_device_waits_for_is_said() -> None:
    waiting = traced(step(input_wait=60.0, idle_fraction=0.6), device(), baseline=1000.0)
    assert judged("1.6", waiting).summary == (
        "The device is idle 60 % of the time, mostly waiting for input: the trace says 40 % busy."
    )


def test_what_the_trace_itself_shows_is_kept_beside_the_corrected_figure() -> None:
    told = facts("1.6", traced(step(idle_fraction=0.4), device(), baseline=1250.0))
    assert told["by the trace"] == pytest.approx(0.75)
    assert told["in traced steps"] == pytest.approx(0.6)


def test_no_trace_makes_a_device_busier_than_always() -> None:
    told = facts("1.6", traced(step(idle_fraction=0.0), device(), baseline=2000.0))
    assert told["by the trace"] == 1.0


def test_each_gpu_is_told_with_what_holds_it_back() -> None:
    hot = gpu(0.5, power_w=251.4, temperature_c=88, throttled=("heat",))
    told = [fact.value for fact in judged("1.6", on_gpu(hot, gpu())).facts if fact.name == "device"]
    assert told == ["Some GPU, 50 % busy, 251 W, 88 °C, clocks held back: heat", "Some GPU"]


def test_how_to_get_a_figure_is_said() -> None:
    assert "pip install 'tfaudit[gpu]'" in judged("1.6", evidence(devices=(CPU, GPU))).summary


def test_a_gpu_that_is_not_seen_is_named() -> None:
    result = judged("1.6", on_gpu(gpu(0.0), devices=(CPU,)))
    assert result.summary == "TensorFlow does not see the GPU that is there: Some GPU."
    assert "tensorflow[and-cuda]" in result.fix


# 1.7 ------------------------------------------------------------------------------------------------


def test_a_cpu_that_works_is_not_blamed() -> None:
    result = judged("1.7", load(gain=1.0, **busy(0.98)))
    assert result.summary == "The cores are busy with the model itself: the job uses 3.9 of 4 cores."
    assert result.fix == ""


def test_what_the_cores_are_busy_with_is_said_only_where_it_is_known() -> None:
    assert judged("1.7", load(**busy(1.0))).summary == "The cores are busy: the job uses 4 of 4 cores."


@pytest.mark.parametrize(("job_cpu_s", "told"), [(1.5, True), (1.51, False)])
def test_other_processes_are_told_from_a_quarter_of_the_busy_time(job_cpu_s: float, told: bool) -> None:
    result = judged("1.7", load(gain=1.0, job_cpu_s=job_cpu_s))
    assert ("Other processes took 25 % of the busy time: the rate may be" in result.summary) == told
    assert result.status == Status.PASS


def test_a_crowded_machine_is_not_busy_with_the_model() -> None:
    result = judged("1.7", load(gain=1.0, **busy(1.0, job_cpu_s=2.0)))
    assert result.summary.startswith(
        "The cores are busy: the job uses 2 of 4 cores. Other processes took 50 %"
    )


def test_a_core_that_others_take_makes_no_stage_serial() -> None:
    result = judged("1.7", load(gain=1.06, **busy(1.0, job_cpu_s=1.2)))
    assert result.summary.startswith("Training waits for input while others keep the cores busy: ")
    assert result.status == Status.UNKNOWN


def test_a_serial_stage_is_named_with_the_line_that_mends_it() -> None:
    result = judged("1.7", load(gain=1.3, job_cpu_s=1.1))
    assert "num_parallel_calls=tf.data.AUTOTUNE" in result.fix and "data.py:12" in result.fix
    assert result.gain is not None and result.gain_is_bound


def test_what_is_busy_though_input_costs_nothing_is_the_step() -> None:
    result = judged("1.7", load(gain=1.0, driver=0.5, **busy(0.95)))
    assert result.status == Status.FAIL and result.gain is None
    assert "steps_per_execution" in result.fix
    assert "cache()" in judged("1.7", load(gain=1.5, driver=0.5, **busy(0.95))).fix


def test_the_load_is_told_in_numbers() -> None:
    given = load(disk_read_bytes=25_000_000, network_sent_bytes=0, iowait_core_s=0.2)
    told = facts("1.7", given)
    assert (told["cores"], told["cores busy"], told["cores used by the job"]) == (4.0, 2.0, 2.0)
    assert (told["disk: read"], told["network: sent"], told["network: received"]) == (
        "25 MB/s",
        "0 MB/s",
        "—",
    )
    assert told["waiting for disks"] == pytest.approx(0.05)
    assert told["busy time of other processes"] == 0.0


def test_the_file_continues_section_1() -> None:
    assert {checking.load()[name].section for name in ("device-memory", "gpu-utilisation")} == {
        "Performance analysis"
    }


def test_larger_batches_that_do_not_fit_are_told_of() -> None:
    """1.5: also without an accelerator, where somebody asked for them."""
    found = evidence(failed("batch-x4", "memory", "build"), cached_input=100.0, batch_x2=130.0)
    result = judged("1.5", found)
    assert result.status == Status.NOT_APPLICABLE
    assert [(fact.name, fact.value) for fact in result.facts] == [
        ("batches of 2 times the size over cached input", pytest.approx(1.3)),
        ("batches of 4 times the size", "batch-x4 ended: memory."),
    ]
