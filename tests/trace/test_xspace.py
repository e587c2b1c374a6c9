"""What is read from an XSpace, one situation each."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from xspaces import Ref, Unsigned, gpu, host, message, number, space, write

from tfaudit.trace import summarise
from tfaudit.trace.summary import TraceSummary

Summarise = Callable[..., TraceSummary]


def test_busy_time_is_the_union_over_overlapping_streams(summary: Summarise) -> None:
    """0-100 and 50-120 overlap on two streams, 200-210 follows: 130 us busy of 210, one gap of 80."""
    plane = gpu()
    plane.event("Stream #1(Compute)", "k", 0, 100).event("Stream #2(Compute)", "k", 50, 70)
    plane.event("Stream #1(Compute)", "k", 200, 10)
    (device,) = summary(plane).devices
    assert device.events == 3
    assert device.span_ms == pytest.approx(0.210)
    assert device.busy_ms == pytest.approx(0.130)
    assert device.idle_fraction == pytest.approx(80 / 210)
    assert device.longest_gap_ms == pytest.approx(0.080)


def test_events_overlapping_within_one_line_count_once(summary: Summarise) -> None:
    plane = gpu().event("Stream #1", "k", 0, 100).event("Stream #1", "k", 20, 30)
    assert summary(plane).devices[0].busy_ms == pytest.approx(0.100)


def test_an_event_of_no_length_parts_a_gap(summary: Summarise) -> None:
    plane = gpu().event("Stream #1", "k", 0, 10).event("Stream #1", "k", 40, 0)
    plane.event("Stream #1", "k", 60, 10)
    (device,) = summary(plane).devices
    assert device.longest_gap_ms == pytest.approx(0.030)
    assert device.idle_fraction == pytest.approx(50 / 70)


@pytest.mark.parametrize(
    "derived", ["TensorFlow Ops", "TensorFlow Name Scope", "Steps", "XLA Modules", "XLA Ops", "Source"]
)
def test_derived_lines_add_no_busy_time(summary: Summarise, derived: str) -> None:
    plane = gpu().event("Stream #1(Compute)", "k", 0, 10).event(derived, "1", 0, 500)
    (device,) = summary(plane).devices
    assert (device.events, device.busy_ms) == (1, pytest.approx(0.010))


def test_a_tpu_is_read_from_its_xla_ops(summary: Summarise) -> None:
    plane = gpu()
    plane.name = "/device:TPU:0"
    plane.event("XLA Ops", "fusion", 0, 30).event("XLA Modules", "jit_f", 0, 100)
    plane.event("Async XLA Ops", "copy-start", 0, 90)
    (device,) = summary(plane).devices
    assert (device.events, device.busy_ms) == (1, pytest.approx(0.030))


def test_other_planes_are_no_devices(summary: Summarise) -> None:
    custom = gpu()
    custom.name = "/device:CUSTOM:Megascale Trace"
    custom.event("Stream #1", "k", 0, 5)
    assert summary(custom, host()).devices == ()


def test_each_line_counts_from_its_own_timestamp(summary: Summarise) -> None:
    """The second line starts 1 us later: 0-10 and 1+5=6-16 give 16 us."""
    plane = gpu().line("Stream #1", 1, 1_000_000).line("Stream #2", 2, 1_001_000)
    plane.event("Stream #1", "k", 0, 10).event("Stream #2", "k", 5, 10)
    assert summary(plane).devices[0].busy_ms == pytest.approx(0.016)


def test_host_and_device_share_one_clock_across_planes(summary: Summarise) -> None:
    """The wait of 900 us, on a host line that starts 100 us before the device's, fills the gap."""
    device = gpu().line("Stream #1", 1, 200_000)
    device.event("Stream #1", "k", 0, 10).event("Stream #1", "k", 910, 10)
    cpu = host().line("tf_data_iterator_get_next/1", 1, 100_000)
    cpu.event("tf_data_iterator_get_next/1", "IteratorGetNextOp::DoCompute", 110, 900)
    (gap,) = summary(device, cpu).devices[0].gaps
    assert gap.cause == "waiting for input"


def test_absolute_timestamps_of_a_real_clock_do_not_overflow(summary: Summarise) -> None:
    plane = gpu().line("Stream #1", 1, 1_795_986_724_011_614_492)
    plane.event("Stream #1", "k", 0, 10).event("Stream #1", "k", 30, 10)
    (device,) = summary(plane).devices
    assert (device.span_ms, device.gaps[0].start_ms) == (pytest.approx(0.040), pytest.approx(0.010))


def test_negative_line_ids_and_empty_names_are_ordinary(summary: Summarise) -> None:
    plane = gpu().line("Stream #1", -559038734)
    plane.event("Stream #1", "", 0, 10).event("Stream #1", "k", 10, 10)
    (device,) = summary(plane, host().line("", -1).event("", "", 0, 5)).devices
    assert device.busy_ms == pytest.approx(0.020)
    assert {op.name for op in device.top_ops} == {"", "k"}


