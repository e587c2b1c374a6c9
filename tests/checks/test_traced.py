"""What the trace shows, in sections 1, 5, 6 and 8: one line on each side of each threshold."""

from __future__ import annotations

import pytest
from checks.builders import CPU, GPU, evidence, judged, measured
from checks.traces import (
    collectives,
    copies,
    copy,
    copy_summary,
    device,
    gap,
    op,
    precision,
    step,
    traced,
    unused,
)
from msgspec.structs import replace

from tfaudit import checking
from tfaudit.evidence import Evidence, TraceEvidence
from tfaudit.records import Status
from tfaudit.trace.summary import Device, Health, XprofVerdict

MIB = 2**20
NONE = TraceEvidence(problem="The profiler wrote no trace.")
OTHER_GPU = device("/device:GPU:1")


def small(count: float, time: float) -> Device:
    return device(small_kernel_fraction=count, small_kernel_time_fraction=time)


def exchanging(exposed_ms: float, tail: float = 0.4) -> Evidence:
    found = collectives(
        count=3, busy_ms=30.0, exposed_ms=exposed_ms, overlapped_fraction=0.5, tail_fraction=tail
    )
    return traced(step(communication=exposed_ms), device(collectives=found), OTHER_GPU)


def mid_step(h2d: int, d2h: int = 0) -> Evidence:
    found = copy_summary(h2d=copies(5, mid_step_count=h2d), d2h=copies(5, mid_step_count=d2h))
    return traced(step(0), step(1), device(copies=found))


