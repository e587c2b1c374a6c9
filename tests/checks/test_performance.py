"""Section 1: one line on each side of each threshold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from checks.builders import CPU, GPU, block, callback, evidence, failed, judged, measured, program
from msgspec.structs import replace

from tfaudit.evidence import Evidence, TraceEvidence
from tfaudit.records import Block, Source, Status, VariantResult


def of(*callbacks: Any, form: str = "script", throughput: str | None = None) -> Evidence:
    return evidence(program=program(form=form, callbacks=callbacks), source=Source(throughput=throughput))


def trace(steps: int, planes: int = 0, problem: str = "") -> TraceEvidence:
    summary = SimpleNamespace(
        steps=range(steps), devices=range(planes), health=[SimpleNamespace(message="A note.")]
    )
    return TraceEvidence(bytes=1000, summary=None if problem else summary, problem=problem)  # type: ignore[arg-type]


def steps(*step_ns: int, **fields: Any) -> tuple[Block, ...]:
    """Eight blocks at one rate, the last of which took the given steps."""
    usual = block(100.0, step_ns=(1_000_000,) * 10)
    return (*(usual,) * 7, block(100.0, step_ns=step_ns, **fields))


CASES = {
    "1.1 nothing reports a rate": ("1.1", of(), Status.WARN),
    "1.1 nothing, run with python -m": ("1.1", of(form="module"), Status.WARN),
    "1.1 our callback": ("1.1", of(callback("ThroughputCallback", "tfaudit.throughput")), Status.PASS),
    "1.1 a callback of theirs": ("1.1", of(callback("MyThroughputLogger", "train")), Status.PASS),
    "1.1 TensorBoard per step": ("1.1", of(callback("TensorBoard", update_freq="100")), Status.PASS),
    "1.1 TensorBoard per epoch": ("1.1", of(callback("TensorBoard", update_freq="epoch")), Status.WARN),
    "1.1 the source does": ("1.1", of(throughput="train.py:7"), Status.PASS),
    "1.1 a factory has no fit to look at": ("1.1", of(form="factory"), Status.MANUAL),
    "1.1 builders have no fit to look at": ("1.1", of(form="builders"), Status.MANUAL),
    "1.1 a factory whose source does": ("1.1", of(form="factory", throughput="train.py:7"), Status.PASS),
    "1.1 the job is not known": ("1.1", evidence(failed("baseline", "raised", "load")), Status.UNKNOWN),
    "1.2 a price": ("1.2", evidence(baseline=100.0, usd_per_hour=1.5), Status.PASS),
    "1.2 no price": ("1.2", evidence(baseline=100.0), Status.UNKNOWN),
    "1.2 no baseline": ("1.2", evidence(usd_per_hour=1.5), Status.UNKNOWN),
    "1.3 constant": ("1.3", evidence(baseline=[100.0] * 8), Status.PASS),
    "1.3 rising": ("1.3", evidence(baseline=[100.0] * 4 + [200.0] * 4), Status.PASS),
    "1.3 falls by 9 %": ("1.3", evidence(baseline=[100.0] * 4 + [91.0] * 4), Status.PASS),
    "1.3 falls by 11 %": ("1.3", evidence(baseline=[100.0] * 4 + [89.0] * 4), Status.WARN),
    "1.3 falls by 24 %": ("1.3", evidence(baseline=[100.0] * 4 + [76.0] * 4), Status.WARN),
    "1.3 falls by 26 %": ("1.3", evidence(baseline=[100.0] * 4 + [74.0] * 4), Status.FAIL),
    "1.3 a fall within the noise": ("1.3", evidence(baseline=[60.0, 140.0, 60.0, 140.0] * 2), Status.PASS),
    "1.3 four blocks are enough": ("1.3", evidence(baseline=[100.0] * 4), Status.PASS),
    "1.3 three blocks are too few": ("1.3", evidence(baseline=[100.0] * 3), Status.UNKNOWN),
    "1.3 one step in nine parts of a hundred": (
        "1.3",
        evidence(measured("baseline", blocks=steps(*[1_000_000] * 9, 7_500_000))),  # 7.5 of 86.5
        Status.PASS,
    ),
    "1.3 one step in eleven parts of a hundred": (
        "1.3",
        evidence(measured("baseline", blocks=steps(*[1_000_000] * 9, 10_000_000))),  # 10 of 89
        Status.WARN,
    ),
    "1.3 steps of twice the median are no outliers": (
        "1.3",
        evidence(measured("baseline", blocks=steps(*[2_000_000] * 10))),
        Status.PASS,
    ),
    "1.3 a stall of ten steps where an epoch begins": (
        "1.3",
        evidence(measured("baseline", blocks=steps(13_000_000, *[1_000_000] * 9, epoch_starts=(0,)))),
        Status.WARN,
    ),
    "1.3 a stall of three steps where an epoch begins": (
        "1.3",
        evidence(measured("baseline", blocks=steps(9_000_000, *[1_000_000] * 9, epoch_starts=(0,)))),
        Status.PASS,
    ),
    "1.3 no baseline": ("1.3", evidence(failed("baseline", "raised")), Status.UNKNOWN),
    "1.8 well above a quarter": ("1.8", evidence(baseline=100.0, cached_input=140.0), Status.FAIL),
    "1.8 26 %": ("1.8", evidence(baseline=100.0, cached_input=126.0), Status.FAIL),
    "1.8 24 %": ("1.8", evidence(baseline=100.0, cached_input=124.0), Status.WARN),
    "1.8 6 %": ("1.8", evidence(baseline=100.0, cached_input=106.0), Status.WARN),
    "1.8 4 %": ("1.8", evidence(baseline=100.0, cached_input=104.0), Status.PASS),
    "1.8 slower": ("1.8", evidence(baseline=100.0, cached_input=90.0), Status.PASS),
    "1.8 the lower end decides": (
        "1.8",
        evidence(baseline=100.0, cached_input=[110.0, 150.0] * 3),
        Status.WARN,
    ),
    "1.8 no cached input": ("1.8", evidence(baseline=100.0), Status.UNKNOWN),
    "1.8 cached input failed after five blocks": (
        "1.8",
        evidence(failed("cached-input", "killed", "measure", *[140.0] * 5), baseline=100.0),
        Status.FAIL,
    ),
    "1.8 cached input failed after four blocks": (
        "1.8",
        evidence(failed("cached-input", "killed", "measure", *[140.0] * 4), baseline=100.0),
        Status.UNKNOWN,
    ),
    "1.8 a cache that is not full yet": (
        "1.8",
        evidence(measured("baseline", cache_filled=False), cached_input=2000.0),
        Status.UNKNOWN,
    ),
    "1.8 a cache that is full": (
        "1.8",
        evidence(measured("baseline", cache_filled=True), cached_input=140.0),
        Status.FAIL,
    ),
    "1.8 nothing was timed": ("1.8", evidence(measured("cached-input", []), baseline=100.0), Status.UNKNOWN),
    "1.9 three steps": ("1.9", evidence(measured("profiled", []), trace=trace(3)), Status.PASS),
    "1.9 two steps": ("1.9", evidence(measured("profiled", []), trace=trace(2)), Status.FAIL),
    "1.9 a GPU and its plane": (
        "1.9",
        evidence(measured("profiled", []), trace=trace(10, planes=1), devices=(CPU, GPU)),
        Status.PASS,
    ),
    "1.9 a GPU and no plane": (
        "1.9",
        evidence(measured("profiled", []), trace=trace(10), devices=(CPU, GPU)),
        Status.FAIL,
    ),
    "1.9 no trace": (
        "1.9",
        evidence(measured("profiled", []), trace=trace(0, problem="The profiler wrote no trace.")),
        Status.UNKNOWN,
    ),
    "1.9 not profiled": ("1.9", evidence(baseline=100.0), Status.UNKNOWN),
    "1.9 profiling failed": (
        "1.9",
        evidence(
            failed("profiled", "killed", "trace"), trace=trace(0, problem="The profiler wrote no trace.")
        ),
        Status.UNKNOWN,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_status(case: str) -> None:
    number, given, status = CASES[case]
    assert judged(number, given).status == status


def test_the_two_lines_that_report_a_rate_are_shown() -> None:
    assert judged("1.1", of()).fix == (
        "from tfaudit import ThroughputCallback\nmodel.fit(…, callbacks=[ThroughputCallback(usd_per_hour=…)])"
    )


def test_where_the_source_reports_a_rate_is_said() -> None:
    assert "(train.py:7)" in judged("1.1", of(throughput="train.py:7")).summary


def test_samples_per_dollar_is_the_rate_times_an_hour_by_the_price() -> None:
    result = judged("1.2", evidence(baseline=100.0, usd_per_hour=1.5))
    assert result.summary == "240,000 samples per dollar at $1.5 per hour."
    assert ("baseline", pytest.approx(240_000.0), "samples/$") in [
        (fact.name, fact.value, fact.unit) for fact in result.facts
    ]


def test_without_a_price_the_way_to_give_one_is_said() -> None:
    assert "--price 1.006" in judged("1.2", evidence(baseline=100.0)).summary


def test_samples_per_dollar_is_unknown_when_no_block_was_measured() -> None:
    """A finite dataset may end with its warm-up: then a baseline is measured and has no block."""
    result = judged("1.2", evidence(measured("baseline", []), usd_per_hour=1.5))
    assert result.status == Status.UNKNOWN


def test_the_share_reached_and_the_gain_are_stated() -> None:
    result = judged("1.8", evidence(baseline=100.0, cached_input=200.0))
    assert result.summary == "Training reaches 50 % of what it does on cached input."
    assert result.gain is not None
    assert (result.gain.median, result.gain.low, result.gain.high) == (2.0, 2.0, 2.0)


def test_what_a_step_goes_to_is_stated() -> None:
    """10 ms per sample in all, of which 4 are left with cached input, 2 with a constant batch."""
    rates = {"baseline": 100.0, "source_cached": 125.0, "cached_input": 250.0, "constant_batch": 500.0}
    result = judged("1.8", evidence(devices=(CPU, GPU), **rates))
    assert result.summary == (
        "Training reaches 40 % of what it does on cached input. Of a step's time 20 % is computing, 20 % is"
        " copying, 40 % is preprocessing and 20 % is fetching."
    )
    facts = {fact.name: fact.value for fact in result.facts if fact.unit == "fraction"}
    assert facts == pytest.approx({"computing": 0.2, "copying": 0.2, "preprocessing": 0.4, "fetching": 0.2})


def test_what_varies_too_much_is_not_divided_in_words() -> None:
    given = evidence(
        devices=(CPU, GPU),
        baseline=[60.0, 140.0] * 3,
        source_cached=150.0,
        cached_input=300.0,
        constant_batch=300.0,
    )
    assert "Of a step's time" not in judged("1.8", given).summary


def test_the_target_per_dollar_is_stated_with_a_price() -> None:
    result = judged("1.8", evidence(baseline=100.0, cached_input=200.0, usd_per_hour=3.6))
    (fact,) = [fact for fact in result.facts if fact.name == "target"]
    assert (fact.value, fact.unit) == (pytest.approx(200_000.0), "samples/$")


def test_a_wide_interval_is_not_called_no_cost() -> None:
    """Cached input at 0.95 to 1.65×: nobody knows."""
    result = judged("1.8", evidence(baseline=100.0, cached_input=[95.0, 165.0] * 3))
    assert result.status == Status.UNKNOWN
    assert "too uncertain to call" in result.summary


def test_why_there_is_no_trace_is_said() -> None:
    given = evidence(measured("profiled", []), trace=trace(0, problem="The profiler wrote no trace."))
    assert judged("1.9", given).summary == "The profiler wrote no trace."


def test_why_profiling_failed_is_said() -> None:
    given = evidence(
        failed("profiled", "killed", "trace"), trace=trace(0, problem="The profiler wrote no trace.")
    )
    assert judged("1.9", given).summary == "profiled ended: killed."


def sized(identifier: str, rate: float, samples: int) -> VariantResult:
    """A variant whose batches hold so many samples."""
    return measured(identifier, blocks=(block(rate, samples=10 * samples),) * 6)


@pytest.mark.parametrize(
    ("first_batch", "status"),
    [(32, Status.FAIL), (40, Status.FAIL), (41, Status.UNKNOWN), (8, Status.UNKNOWN)],
)
def test_cached_input_must_repeat_a_batch_of_the_usual_size(first_batch: int, status: Status) -> None:
    given = evidence(sized("baseline", 100.0, 32), sized("cached-input", 200.0, first_batch))
    assert judged("1.8", given).status is status


def test_a_step_that_is_traced_again_and_again_is_not_blamed_on_the_input() -> None:
    given = evidence(measured("baseline", traces=4), measured("cached-input", 200.0, traces=1))
    assert judged("1.8", given).status is Status.UNKNOWN
    assert "(5.4)" in judged("1.8", given).summary


def test_a_pipeline_that_is_fast_enough_alone_is_told_to_take_fewer_cores() -> None:
    """Input alone at 1.5 times what the model takes, and yet cached input trains twice as fast."""
    given = evidence(baseline=100.0, cached_input=200.0, input_only=300.0)
    assert judged("1.8", given).fix.startswith("The pipeline alone is fast enough")
    assert judged("1.8", evidence(baseline=100.0, cached_input=200.0, input_only=200.0)).fix == ""


def test_a_machine_that_slowed_is_not_blamed_on_the_job() -> None:
    """The other variant fell in the same rounds."""
    falling = [100.0] * 4 + [50.0] * 4
    assert judged("1.3", evidence(baseline=falling)).status is Status.FAIL
    assert judged("1.3", evidence(baseline=falling, no_xla=[100.0] * 8)).status is Status.FAIL
    assert judged("1.3", evidence(baseline=falling, no_xla=falling)).status is Status.UNKNOWN


# 1.4 ------------------------------------------------------------------------------------------------


def profiled(
    *callbacks: Any,
    form: str = "script",
    tensorflow: str = "2.21.0",
    board: str | None = "2.21.0",
    found: TraceEvidence | None = None,
    **uses: str,
) -> Evidence:
    """A program with those callbacks and uses, where TensorBoard is installed or not."""
    given = evidence(
        program=program(form=form, callbacks=callbacks),
        source=Source(uses={name.replace("__", "."): place for name, place in uses.items()}),
        trace=found,
    )
    versions = {"tensorflow": tensorflow} | ({"tensorboard": board} if board else {})
    return replace(given, machine=replace(given.machine, versions=versions))


UNTRACED = trace(0, problem="No trace.")
BOARD = callback("TensorBoard", kept=False, profile_batch="10, 20")

PROFILING = {
    "nothing, and not tried": (profiled(), Status.UNKNOWN),
    "nothing, run with python -m": (profiled(form="module", found=UNTRACED), Status.WARN),
    "nothing, but the audit profiled it": (profiled(found=trace(3)), Status.PASS),
    "nothing, and the audit could not": (profiled(found=UNTRACED), Status.WARN),
    "TensorBoard": (profiled(BOARD), Status.PASS),
    "TensorBoard that profiles nothing yet": (
        profiled(callback("TensorBoard", kept=False, profile_batch="0, 0")),
        Status.PASS,
    ),
    "TensorBoard that is not installed": (profiled(BOARD, board=None), Status.WARN),
    "TensorBoard before 2.21, which brings it": (
        profiled(BOARD, board=None, tensorflow="2.20.1"),
        Status.PASS,
    ),
    "TensorBoard with a version that says nothing": (
        profiled(BOARD, board=None, tensorflow="nightly"),
        Status.PASS,
    ),
    "one's own class of that name": (profiled(callback("TensorBoard", "train"), found=UNTRACED), Status.WARN),
    "made from TensorBoard": (profiled(callback("Board", "train", "TensorBoard")), Status.PASS),
    "TensorBoard in the source": (profiled(keras__callbacks__TensorBoard="train.py:9"), Status.PASS),
    "TensorBoard in the source, not installed": (
        profiled(keras__callbacks__TensorBoard="train.py:9", board=None),
        Status.WARN,
    ),
    "the profiler in the source": (
        profiled(tensorflow__profiler__experimental__start="train.py:9", board=None),
        Status.PASS,
    ),
    "the profiler's server": (
        profiled(tensorflow__profiler__experimental__server__start="train.py:9"),
        Status.PASS,
    ),
    "the profiler of summaries": (profiled(tensorflow__summary__trace_on="train.py:9"), Status.PASS),
    "a name for a step": (
        profiled(tensorflow__profiler__experimental__Trace="train.py:9", found=UNTRACED),
        Status.WARN,
    ),
    "another package's": (profiled(mylib__profiler__start="train.py:9", found=UNTRACED), Status.WARN),
    "a factory has no fit to look at": (profiled(form="factory"), Status.MANUAL),
    "builders have no fit to look at": (profiled(form="builders"), Status.MANUAL),
    "a factory that the audit profiled": (profiled(form="factory", found=trace(3)), Status.PASS),
    "the job is not known": (evidence(failed("baseline", "raised", "load")), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", PROFILING)
def test_profiling_available(case: str) -> None:
    """1.4"""
    given, status = PROFILING[case]
    assert judged("1.4", given).status == status


def test_the_advice_names_what_tensorflow_no_longer_brings() -> None:
    assert "pip install tensorboard" in judged("1.4", profiled(board=None, found=UNTRACED)).fix
    assert "pip install" not in judged("1.4", profiled(found=UNTRACED)).fix
    assert judged("1.4", profiled(BOARD, board=None)).fix == "pip install tensorboard"


def test_the_batches_that_are_profiled_are_told() -> None:
    assert "(profile_batch=10, 20)" in judged("1.4", profiled(BOARD)).summary


def test_how_to_profile_from_outside_is_told_for_this_very_program() -> None:
    assert judged("1.4", profiled(found=trace(3))).summary.endswith(
        "tfaudit run train.py --variant profiled."
    )


@pytest.mark.parametrize(("epoch_starts", "said"), [((), True), ((0,), False)])
def test_stability_says_so_when_no_epoch_began(epoch_starts: tuple[int, ...], said: bool) -> None:
    given = evidence(measured("baseline", blocks=steps(*[1_000_000] * 10, epoch_starts=epoch_starts)))
    result = judged("1.3", given)
    assert result.status == Status.PASS
    assert ("No epoch began" in result.summary) is said
    shares = [fact for fact in result.facts if fact.name == "time in stalls where epochs begin"]
    assert bool(shares) is not said
