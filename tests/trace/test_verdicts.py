"""What a summary amounts to, and why XProf says something else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from xspaces import PlaneBuilder, gpu, host

from tfaudit.trace.summary import TraceSummary, XprofVerdict
from tfaudit.trace.verdicts import Part, classify, differences, headline, nothing_to_tell, split

Summarise = Callable[..., TraceSummary]
AGREES = XprofVerdict(
    version="2", steps=3, input_fraction=0.4, output_fraction=0.0, launch_fraction=0.0, other_fraction=0.1
)


def waiting(copy_us: float = 0.0, wait_us: float = 400, kernel: str = "gemm") -> list[PlaneBuilder]:
    """Three steps of a millisecond: a wait, a copy, and a kernel up to 100 us before the end."""
    plane, cpu = gpu(), host()
    for i in range(3):
        at = i * 1000
        cpu.event("python", "train", at, 1000, step_num=i, _r=1)
        cpu.event("w", "IteratorGetNextOp::DoCompute", at, wait_us)
        if copy_us:
            plane.event("Stream #1", "MemcpyH2D", at + wait_us, copy_us)
        plane.event("Stream #1", kernel, at + wait_us + copy_us, 900 - wait_us - copy_us)
    return [plane, cpu]


def test_the_split_is_weighed_by_time(summary: Summarise) -> None:
    total = split(summary(*waiting()).steps)
    assert total is not None
    assert total.share(Part.INPUT) == pytest.approx(0.4)
    assert total.share(Part.COMPUTE) == pytest.approx(0.5)
    assert sum(total.share(part) for part in Part) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("wait_us", "words"),
    [(200, "HIGHLY"), (199, "MODERATELY"), (50, "MODERATELY"), (49, "POTENTIALLY")],
)
def test_the_words_are_xprofs(summary: Summarise, wait_us: float, words: str) -> None:
    """A tenth of each step is explained by nothing: others."""
    total = split(summary(*waiting(wait_us=wait_us)).steps)
    assert total is not None
    assert classify(total) == f"{words} input-bound"


def test_no_reason_is_given_where_both_agree(summary: Summarise) -> None:
    assert differences(summary(*waiting()), AGREES) == ()
    assert differences(summary(*waiting()), XprofVerdict(error="XProf is not installed.")) == ()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"steps": 1}, "looks at 1 of the 3 steps"),
        ({"steps": 0}, "finds none of the 3 steps"),
        ({"input_fraction": 0.0, "other_fraction": 0.5}, "“others”, of which 40 % is waiting for input"),
        ({"input_fraction": 0.3}, "10 % of the step less as waiting"),
        ({"input_fraction": 0.5}, "10 % of the step more as waiting"),
    ],
)
def test_each_difference_has_its_reason(summary: Summarise, changes: dict[str, float], says: str) -> None:
    (reason,) = differences(summary(*waiting()), replace(AGREES, **changes))
    assert says in reason


def test_copies_that_xprof_counts_as_compute_are_told(summary: Summarise) -> None:
    (reason,) = differences(summary(*waiting(copy_us=200)), AGREES)
    assert "(MemcpyH2D): the 20.0 % of the step" in reason


@pytest.mark.parametrize(
    ("kernel", "explained"), [("gemm_bf16_tn", True), ("gemm_fp16_tn", False), ("gemm_half", False)]
)
def test_a_16_bit_type_is_the_reason_only_where_xprof_cannot_know_it(
    summary: Summarise, kernel: str, explained: bool
) -> None:
    verdict = replace(AGREES, compute_16bit_fraction=0.0)
    (reason,) = differences(summary(*waiting(kernel=kernel)), verdict)
    assert "XProf counts 0 % of device compute as 16-bit, tfaudit 100 %" in reason
    assert ("no other 16-bit type" in reason) == explained


def test_steps_without_root_are_the_reason_that_xprof_finds_none(summary: Summarise) -> None:
    cpu = host().event("python", "Profiled batch", 0, 100, step_num=1)
    (reason,) = differences(summary(cpu), XprofVerdict(version="2", steps=0))
    assert "lack _r=1" in reason


def test_without_steps_the_headline_is_the_idle_device(summary: Summarise) -> None:
    plane = gpu().event("Stream #1", "gemm", 0, 10).event("Stream #1", "gemm", 30, 10)
    assert headline(summary(plane)) == (
        "/device:GPU:0 is idle 50 % of its time, mostly unknown: no host events."
    )


def test_a_trace_without_figures_is_told_apart(summary: Summarise) -> None:
    assert "device plane(s) but nothing on them" in nothing_to_tell(summary(gpu()))
    assert "host plane alone" in nothing_to_tell(summary(host().event("python", "something", 0, 10)))
    assert nothing_to_tell(summary(host().event("python", "train", 0, 10, step_num=1, _r=1))) == ""
    assert nothing_to_tell(summary(gpu().event("Stream #1", "gemm", 0, 10))) == ""