def test_an_event_whose_name_is_missing_is_still_time(summary: Summarise) -> None:
    plane = gpu().event("Stream #1", "k", 0, 10)
    plane.names.clear()
    assert summary(plane).devices[0].busy_ms == pytest.approx(0.010)


@pytest.mark.parametrize("value", [Ref("model/dense/MatMul:MatMul"), "model/dense/MatMul:MatMul"])
def test_the_op_behind_a_kernel_is_read_as_reference_or_string(summary: Summarise, value: str) -> None:
    plane = gpu().event("Stream #1", "gemm", 0, 10, tf_op=value)
    assert summary(plane).devices[0].top_ops[0].op == "model/dense/MatMul:MatMul"


@pytest.mark.parametrize("kind", [int, Unsigned, float])
def test_a_correlation_id_may_be_signed_unsigned_or_double(summary: Summarise, kind: type) -> None:
    """The second kernel's launch, 50 us into the gap of 90 us, makes it launch-bound."""
    plane = gpu().event("Stream #1", "k", 0, 10)
    plane.event("Stream #1", "k", 100, 10, correlation_id=kind(7))
    cpu = host().event("worker", "cuLaunchKernel", 60, 5, correlation_id=kind(7))
    (gap,) = summary(plane, cpu).devices[0].gaps
    assert gap.cause == "launch-bound"


def test_facts_identify_the_device(summary: Summarise) -> None:
    plane = gpu(0, core_count=80, memory_size=16_945_512_448, compute_cap_major=7, compute_cap_minor=0)
    (device,) = summary(plane, host().event("a", "b", 0, 1)).devices
    assert (device.core_count, device.memory_bytes, device.compute_capability) == (
        80,
        16_945_512_448,
        "7.0",
    )


def test_a_device_without_lines_is_listed_with_zeros(summary: Summarise) -> None:
    result = summary(gpu(0), gpu(1).event("Stream #1", "k", 0, 10))
    unused, used = result.devices
    assert (unused.events, unused.busy_ms, unused.idle_fraction) == (0, 0.0, None)
    assert used.events == 1
    assert "unused-devices" in {remark.kind for remark in result.health}


def test_devices_are_listed_by_number(summary: Summarise) -> None:
    planes = [gpu(i).event("Stream #1", "k", 0, 1) for i in (10, 2, 0)]
    assert [d.plane for d in summary(*planes).devices] == [f"/device:GPU:{i}" for i in (0, 2, 10)]


def test_impossible_times_are_left_out_and_told(summary: Summarise) -> None:
    plane = gpu().event("Stream #1", "k", 0, 10).event("Stream #1", "k", 20, -5)
    result = summary(plane)
    assert result.devices[0].events == 1
    assert "damaged-events" in {remark.kind for remark in result.health}


def test_device_only_is_valid_and_told(summary: Summarise) -> None:
    plane = gpu().event("Stream #1", "k", 0, 10).event("Stream #1", "k", 20, 10)
    result = summary(plane)
    assert result.devices[0].gaps[0].cause == "unknown: no host events"
    assert "no-host" in {remark.kind for remark in result.health}


def test_host_only_is_valid_and_told(summary: Summarise) -> None:
    result = summary(host().event("tf_Compute/1", "dense/MatMul:MatMul", 0, 10))
    assert result.devices == ()
    assert result.hosts[0].executor_ms == pytest.approx(0.010)
    assert "no-device" in {remark.kind for remark in result.health}


def test_what_the_profiler_reports_is_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(space(gpu().event("Stream #1", "k", 0, 1)) + message(2, b"CUPTI says no"))
    assert any("CUPTI says no" in remark.message for remark in summarise(path).health)


def test_the_host_is_named_by_the_file_where_the_profile_does_not(tmp_path: Path) -> None:
    path = tmp_path / "machine-7.xplane.pb"
    path.write_bytes(message(1, host().event("a", "x:X", 0, 1).content()))
    assert summarise(path).hosts[0].host == "machine-7"


def test_metadata_before_or_after_the_lines_makes_no_difference(tmp_path: Path) -> None:
    plane = gpu().event("Stream #1", "MemcpyH2D", 0, 10, memcpy_details="size:8 dest:0 async:1")
    before = summarise(write(tmp_path, plane))
    content = plane.content()
    reordered = b"".join(sorted(_split(content), key=lambda part: part[0] == 0x1A))
    path = tmp_path / "worker.xplane.pb"
    path.write_bytes(message(1, reordered) + message(4, b"worker"))
    assert summarise(path).devices == before.devices


def _split(content: bytes) -> list[bytes]:
    from tfaudit.trace.wire import fields

    stops = [0, *(field.stop for field in fields(bytearray(content), 0, len(content)))]
    return [content[a:b] for a, b in itertools.pairwise(stops)]


def test_counters_that_stand_at_no_time_are_no_events(summary: Summarise) -> None:
    plane = gpu().event("Stream #1", "k", 0, 10)
    plane.lines["Stream #1"][2].append(message(4, number(1, 1) + number(5, 3)))
    assert summary(plane).devices[0].events == 1
