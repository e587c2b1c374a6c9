"""Section 4: one line on each side of each threshold."""

from __future__ import annotations

import pytest
from checks.builders import SERIAL, evidence, failed, judged, program

from tfaudit.records import Stage, Status

SERIAL_MAP = Stage(op="map", function="decode", location="/project/data.py:12")
PARALLEL_MAP = Stage(op="map", function="decode", num_parallel_calls=-1)
BATCH = Stage(op="batch", batch_size=32)
PREFETCH = Stage(op="prefetch", buffer_size=-1)
OPTIONS = Stage(op="with_options")

GOOD = program(PARALLEL_MAP, BATCH, PREFETCH)
UNPREFETCHED = program(PARALLEL_MAP, BATCH)

CASES = {
    "nothing missing": (evidence(program=GOOD, baseline=100.0, cached_input=200.0), Status.PASS),
    "a number of parallel calls": (
        evidence(program=program(Stage(op="map", num_parallel_calls=4), BATCH, PREFETCH)),
        Status.PASS,
    ),
    "options behind the prefetch": (
        evidence(program=program(PARALLEL_MAP, BATCH, PREFETCH, OPTIONS)),
        Status.PASS,
    ),
    "options behind no prefetch": (evidence(program=program(PARALLEL_MAP, BATCH, OPTIONS)), Status.WARN),
    "a serial map that costs a quarter": (
        evidence(program=SERIAL, baseline=100.0, cached_input=126.0),
        Status.FAIL,
    ),
    "a serial map that costs less": (
        evidence(program=SERIAL, baseline=100.0, cached_input=124.0),
        Status.WARN,
    ),
    "a serial map that costs 6 %": (
        evidence(program=SERIAL, baseline=100.0, cached_input=106.0),
        Status.WARN,
    ),
    "a serial map that costs 4 %": (
        evidence(program=SERIAL, baseline=100.0, cached_input=104.0),
        Status.PASS,
    ),
    "a serial map, not weighed": (evidence(program=SERIAL, baseline=100.0), Status.WARN),
    "no prefetch, and it costs": (
        evidence(program=UNPREFETCHED, baseline=100.0, cached_input=126.0),
        Status.FAIL,
    ),
    "no prefetch, and it costs nothing": (
        evidence(program=UNPREFETCHED, baseline=100.0, cached_input=104.0),
        Status.PASS,
    ),
    "a serial interleave": (evidence(program=program(Stage(op="interleave"), BATCH, PREFETCH)), Status.WARN),
    "a serial filter cannot be parallel": (
        evidence(program=program(Stage(op="filter"), PREFETCH)),
        Status.PASS,
    ),
    "a map inside an interleave": (
        evidence(program=program(Stage(op="map", inside="interleave"), PARALLEL_MAP, PREFETCH)),
        Status.PASS,
    ),
    "arrays": (evidence(program=program(data_kind="arrays")), Status.NOT_APPLICABLE),
    "a generator": (evidence(program=program(data_kind="generator")), Status.NOT_APPLICABLE),
    "the job is not known": (evidence(failed("baseline", "raised", "load")), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", CASES)
def test_parallel_pipeline(case: str) -> None:
    """4.1: a stage that could be parallel or a missing prefetch, weighed by what cached input gives."""
    given, status = CASES[case]
    assert judged("4.1", given).status == status


def test_the_cost_is_not_weighed_by_a_variant_that_failed_at_once() -> None:
    cut_short = failed("cached-input", "killed", "measure", 140.0)
    assert judged("4.1", evidence(cut_short, program=SERIAL, baseline=100.0)).status == Status.WARN


def test_the_stages_are_named_with_the_lines_that_mend_them() -> None:
    result = judged("4.1", evidence(program=program(SERIAL_MAP, BATCH), baseline=100.0, cached_input=140.0))
    assert result.summary == (
        "Found: map(decode) runs serially; no prefetch ends the pipeline (its last stage is batch)."
    )
    assert result.fix == (
        "# where decode, from data.py:12, is used:\n.map(decode, num_parallel_calls=tf.data.AUTOTUNE)\n"
        "dataset = dataset.prefetch(tf.data.AUTOTUNE)  # last"
    )
    assert result.gain is not None and result.gain.median == pytest.approx(1.4)
    assert result.gain_is_bound


def test_a_lambda_is_not_quoted_as_code() -> None:
    stage = Stage(op="map", function="<lambda>")
    assert judged("4.1", evidence(program=program(stage, PREFETCH))).fix == (
        ".map(…, num_parallel_calls=tf.data.AUTOTUNE)"
    )
