"""What a check may know, and the sentence for what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks.builders import (
    CPU,
    GPU,
    block,
    evidence,
    failed,
    judged,
    measured,
    program,
)
from msgspec.structs import replace

from tfaudit.evidence import Evidence, TraceEvidence, block_rates, scaled
from tfaudit.records import Answer, Device, Interval, Source, read, write

EVERYTHING = evidence(
    measured("profiled", []),
    baseline=100.0,
    cached_input=140.0,
    program=program(),
    source=Source(imports={"keras": "train.py:1"}),
    trace=TraceEvidence(problem="The profiler wrote no trace."),
    usd_per_hour=1.5,
)


def test_only_what_is_named_is_left() -> None:
    left = EVERYTHING.only(("baseline",))
    assert [result.id for result in left.variants] == ["baseline"]
    assert (left.program, left.trace, left.usd_per_hour) == (None, None, None)
    assert left.rates("cached-input") == []
    assert left.ratio("cached-input", to="baseline") is None
    assert left.samples_per_usd("baseline") is None


def test_what_is_named_is_the_same() -> None:
    left = EVERYTHING.only(
        ("baseline", "cached-input", "profiled", "program", "source", "trace", "price", "machine")
    )
    assert left == EVERYTHING


def test_nothing_named_leaves_nothing_measured() -> None:
    left = EVERYTHING.only(())
    assert (left.variants, left.program, left.trace, left.usd_per_hour) == ((), None, None, None)


def test_the_source_is_hidden_unless_named() -> None:
    assert EVERYTHING.only(("baseline",)).source == Source()


def test_the_machine_is_hidden_unless_named() -> None:
    given = evidence(baseline=100.0, devices=(CPU, GPU))
    assert given.only(("baseline",)).accelerators == ()


def test_the_price_is_hidden_in_the_plan_too() -> None:
    given = evidence(baseline=100.0, usd_per_hour=1.5)
    given = replace(given, plan=replace(given.plan, usd_per_hour=1.5))
    assert given.only(("baseline",)).plan.usd_per_hour is None


def test_answers_are_hidden_from_checks() -> None:
    given = evidence(baseline=100.0, answers=(Answer("unused-storage", "yes"),))
    assert given.only(("baseline",)).answers == ()


def test_only_leaves_the_original_alone() -> None:
    EVERYTHING.only(())
    assert len(EVERYTHING.variants) == 3


# Why something is missing ---------------------------------------------------------------------------

MISSING = [
    ("baseline", evidence(baseline=100.0), ""),
    ("baseline", evidence(measured("baseline", [])), ""),
    ("xla", evidence(failed("xla", "killed", "measure", *[100.0] * 5)), ""),
    ("xla", evidence(failed("xla", "killed", "measure", *[100.0] * 4)), "xla ended: killed."),
    ("xla", evidence(failed("xla", "not-run")), "xla ended: not-run."),
    ("program", evidence(program=program()), ""),
    (
        "program",
        evidence(failed("baseline", "raised", "load")),
        "The job is not known. baseline ended: raised.",
    ),
    ("price", evidence(usd_per_hour=1.5), ""),
    (
        "price",
        evidence(),
        "No price is known: give what the machine costs per hour with --price, e.g. --price 1.006.",
    ),
    ("trace", evidence(trace=TraceEvidence(bytes=5)), ""),
    (
        "trace",
        evidence(trace=TraceEvidence(problem="The profiler wrote no trace.")),
        "The profiler wrote no trace.",
    ),
    ("trace", evidence(), "The profiled variant was not run."),
    ("source", evidence(), ""),
    ("machine", evidence(), ""),
]


@pytest.mark.parametrize(("need", "given", "sentence"), MISSING)
def test_why_something_is_missing_is_one_sentence(need: str, given: Evidence, sentence: str) -> None:
    assert given.why_missing(need) == sentence


def test_a_variant_that_was_not_run_is_named() -> None:
    assert "xla was not run" in evidence(baseline=100.0).why_missing("xla")


def test_a_variant_left_out_by_check_is_not_blamed_on_variant() -> None:
    """``tfaudit run --check 1.8`` and then ``tfaudit audit --check 5.2``."""
    assert "--variant" not in judged("5.2", evidence(baseline=100.0, cached_input=100.0)).summary


def test_a_job_that_is_not_known_for_no_reason_is_still_a_clean_sentence() -> None:
    sentence = evidence(baseline=100.0).why_missing("program")
    assert sentence == sentence.strip()


# Figures --------------------------------------------------------------------------------------------


def test_rates_are_samples_per_second_of_each_block() -> None:
    blocks = (block(100.0), block(200.0, duration_ns=5_000_000_000), block(100.0, duration_ns=0))
    assert block_rates(blocks) == [100.0, 200.0]


def test_a_variant_that_is_no_part_of_the_evidence_has_no_figures() -> None:
    given = evidence(baseline=100.0)
    assert given.variant("xla") is None
    assert given.rates("xla") == []
    assert given.samples_per_s("xla") is None
    assert given.ratio("xla", to="baseline") is None
    assert given.ratio("baseline", to="xla") is None


def test_a_ratio_is_of_samples_per_second() -> None:
    ratio = evidence(baseline=100.0, cached_input=150.0).ratio("cached-input", to="baseline")
    assert ratio is not None
    assert (ratio.median, ratio.low, ratio.high) == pytest.approx((1.5, 1.5, 1.5))


def test_samples_per_dollar_need_a_price() -> None:
    assert evidence(baseline=100.0).samples_per_usd("baseline") is None
    assert evidence(usd_per_hour=2.0).samples_per_usd("baseline") is None
    value = evidence(baseline=100.0, usd_per_hour=2.0).samples_per_usd("baseline")
    assert value is not None and value.median == pytest.approx(180_000.0)


def test_an_interval_in_another_unit() -> None:
    assert scaled(Interval(median=2.0, low=1.0, high=4.0), 10.0) == Interval(median=20.0, low=10.0, high=40.0)


def test_a_run_is_interrupted_when_one_variant_was() -> None:
    assert evidence(failed("xla", "interrupted"), baseline=100.0).interrupted
    assert not evidence(failed("xla", "killed"), baseline=100.0).interrupted


def test_accelerators_are_the_devices_that_are_no_cpu() -> None:
    tpu = Device(name="/physical_device:TPU:0", kind="TPU")
    xla_cpu = Device(name="/physical_device:XLA_CPU:0", kind="XLA_CPU")
    assert evidence(devices=(CPU, xla_cpu, GPU, tpu)).accelerators == ("Some GPU", "/physical_device:TPU:0")
    assert evidence(devices=()).accelerators == ()


def test_evidence_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path / "evidence.json", EVERYTHING)
    assert read(tmp_path / "evidence.json", Evidence) == EVERYTHING
