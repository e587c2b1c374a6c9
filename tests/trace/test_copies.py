"""Copies: direction, bytes, memory kind, and what hides them."""

from collections.abc import Callable

import pytest
from xspaces import Ref, gpu, host

from tfaudit.trace.summary import TraceSummary

Summarise = Callable[..., TraceSummary]


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("MemcpyH2D", "h2d"),
        ("MemcpyD2H", "d2h"),
        ("MemcpyD2D", "d2d"),
        ("MemcpyP2P", "d2d"),
        ("MEMCPYHtoD", "h2d"),
        ("MEMCPYDtoH", "d2h"),
        ("MEMCPYDtoD", "d2d"),
        ("[CUDA memcpy HtoD]", "h2d"),
        ("CopyHostToDevice", "h2d"),
        ("CopyDeviceToHost", "d2h"),
        ("CopyDeviceToDevice", "d2d"),
        ("MemcpyOther", "other"),
    ],
)
def test_every_spelling_of_a_copy_is_told_by_its_name(summary: Summarise, name: str, direction: str) -> None:
    """Whatever the line says: here all are on a stream named Compute."""
    (device,) = summary(gpu().event("Stream #1(Compute)", name, 0, 10)).devices
    assert getattr(device.copies, direction).count == 1
    assert (device.busy_ms, device.kernel_busy_ms) == (pytest.approx(0.010), 0.0)


@pytest.mark.parametrize(
    "name", ["void copy_kernel<float>", "Memset", "memcpyish_fusion", "void MemcpyD2D::run()"]
)
def test_kernels_that_sound_like_copies_are_kernels(summary: Summarise, name: str) -> None:
    (device,) = summary(gpu().event("Stream #1(MemcpyD2D,Compute)", name, 0, 10)).devices
    assert device.kernel_busy_ms == pytest.approx(0.010)


@pytest.mark.parametrize(
    ("details", "bytes_", "pageable"),
    [
        ("size:100663296 dest:0 async:1", 100663296, None),
        ("kind_src:pageable kind_dst:device size:4096 dest:0 async:1", 4096, 1),
        ("kind_src:pinned kind_dst:device size:4096 dest:0 async:1", 4096, 0),
        (Ref("kind_src:device kind_dst:pageable size:7 dest:0 async:1"), 7, 1),
        ("kind:Unknown size:0 dest:512 async:1", 0, None),
        ("num_bytes:12\nkind:pageable", 12, 1),
        ("", 0, None),
    ],
)
def test_details_tell_bytes_and_memory_kind(
    summary: Summarise, details: str, bytes_: int, pageable: int | None
) -> None:
    plane = gpu().event("Stream #1", "MemcpyH2D", 0, 10, memcpy_details=details)
    copies = summary(plane).devices[0].copies.h2d
    assert (copies.bytes, copies.pageable_count) == (bytes_, pageable)
    assert copies.unsized_count == (bytes_ == 0)


def test_a_copy_counts_once_though_the_host_shows_it_too(summary: Summarise) -> None:
    details = {"memcpy_details": "size:8 dest:0 async:1", "correlation_id": 1}
    plane = gpu().event("Stream #1", "MemcpyH2D", 20, 10, **details)
    cpu = host().event("worker", "MemcpyH2D", 0, 15, **details)
    assert summary(plane, cpu).devices[0].copies.h2d.count == 1


def test_only_what_no_kernel_hides_is_exposed(summary: Summarise) -> None:
    """A copy of 100 us under a kernel of 60 us is exposed for 40 us; 1 MB in 100 us is 10 GB/s."""
    plane = gpu().event("Stream #1", "k", 0, 60)
    plane.event("Stream #2", "MemcpyH2D", 0, 100, memcpy_details="size:1000000 dest:0 async:1")
    copies = summary(plane).devices[0].copies.h2d
    assert copies.busy_ms == pytest.approx(0.100)
    assert copies.exposed_ms == pytest.approx(0.040)
    assert copies.gb_per_s == pytest.approx(10.0)


def test_a_step_with_a_large_pageable_copy_shows_that_copy(summary: Summarise) -> None:
    """100 MB from pageable memory, 25 ms at 4 GB/s, before 10 ms of compute."""
    details = "kind_src:pageable kind_dst:device size:100000000 dest:0 async:1"
    plane = gpu().event("Stream #1", "MemcpyH2D", 0, 25_000, memcpy_details=details)
    plane.event("Stream #1", "k", 25_000, 10_000).event("Steps", "3", 0, 35_000)
    result = summary(plane, host().event("python", "x:X", 0, 1))
    (step,) = result.steps
    assert (step.copy_ms, step.compute_ms) == (pytest.approx(25.0), pytest.approx(10.0))
    copies = result.devices[0].copies
    assert (copies.h2d.pageable_bytes, copies.h2d.largest_bytes) == (100_000_000, 100_000_000)
    (longest,) = copies.longest
    assert (longest.bytes, longest.pageable, longest.step) == (100_000_000, True, 3)


def test_copies_between_the_kernels_of_a_step_are_told(summary: Summarise) -> None:
    """The batch arrives before the first kernel; one read-back lies between two kernels."""
    plane = gpu().event("Steps", "1", 0, 100).event("Stream #1", "MemcpyH2D", 0, 10)
    plane.event("Stream #1", "k", 10, 10).event("Stream #1", "MemcpyD2H", 30, 5, tf_op="cond/If")
    plane.event("Stream #1", "k", 50, 10).event("Stream #1", "MemcpyD2H", 70, 5)
    copies = summary(plane).devices[0].copies
    assert (copies.h2d.mid_step_count, copies.d2h.mid_step_count) == (0, 1)
    assert [copy.op for copy in copies.longest if copy.start_ms == pytest.approx(0.030)] == ["cond/If"]


@pytest.mark.parametrize(
    ("call", "direction"),
    [
        ("hipMemcpyHtoDAsync", "h2d"),
        ("hipMemcpyDtoHAsync", "d2h"),
        ("hipMemcpyDtoDAsync", "d2d"),
        ("hipMemcpyAsync", "other"),
    ],
)
def test_the_host_call_tells_the_direction_of_a_rocm_copy_kernel(
    summary: Summarise, call: str, direction: str
) -> None:
    plane = gpu().event("Stream #1(Kernel)", "__amd_rocclr_copyBuffer.kd", 50, 10, correlation_id=4)
    cpu = host().event("Host Threads/1", call, 0, 20, correlation_id=4)
    (device,) = summary(plane, cpu).devices
    assert getattr(device.copies, direction).count == 1
    assert (device.busy_ms, device.kernel_busy_ms) == (pytest.approx(0.010), 0.0)


def test_a_rocm_copy_kernel_without_a_host_call_has_no_direction(summary: Summarise) -> None:
    plane = gpu().event("Stream #1(Kernel)", "__amd_rocclr_copyBuffer.kd", 0, 10, correlation_id=4)
    assert summary(plane).devices[0].copies.other.count == 1
