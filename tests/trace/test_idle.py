"""Why a device idled. Each test has two kernels, 0-10 and 5010-5020 us, and so one gap of 5 ms."""

from collections.abc import Callable

import pytest
from xspaces import PlaneBuilder, gpu, host

from tfaudit.trace.summary import Cause, TraceSummary

Summarise = Callable[..., TraceSummary]


def kernels(**second: object) -> PlaneBuilder:
    plane = gpu().event("Stream #1", "k", 0, 10, correlation_id=1)
    return plane.event("Stream #1", "k", 5010, 10, **{"correlation_id": 2, **second})


def launches(first_us: float = -5, second_us: float = 5000) -> PlaneBuilder:
    plane = host().line("tf_gpu_private/1", 1)
    plane.event("tf_gpu_private/1", "cuLaunchKernel", max(first_us, 0), 2, correlation_id=1)
    return plane.event("tf_gpu_private/1", "cuLaunchKernel", second_us, 2, correlation_id=2)


def cause(summary: Summarise, *planes: PlaneBuilder) -> Cause:
    result = summary(*planes)
    (gap,) = result.devices[0].gaps
    assert gap.duration_ms == pytest.approx(5.0)
    assert [each.cause for each in result.devices[0].idle_causes] == [gap.cause]
    return gap.cause


@pytest.mark.parametrize(
    "name",
    [
        "IteratorGetNextOp::DoCompute",
        "IteratorGetNextAsOptionalOp::DoCompute",
        "IteratorGetNext:IteratorGetNext",
        "cond/IteratorGetNext_2:IteratorGetNext",
        "MultiDeviceIteratorGetNextFromShard:MultiDeviceIteratorGetNextFromShard",
        "EagerExecute: IteratorGetNext",
        "fifo_queue_Dequeue:QueueDequeueManyV2",
    ],
)
def test_waiting_for_input(summary: Summarise, name: str) -> None:
    assert cause(summary, kernels(), launches().event("w", name, 20, 4900)) is Cause.INPUT


def test_sending_a_batch_on_is_not_waiting_for_it(summary: Summarise) -> None:
    cpu = launches().event("w", "IteratorGetNext/_1:_Send", 20, 4900)
    assert cause(summary, kernels(), cpu) is not Cause.INPUT


def test_a_wait_that_began_before_the_profile_shows_only_its_pipeline(summary: Summarise) -> None:
    cpu = launches().event("tf_data_iterator_resource/2", "Iterator::Prefetch::Map", 20, 4900)
    assert cause(summary, kernels(), cpu) is Cause.INPUT


def test_a_pipeline_that_works_ahead_is_no_wait(summary: Summarise) -> None:
    """The executor is busy, the pipeline fills its buffer meanwhile: not the input's fault."""
    cpu = launches().event("tf_data_iterator_resource/2", "Iterator::Prefetch::Map", 20, 4900)
    cpu.event("tf_gpu_private/1", "ExecutorState::Process", 15, 4950)
    assert cause(summary, kernels(), cpu) is Cause.LAUNCH


@pytest.mark.parametrize(
    "name", ["cuStreamSynchronize", "cuMemcpyDtoH_v2", "hipMemcpyDtoH", "TensorHandle::Resolve"]
)
def test_host_blocked_by_a_read_back(summary: Summarise, name: str) -> None:
    assert cause(summary, kernels(), launches().event("w", name, 20, 4900)) is Cause.COPY


def test_an_asynchronous_copy_call_blocks_nobody(summary: Summarise) -> None:
    cpu = launches().event("w", "cuMemcpyDtoHAsync_v2", 20, 4900)
    assert cause(summary, kernels(), cpu) is not Cause.COPY


def test_a_gap_after_a_synchronous_read_back(summary: Summarise) -> None:
    plane = kernels()
    plane.event("Stream #2", "MemcpyD2H", 5, 5, memcpy_details="size:4 dest:0 async:0")
    assert cause(summary, plane, launches()) is Cause.COPY


@pytest.mark.parametrize(
    "name", ["XlaCompilationCache::Compile", "cuModuleLoadData", "GpuConvAlgorithmPicker::Run"]
)
def test_compilation(summary: Summarise, name: str) -> None:
    assert cause(summary, kernels(), launches().event("w", name, 20, 4900)) is Cause.COMPILATION


def test_input_is_asked_before_compilation(summary: Summarise) -> None:
    cpu = launches().event("w", "XlaCompile", 20, 4900)
    cpu.event("v", "IteratorGetNextOp::DoCompute", 20, 4900)
    assert cause(summary, kernels(), cpu) is Cause.INPUT


def test_a_late_launch_by_a_busy_executor_is_launch_bound(summary: Summarise) -> None:
    cpu = launches().event("tf_gpu_private/1", "ExecutorState::Process", 15, 4950)
    assert cause(summary, kernels(), cpu) is Cause.LAUNCH


def test_a_late_launch_is_launch_bound_where_the_executor_is_not_traced(summary: Summarise) -> None:
    assert cause(summary, kernels(), launches()) is Cause.LAUNCH


def test_a_late_launch_by_an_idle_executor_is_pythons(summary: Summarise) -> None:
    cpu = launches().event("tf_gpu_private/1", "ExecutorState::Process", 4950, 60)
    assert cause(summary, kernels(), cpu) is Cause.OTHER


def test_a_launch_in_time_leaves_the_cause_open(summary: Summarise) -> None:
    assert cause(summary, kernels(), launches(second_us=5)) is Cause.OTHER


def test_within_a_cuda_graph_the_cause_is_uncertain(summary: Summarise) -> None:
    result = summary(kernels(cuda_graph_id=9), launches(second_us=5))
    assert result.devices[0].gaps[0].cause is Cause.GRAPH
    assert "cuda-graphs" in {remark.kind for remark in result.health}


def test_kernels_that_share_a_launch_are_uncertain_too(summary: Summarise) -> None:
    plane = kernels(correlation_id=1)
    assert cause(summary, plane, launches()) is Cause.GRAPH


def test_gaps_know_their_step(summary: Summarise) -> None:
    cpu = launches().event("python", "train", 0, 6000, step_num=42, _r=1)
    (gap,) = summary(kernels(), cpu).devices[0].gaps
    assert gap.step == 42
