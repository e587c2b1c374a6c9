"""Steps: where they are found, and what each went to."""

from collections.abc import Callable

import pytest
from xspaces import PlaneBuilder, gpu, host

from tfaudit.trace.summary import Step, TraceSummary

Summarise = Callable[..., TraceSummary]
PARTS = ("input_wait_ms", "copy_ms", "launch_ms", "compute_ms", "communication_ms", "other_ms")


def parts(step: Step) -> list[float]:
    values = [getattr(step, part) for part in PARTS]
    assert sum(values) == pytest.approx(step.duration_ms)
    return [round(value, 6) for value in values]


@pytest.mark.parametrize("name", ["train", "TraceContext", "Profiled batch", "tfaudit step"])
def test_host_markers_of_any_name_are_steps(summary: Summarise, name: str) -> None:
    cpu = host()
    for i in range(3):
        cpu.event("python", name, i * 100, 90, step_num=i + 5, _r=1)
    assert [step.step for step in summary(cpu).steps] == [5, 6, 7]


def test_markers_without_root_are_used_and_told(summary: Summarise) -> None:
    """Keras 3 writes them so; XProf finds no step then."""
    result = summary(host().event("python", "Profiled batch", 0, 90, step_num=1))
    assert len(result.steps) == 1
    assert "markers-without-root" in {remark.kind for remark in result.health}


def test_without_any_marker_there_are_no_steps(summary: Summarise) -> None:
    result = summary(gpu().event("Stream #1", "k", 0, 10))
    assert result.steps == ()
    assert "no-steps" in {remark.kind for remark in result.health}


def test_of_nested_markers_the_outer_counts(summary: Summarise) -> None:
    cpu = host().event("python", "tfaudit step", 0, 100, step_num=3, _r=1)
    cpu.event("python", "train", 10, 80, step_num=0, _r=1)
    assert [step.step for step in summary(cpu).steps] == [3]


def test_the_devices_steps_line_is_enough(summary: Summarise) -> None:
    plane = gpu().event("Stream #1", "k", 0, 10).event("Steps", "7", 0, 20)
    (step,) = summary(plane).steps
    assert (step.step, step.duration_ms) == (7, pytest.approx(0.020))


def test_host_and_device_steps_of_one_group_are_one(summary: Summarise) -> None:
    """The marker spans 0-50, the device's step 40-90: the step is 0-90 and has the marker's number."""
    plane = gpu().event("Stream #1", "k", 40, 50).event("Steps", "0", 40, 50, group_id=0)
    cpu = host().event("python", "train", 0, 50, step_num=12, _r=1, group_id=0)
    (step,) = summary(plane, cpu).steps
    assert (step.step, step.duration_ms) == (12, pytest.approx(0.090))


def test_a_host_that_runs_ahead_does_not_lengthen_steps(summary: Summarise) -> None:
    """Markers at 0 and 10, device steps 20-120 and 120-220: 120 and 100 us, not 120 and 210."""
    plane, cpu = gpu(), host()
    for i in range(2):
        plane.event("Stream #1", "k", 20 + 100 * i, 100)
        plane.event("Steps", str(i), 20 + 100 * i, 100, group_id=i)
        cpu.event("python", "train", 10 * i, 10, step_num=i, _r=1, group_id=i)
    durations = [step.duration_ms for step in summary(plane, cpu).steps]
    assert durations == [pytest.approx(0.120), pytest.approx(0.100)]


def test_replicas_that_run_a_step_at_different_times_have_one_each(summary: Summarise) -> None:
    one = gpu(0).event("Stream #1", "k", 0, 10).event("Steps", "0", 0, 10)
    two = gpu(1).event("Stream #1", "k", 900, 10).event("Steps", "0", 900, 10)
    result = summary(one, two)
    assert [(s.step, s.device) for s in result.steps] == [
        (0, "/device:GPU:0"),
        (0, "/device:GPU:1"),
    ]


def training() -> tuple[PlaneBuilder, PlaneBuilder]:
    """A step of 1000 us: wait 0-400, copy 400-500, launch until 520, compute 520-820, all-reduce
    800-900 of which 80 are exposed, nothing after."""
    plane = gpu().event("Stream #3", "MemcpyH2D", 400, 100)
    plane.event("Stream #1", "gemm", 520, 300)
    plane.event("Stream #2", "ncclKernel_AllReduce_RING_LL_Sum_float", 800, 100)
    cpu = host().event("python", "train", 0, 1000, step_num=1, _r=1)
    cpu.event("tf_data_iterator_get_next/1", "IteratorGetNextOp::DoCompute", 0, 400)
    cpu.event("tf_gpu_private/1", "ExecutorState::Process", 500, 30)
    return plane, cpu


def test_a_step_is_split_into_what_it_went_to(summary: Summarise) -> None:
    (step,) = summary(*training()).steps
    assert parts(step) == [0.4, 0.1, 0.02, 0.3, 0.08, 0.1]
    assert step.idle_fraction == pytest.approx(0.52)


def test_waiting_hidden_by_compute_is_not_waiting(summary: Summarise) -> None:
    plane = gpu().event("Stream #1", "k", 0, 100)
    cpu = host().event("python", "train", 0, 100, step_num=1, _r=1)
    cpu.event("w", "IteratorGetNextOp::DoCompute", 0, 90)
    (step,) = summary(plane, cpu).steps
    assert parts(step) == [0, 0, 0, 0.1, 0, 0]


def test_a_step_that_waits_54_s_is_waiting_for_input(summary: Summarise) -> None:
    """Only the pipeline's threads show: the wait began before the profile did."""
    plane = gpu().event("Stream #1", "k", 0, 10).event("Stream #1", "k", 54_000_010, 10)
    plane.event("Steps", "1", 0, 54_000_020)
    cpu = host().event("tf_data_iterator_resource/1", "Iterator::Prefetch::Map", 5, 53_999_000)
    result = summary(plane, cpu)
    (step,) = result.steps
    assert step.input_wait_ms / step.duration_ms > 0.99
    assert result.devices[0].gaps[0].cause == "waiting for input"
    assert parts(step)[-1] < 540


def test_a_wait_before_the_first_kernel_of_a_step_counts(summary: Summarise) -> None:
    """The device's own step begins with the kernel; the marker shows the wait before it."""
    plane = gpu().event("Stream #1", "k", 900, 100).event("Steps", "0", 900, 100, group_id=0)
    cpu = host().event("python", "train", 0, 950, step_num=0, _r=1, group_id=0)
    cpu.event("w", "IteratorGetNextOp::DoCompute", 10, 880)
    (step,) = summary(plane, cpu).steps
    assert parts(step) == [0.88, 0, 0, 0.1, 0, 0.02]


def test_on_the_cpu_ops_are_the_compute(summary: Summarise) -> None:
    cpu = host().event("python", "train", 0, 100, step_num=1, _r=1)
    cpu.event("w", "IteratorGetNextOp::DoCompute", 0, 40)
    cpu.event("tf_Compute/1", "ExecutorState::Process", 45, 50)
    cpu.event("tf_Compute/1", "dense/MatMul:MatMul", 50, 30)
    cpu.event("tf_data_private_threadpool/1", "Sqrt:Sqrt", 0, 100)
    result = summary(cpu)
    (step,) = result.steps
    assert parts(step) == [0.04, 0, 0.02, 0.03, 0, 0.01]
    assert step.device is None
    assert [op.name for op in result.hosts[0].top_ops] == ["dense/MatMul:MatMul"]
    assert result.hosts[0].input_wait_ms == pytest.approx(0.040)