CASES = {
    "1.10 input 4.9 %": ("1.10", traced(step(input_wait=4.9), device()), Status.PASS),
    "1.10 input 5 %": ("1.10", traced(step(input_wait=5.0), device()), Status.WARN),
    "1.10 input 19 %": ("1.10", traced(step(input_wait=19.0), device()), Status.WARN),
    "1.10 input 20 %": ("1.10", traced(step(input_wait=20.0), device()), Status.FAIL),
    "1.10 launching 2.9 %": ("1.10", traced(step(launch=2.9), device()), Status.PASS),
    "1.10 launching 3 %": ("1.10", traced(step(launch=3.0), device()), Status.WARN),
    "1.10 launching 14 %": ("1.10", traced(step(launch=14.0), device()), Status.WARN),
    "1.10 launching 15 %": ("1.10", traced(step(launch=15.0), device()), Status.FAIL),
    "1.10 other 2.9 %": ("1.10", traced(step(other=2.9), device()), Status.PASS),
    "1.10 other 3 %": ("1.10", traced(step(other=3.0), device()), Status.WARN),
    "1.10 other 14 %": ("1.10", traced(step(other=14.0), device()), Status.WARN),
    "1.10 other 15 %": ("1.10", traced(step(other=15.0), device()), Status.FAIL),
    "1.10 on a CPU, input 20 %": (
        "1.10",
        traced(step(input_wait=20.0, device=None, idle_fraction=None), gpu=False),
        Status.FAIL,
    ),
    "1.10 on a CPU, launching is part of the work": (
        "1.10",
        traced(step(launch=30.0, other=30.0, device=None, idle_fraction=None), gpu=False),
        Status.PASS,
    ),
    "1.10 no steps": ("1.10", traced(device()), Status.UNKNOWN),
    "1.10 no trace": ("1.10", evidence(trace=NONE), Status.UNKNOWN),
    "1.10 not profiled": ("1.10", evidence(baseline=100.0), Status.UNKNOWN),
    "1.11 busy": ("1.11", traced(step(), device()), Status.PASS),
    "1.11 idle 4.9 %": ("1.11", traced(step(idle_fraction=0.049), device()), Status.PASS),
    "1.11 idle 5 %": ("1.11", traced(step(idle_fraction=0.05), device()), Status.WARN),
    "1.11 idle 19 %": ("1.11", traced(step(idle_fraction=0.19), device()), Status.WARN),
    "1.11 idle 20 %": ("1.11", traced(step(idle_fraction=0.20), device()), Status.FAIL),
    "1.11 without steps, idle 20 %": ("1.11", traced(device(idle_fraction=0.2)), Status.FAIL),
    "1.11 idle between the steps alone": ("1.11", traced(step(), device(idle_fraction=0.9)), Status.PASS),
    "1.11 a gap of 5 ms in 100": ("1.11", traced(step(), device(gaps=(gap(5.0),))), Status.PASS),
    "1.11 a gap of 5.1 ms in 100": ("1.11", traced(step(), device(gaps=(gap(5.1),))), Status.WARN),
    "1.11 a long gap between steps": ("1.11", traced(step(), device(gaps=(gap(50.0, None),))), Status.PASS),
    "1.11 without steps, a gap of 1 ms": ("1.11", traced(device(gaps=(gap(1.0, None),))), Status.PASS),
    "1.11 without steps, a gap of 1.1 ms": ("1.11", traced(device(gaps=(gap(1.1, None),))), Status.WARN),
    "1.11 copies 4.9 %": ("1.11", traced(step(copy=4.9), device()), Status.PASS),
    "1.11 copies 5 %": ("1.11", traced(step(copy=5.0), device()), Status.WARN),
    "1.11 without steps, copies 5 %": (
        "1.11",
        traced(device(copies=copy_summary(h2d=copies(1, exposed_ms=5.0)))),
        Status.WARN,
    ),
    "1.11 100 MiB from pageable memory": (
        "1.11",
        traced(step(), device(copies=copy_summary((copy(100 * MIB),)))),
        Status.WARN,
    ),
    "1.11 64 KiB from pageable memory": (
        "1.11",
        traced(step(), device(copies=copy_summary((copy(64 * 1024),)))),
        Status.PASS,
    ),
    "1.11 100 MiB from pinned memory": (
        "1.11",
        traced(step(), device(copies=copy_summary((copy(100 * MIB, pageable=False),)))),
        Status.PASS,
    ),
    "1.11 on a CPU": ("1.11", traced(step(), gpu=False), Status.NOT_APPLICABLE),
    "1.11 a GPU that the trace does not show": ("1.11", traced(step()), Status.UNKNOWN),
    "1.11 a plane without events": ("1.11", traced(step(), unused("/device:GPU:0")), Status.UNKNOWN),
    "1.11 no trace": ("1.11", evidence(trace=NONE, devices=(CPU, GPU)), Status.UNKNOWN),
    "1.12 matrix products in 16 bits": ("1.12", traced(device()), Status.PASS),
    "1.12 16-bit 9 %": ("1.12", traced(device(precision=precision(0.09))), Status.WARN),
    "1.12 16-bit 10 %": ("1.12", traced(device(precision=precision(0.10))), Status.PASS),
    "1.12 16-bit, not on matrix units": ("1.12", traced(device(precision=precision(1.0, 0.0))), Status.WARN),
    "1.12 most kernels state no type": (
        "1.12",
        traced(device(precision=precision(0.0, 0.0, 0.51))),
        Status.PASS,
    ),
    "1.12 half of the kernels state a type": (
        "1.12",
        traced(device(precision=precision(0.0, 0.0, 0.50))),
        Status.WARN,
    ),
    "1.12 of what is stated, a tenth is 16-bit": (
        "1.12",
        traced(device(precision=precision(0.05, 0.05, 0.50))),
        Status.PASS,
    ),
    "1.12 a P100 has no matrix units": (
        "1.12",
        traced(device(precision=precision(0.0, 0.0), compute_capability="6.0")),
        Status.PASS,
    ),
    "1.12 transposes 9 %": (
        "1.12",
        traced(device(top_ops=(op(share=0.91), op("transpose", 0.09, changes_layout=True)))),
        Status.PASS,
    ),
    "1.12 transposes 10 %": (
        "1.12",
        traced(device(top_ops=(op(share=0.9), op("transpose", 0.10, changes_layout=True)))),
        Status.WARN,
    ),
    "1.12 copies 10 %": (
        "1.12",
        traced(device(top_ops=(op(share=0.9), op("MemcpyH2D", 0.10, kind="h2d")))),
        Status.WARN,
    ),
    "1.12 half of the kernels short, a tenth of the time": ("1.12", traced(small(0.5, 0.1)), Status.WARN),
    "1.12 49 % of the kernels short": ("1.12", traced(small(0.49, 0.5)), Status.PASS),
    "1.12 short kernels in 9 % of the time": ("1.12", traced(small(0.9, 0.09)), Status.PASS),
    "1.12 on a CPU": ("1.12", traced(step(), gpu=False), Status.NOT_APPLICABLE),
    "1.12 a GPU that the trace does not show": ("1.12", traced(step()), Status.UNKNOWN),
    "1.12 no trace": ("1.12", evidence(trace=NONE), Status.UNKNOWN),
    "5.3 one copy per step in mid-step": ("5.3", mid_step(1, 1), Status.WARN),
    "5.3 one copy in two steps in mid-step": ("5.3", mid_step(1), Status.PASS),
    "5.3 neither steps nor a placement log": ("5.3", traced(device()), Status.UNKNOWN),
    "5.3 on a CPU": ("5.3", traced(step(), gpu=False), Status.NOT_APPLICABLE),
    "6.5 4.9 % not hidden": ("6.5", exchanging(4.9), Status.PASS),
    "6.5 5 % not hidden": ("6.5", exchanging(5.0), Status.WARN),
    "6.5 19 % not hidden": ("6.5", exchanging(19.0), Status.WARN),
    "6.5 20 % not hidden": ("6.5", exchanging(20.0), Status.FAIL),
    "6.5 without steps, 5 % not hidden": (
        "6.5",
        traced(device(collectives=collectives(count=1, busy_ms=9.0, exposed_ms=5.0)), OTHER_GPU),
        Status.WARN,
    ),
    "6.5 one device": ("6.5", traced(step(), device()), Status.NOT_APPLICABLE),
    "6.5 one of two at work": (
        "6.5",
        traced(step(), device(), unused("/device:GPU:1")),
        Status.NOT_APPLICABLE,
    ),
    "6.5 two devices that do not communicate": (
        "6.5",
        traced(step(), device(), OTHER_GPU),
        Status.NOT_APPLICABLE,
    ),
    "6.5 on a CPU": ("6.5", traced(step(), gpu=False), Status.NOT_APPLICABLE),
    "6.5 no trace": ("6.5", evidence(trace=NONE), Status.UNKNOWN),
    "8.3 nothing noticed": ("8.3", traced(step()), Status.PASS),
    "8.3 a note": ("8.3", traced(step(), Health("no-device", "info", "A note.")), Status.PASS),
    "8.3 a warning": ("8.3", traced(step(), Health("no-steps", "warning", "A warning.")), Status.WARN),
    "8.3 no trace": ("8.3", evidence(trace=NONE), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", CASES)
def test_status(case: str) -> None:
    number, given, status = CASES[case]
    assert judged(number, given).status == status


def test_waiting_is_called_waiting_for_input() -> None:
    waiting = traced(step(0, input_wait=99.0, idle_fraction=0.99), device())
    assert judged("1.10", waiting).summary == (
        "99 % of the step's time goes to waiting for input: HIGHLY input-bound."
    )


@pytest.mark.parametrize(
    ("cached", "gpu", "explained"),
    [(400.0, False, True), (250.0, False, True), (245.0, False, False), (400.0, True, False)],
)
def test_what_cached_input_saves_beyond_the_waiting_is_explained_on_a_cpu(
    cached: float, gpu: bool, explained: bool
) -> None:
    """Half of the step is waiting in the trace; of a step at 100 samples/s, cached input at 250 saves 0.6."""
    given = traced(step(input_wait=50.0), *((device(),) if gpu else ()), gpu=gpu)
    result = judged("1.10", replace(given, variants=evidence(baseline=100.0, cached_input=cached).variants))
    assert ("shares its cores" in result.summary) is explained


def test_nothing_is_said_of_cached_input_that_cannot_be_compared() -> None:
    variants = (measured("baseline", 100.0, traces=9), measured("cached-input", 400.0))
    result = judged("1.10", replace(traced(step(input_wait=50.0), gpu=False), variants=variants))
    assert "Cached input" not in result.summary


def test_the_worst_part_is_named() -> None:
    given = traced(step(input_wait=6.0, launch=16.0), device())
    assert judged("1.10", given).summary.startswith("16 % of the step's time goes to launching")


def test_xprofs_verdict_stands_beside_ours_with_the_reason() -> None:
    verdict = XprofVerdict(
        version="2", steps=1, classification="NOT input-bound", input_fraction=0.0, launch_fraction=0.0,
        other_fraction=0.5,
    )  # fmt: skip
    result = judged("1.10", traced(step(input_wait=50.0), device(), xprof=verdict))
    facts = {fact.name: fact.value for fact in result.facts}
    assert (facts["tfaudit says"], facts["xprof says"]) == ("HIGHLY input-bound", "NOT input-bound")
    assert facts["why they differ"] == (
        "XProf calls 50 % of the step “others”, of which 50 % is waiting for input by the host's events."
    )


def test_xprofs_absence_costs_its_own_line() -> None:
    broken = XprofVerdict(error="XProf is not installed.")
    result = judged("1.10", traced(step(input_wait=50.0), device(), xprof=broken))
    assert result.status == Status.FAIL
    assert [fact.value for fact in result.facts if fact.name == "xprof says"] == ["XProf is not installed."]


def test_idleness_in_steps_is_blamed_on_what_the_steps_show() -> None:
    """A device's own gaps begin with its first event; the wait before it is only in the step."""
    given = traced(step(input_wait=60.0, idle_fraction=0.6), device())
    assert judged("1.11", given).summary == (
        "/device:GPU:0 is idle 60 % of the time, mostly waiting for input."
    )


def test_a_pageable_copy_is_named_with_its_size() -> None:
    given = traced(step(), device(copies=copy_summary((copy(100 * MIB),))))
    assert judged("1.11", given).summary == (
        "A copy from pageable memory holds up the host: h2d 100 MiB in 30.0 ms in step 0."
    )


def test_what_is_bunched_at_the_end_is_said() -> None:
    assert "bunched" in judged("6.5", exchanging(5.0, tail=0.75)).summary
    assert "bunched" not in judged("6.5", exchanging(5.0, tail=0.74)).summary


def test_the_file_continues_section_1() -> None:
    sections = {item.section for item in checking.load().values() if item.number.startswith("1.")}
    assert len(sections) == 1
