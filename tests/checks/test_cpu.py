"""Section 4: one line on each side of each threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from checks.builders import CPU, GPU, SERIAL, block, evidence, failed, judged, measured, program, usage
from msgspec.structs import replace

from tfaudit.evidence import Evidence
from tfaudit.records import Stage, Status, VariantResult, Weighed, WeighedMap, Work

SERIAL_MAP = Stage(op="map", function="decode", location="/project/data.py:12")
PARALLEL_MAP = Stage(op="map", function="decode", num_parallel_calls=-1)
BATCH = Stage(op="batch", batch_size=32)
PREFETCH = Stage(op="prefetch", buffer_size=-1)
OPTIONS = Stage(op="with_options")
REPEAT = Stage(op="repeat")

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
    "a repeat behind the prefetch": (
        evidence(program=program(PARALLEL_MAP, BATCH, PREFETCH, OPTIONS, REPEAT)),
        Status.PASS,
    ),
    "a repeat behind no prefetch": (evidence(program=program(PARALLEL_MAP, BATCH, REPEAT)), Status.WARN),
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
    "no prefetch, which TensorFlow adds, and input costs": (
        evidence(program=UNPREFETCHED, baseline=100.0, cached_input=126.0),
        Status.WARN,
    ),
    "a serial map without state, which TensorFlow runs in parallel": (
        evidence(
            program=program(Stage(op="map", work=Work(ops=("DecodeJpeg",))), BATCH, PREFETCH),
            baseline=100.0,
            cached_input=200.0,
        ),
        Status.WARN,
    ),
    "a serial map that draws random numbers": (
        evidence(
            program=program(Stage(op="map", work=Work(random=("RandomUniform",))), BATCH, PREFETCH),
            baseline=100.0,
            cached_input=200.0,
        ),
        Status.FAIL,
    ),
    "no prefetch, and it costs nothing": (
        evidence(program=UNPREFETCHED, baseline=100.0, cached_input=104.0),
        Status.PASS,
    ),
    "adding what is missing gains a quarter": (
        evidence(program=SERIAL, baseline=100.0, parallel_input=126.0, cached_input=200.0),
        Status.FAIL,
    ),
    "adding it gains less": (
        evidence(program=SERIAL, baseline=100.0, parallel_input=124.0, cached_input=200.0),
        Status.WARN,
    ),
    "adding it gains 6 %": (
        evidence(program=SERIAL, baseline=100.0, parallel_input=106.0, cached_input=200.0),
        Status.WARN,
    ),
    "adding it gains 4 %": (
        evidence(program=SERIAL, baseline=100.0, parallel_input=104.0, cached_input=200.0),
        Status.PASS,
    ),
    "adding it gains, but not for certain": (
        evidence(program=SERIAL, baseline=[100.0] * 6, parallel_input=[100.0, 100.0, 112.0, 118.0] * 2),
        Status.PASS,
    ),
    "adding it gains, too uncertain to call": (
        evidence(program=SERIAL, baseline=[100.0] * 6, parallel_input=[80.0, 300.0] * 3),
        Status.UNKNOWN,
    ),
    "adding it failed": (
        evidence(
            failed("parallel-input", "raised", "measure"), program=SERIAL, baseline=100.0, cached_input=126.0
        ),
        Status.FAIL,
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


def test_the_gain_of_adding_what_is_missing_is_no_bound() -> None:
    result = judged("4.1", evidence(program=SERIAL, baseline=100.0, parallel_input=150.0))
    assert result.summary == "With parallel calls and a prefetch it trains 1.50× as fast."
    assert result.facts[0].value == "map(decode) runs serially"
    assert (result.gain is not None, result.gain_is_bound) == (True, False)


@pytest.mark.parametrize(("rate", "slower"), [(80.0, True), (95.0, True), (96.0, False)])
def test_what_adding_what_is_missing_costs_is_said(rate: float, slower: bool) -> None:
    result = judged("4.1", evidence(program=SERIAL, baseline=100.0, parallel_input=rate))
    assert result.status == Status.PASS
    assert ("they slow it down here" in result.summary) is slower


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


# --------------------------------------------------------------------------------------------------
# 4.2, 4.3, 4.5: maps that could be done elsewhere or otherwise

DECODES = Work(
    ops=("DecodeJpeg", "ParseExampleV2"),
    not_on_accelerator=("DecodeJpeg", "ParseExampleV2"),
    not_in_xla=("DecodeJpeg", "ParseExampleV2"),
    bytes_out=1_000_000,
)
AUGMENTS = Work(
    ops=("AdjustHue", "RandomUniform"),
    random=("RandomUniform",),
    not_on_accelerator=(),
    not_in_xla=(),
    bytes_in=1_000_000,
    bytes_out=1_000_000,
)
SCALES = Work(ops=("Cast", "Mul"), not_on_accelerator=(), not_in_xla=(), bytes_in=10, bytes_out=40)
RESIZES = replace(SCALES, ops=("Cast", "ResizeBilinear"), bytes_in=1_000_000, bytes_out=1_000_000)


def mapped(function: str, work: Work | None, **fields: Any) -> Stage:
    return Stage(**{"op": "map", "function": function, "num_parallel_calls": -1, "work": work, **fields})


DECODE = mapped("decode", DECODES, after=("TFRecordDataset", "shuffle"), before=("map", "batch"))
AUGMENT = mapped("augment", AUGMENTS, before=("batch",), after=("TFRecordDataset", "shuffle", "map"))


def kept(stage: Stage) -> Stage:
    return replace(stage, before=("cache", *stage.before))


def given(*stages: Stage, cached: float | None = 140.0, **fields: Any) -> Evidence:
    """A job of those stages that cached input makes so much faster than 100 samples per second."""
    rates = {"baseline": 100.0} | ({} if cached is None else {"cached_input": cached})
    return evidence(program=program(*stages, BATCH, PREFETCH), **rates, **fields)


def weighed(*shares: float, rounds: int = 3, **fields: Any) -> VariantResult:
    """Maps that take those shares of a batch of 10 ms, the first stages of the pipeline; ``saved`` by XLA."""
    saved = fields.pop("saved", None)
    maps = tuple(
        WeighedMap(
            stage=number,
            from_input_s=(0.01,) * rounds,
            from_output_s=(0.01 * (1 - share),) * rounds,
            compiled_s=() if saved is None else (0.01 * (1 - saved),) * rounds,
            problem=fields.get("problem", ""),
        )
        for number, share in enumerate(shares)
    )
    found = Weighed(whole_s=(0.01,) * rounds, maps=maps, is_portable=True)
    return VariantResult(id="weighed", status="measured", weighed=found)


def given_weights(result: VariantResult, *stages: Stage, cached: float = 140.0, **fields: Any) -> Evidence:
    """As `given`, with the maps weighed."""
    fields = {"baseline": 100.0, "cached_input": cached, **fields}
    return evidence(result, program=program(*stages, BATCH, PREFETCH), **fields)


PREPARATION = {
    "it takes 5 % of the work": (given_weights(weighed(0.05), DECODE), Status.WARN),
    "it takes 4.9 %": (given_weights(weighed(0.049), DECODE), Status.PASS),
    "it takes 4.9 % in too few rounds": (given_weights(weighed(0.049, rounds=2), DECODE), Status.WARN),
    "another takes little": (given_weights(weighed(0.5, 0.01), DECODE, mapped("r", RESIZES)), Status.WARN),
    "decoding in every epoch, and input costs 6 %": (given(DECODE, AUGMENT, cached=106.0), Status.WARN),
    "the same, and it costs 4 %": (given(DECODE, AUGMENT, cached=104.0), Status.PASS),
    "the same, at twice the rate": (given(DECODE, AUGMENT, cached=200.0), Status.WARN),
    "the same, not weighed": (given(DECODE, AUGMENT, cached=None), Status.UNKNOWN),
    "decoded before a cache": (given(kept(DECODE), AUGMENT), Status.PASS),
    "only random work": (given(AUGMENT), Status.PASS),
    "only scaling": (given(mapped("scale", SCALES)), Status.PASS),
    "resizing": (given(mapped("resize", RESIZES)), Status.WARN),
    "after a random map": (given(AUGMENT, mapped("resize", RESIZES, after_varying=True)), Status.PASS),
    "state": (given(mapped("count", replace(RESIZES, stateful=("AssignAddVariableOp",)))), Status.PASS),
    "decoding and chance in one": (
        given(mapped("both", replace(AUGMENTS, ops=("DecodeJpeg", "RandomUniform")))),
        Status.WARN,
    ),
    "a map within an interleave": (given(replace(DECODE, inside="interleave")), Status.WARN),
    "Python, and input costs": (
        given(mapped("python", replace(RESIZES, stateful=("PyFunc",)), python=True)),
        Status.UNKNOWN,
    ),
    "Python, and input costs nothing": (
        given(mapped("python", replace(RESIZES, stateful=("PyFunc",)), python=True), cached=104.0),
        Status.PASS,
    ),
    "Python before a cache": (
        given(kept(mapped("python", replace(RESIZES, stateful=("PyFunc",)), python=True))),
        Status.PASS,
    ),
    "not known what the map does": (given(mapped("f", None)), Status.UNKNOWN),
    "arrays": (evidence(program=program(data_kind="arrays"), baseline=100.0), Status.NOT_APPLICABLE),
    "the job is not known": (evidence(failed("baseline", "raised", "load")), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", PREPARATION)
def test_data_preparation(case: str) -> None:
    """4.2: the same work in every epoch, weighed by what cached input gives."""
    found, status = PREPARATION[case]
    assert judged("4.2", found).status == status


def test_the_share_of_the_work_is_told_and_a_light_map_is_not_blamed() -> None:
    result = judged("4.2", given_weights(weighed(0.342, 0.01), DECODE, mapped("resize", RESIZES)))
    assert result.summary == (
        "The same work is done in every epoch: map(decode) (34 % of the pipeline's work)."
    )
    assert ".map(decode" in result.fix
    assert ("takes: map(decode)", "34 % of the pipeline's work (34–34 %), 3.42 ms per batch") in [
        (fact.name, fact.value) for fact in result.facts
    ]


def test_what_tensorflow_maps_by_itself_is_not_blamed() -> None:
    normalize = replace(SERIAL_MAP, function="normalize", is_own=False, work=RESIZES)
    found = evidence(program=program(normalize, BATCH, PREFETCH), baseline=100.0, cached_input=200.0)
    assert (judged("4.1", found).status, judged("4.2", found).status) == (Status.PASS, Status.PASS)


def test_two_maps_of_one_name_are_both_told_of() -> None:
    stages = (mapped("<lambda>", RESIZES), mapped("<lambda>", RESIZES))
    result = judged("4.2", given_weights(weighed(0.5, 0.3), *stages))
    takes = [fact.name for fact in result.facts if fact.name.startswith("takes")]
    assert takes == ["takes: map(<lambda>)", "takes: map(<lambda>) (2)"]


def test_what_may_do_the_same_is_mentioned() -> None:
    python = mapped("tidy", replace(RESIZES, stateful=("PyFunc",)), python=True, after_varying=False)
    fix = judged("4.2", given(DECODE, python)).fix
    assert fix.endswith(
        "# if map(tidy) gives the same in every epoch as well, put the cache behind that instead"
    )


def test_a_cache_goes_behind_the_map_and_before_what_changes_the_order() -> None:
    result = judged("4.2", given(replace(DECODE, elements=100), AUGMENT))
    assert result.summary == "The same work is done in every epoch: map(decode)."
    assert result.fix == (
        "# put before shuffle(): a cache keeps the order and the length\n"
        ".map(decode, num_parallel_calls=tf.data.AUTOTUNE)\n"
        ".cache()  # in memory: about 95.4 MiB, an estimate"
    )
    assert result.gain_is_bound


@pytest.mark.parametrize(
    ("elements", "told"),
    [
        (4_294, ".cache()  # in memory"),
        (
            4_295,
            '.cache("/fast/disk/prepared")  # about 4.00 GiB do not fit into memory (8.00 GiB available)',
        ),
        (None, ".cache()  # in memory: 977 KiB per element, so up to 4,294 elements fit"),
    ],
)
def test_half_of_the_memory_may_be_cached(elements: int | None, told: str) -> None:
    assert told in judged("4.2", given(replace(DECODE, elements=elements))).fix


def test_what_is_available_counts_where_it_was_seen() -> None:
    blocks = [block(100.0, usage=usage(available_memory_bytes=10**9))] * 6
    found = evidence(
        measured("baseline", blocks=blocks),
        program=program(replace(DECODE, elements=501)),
        cached_input=140.0,
    )
    assert "do not fit" in judged("4.2", found).fix


SMALLER = replace(AUGMENTS, bytes_out=499_999)
ON_DEVICE = {
    "augmenting, and input costs 6 %": (
        given(DECODE, AUGMENT, cached=106.0, devices=(CPU, GPU)),
        Status.WARN,
    ),
    "augmenting, and it costs 4 %": (given(DECODE, AUGMENT, cached=104.0, devices=(CPU, GPU)), Status.PASS),
    "not weighed": (given(DECODE, AUGMENT, cached=None, devices=(CPU, GPU)), Status.UNKNOWN),
    "no accelerator": (given(DECODE, AUGMENT), Status.NOT_APPLICABLE),
    "it takes 5 % of the work": (
        given_weights(weighed(0.0, 0.05), DECODE, AUGMENT, devices=(CPU, GPU)),
        Status.WARN,
    ),
    "it takes 4.9 %": (
        given_weights(weighed(0.0, 0.049), DECODE, AUGMENT, devices=(CPU, GPU)),
        Status.PASS,
    ),
    "only decoding": (given(DECODE, devices=(CPU, GPU)), Status.PASS),
    "followed by what only the CPU does": (given(AUGMENT, DECODE, devices=(CPU, GPU)), Status.PASS),
    "shapes vary before batch": (
        given(replace(AUGMENT, work=replace(AUGMENTS, bytes_in=None)), devices=(CPU, GPU)),
        Status.PASS,
    ),
    "shapes vary after batch": (
        given(replace(AUGMENT, before=(), work=replace(AUGMENTS, bytes_in=None)), devices=(CPU, GPU)),
        Status.WARN,
    ),
    "twice as many bytes to copy": (
        given(replace(AUGMENT, work=replace(AUGMENTS, bytes_out=500_000)), devices=(CPU, GPU)),
        Status.WARN,
    ),
    "more than that": (given(replace(AUGMENT, work=SMALLER), devices=(CPU, GPU)), Status.PASS),
    "seeds in variables, as Keras's layers keep them": (
        given(replace(AUGMENT, work=replace(AUGMENTS, stateful=("AssignVariableOp",))), devices=(CPU, GPU)),
        Status.WARN,
    ),
    "kept by a cache": (given(kept(AUGMENT), devices=(CPU, GPU)), Status.PASS),
    "no registry of kernels": (
        given(replace(AUGMENT, work=replace(AUGMENTS, not_on_accelerator=None)), devices=(CPU, GPU)),
        Status.UNKNOWN,
    ),
    "arrays": (evidence(program=program(data_kind="arrays"), baseline=100.0), Status.NOT_APPLICABLE),
}


@pytest.mark.parametrize("case", ON_DEVICE)
def test_work_for_accelerator(case: str) -> None:
    """4.3: the last maps, if an accelerator has kernels for all of their ops and input costs something."""
    found, status = ON_DEVICE[case]
    assert judged("4.3", found).status == status


def test_what_an_accelerator_could_do_is_told_without_one() -> None:
    result = judged("4.3", given(DECODE, AUGMENT))
    assert result.summary == ("This machine has no accelerator. On one, map(augment) could be done there.")
    assert result.gain is None


def test_the_train_step_is_given_the_map() -> None:
    fix = judged("4.3", given(DECODE, AUGMENT, devices=(CPU, GPU))).fix
    assert "        data = augment(*data)\n        return super().train_step(data)\n" in fix


COMPILABLE = {
    "compiling saves 5 % of the work": (given_weights(weighed(0.5, saved=0.051), AUGMENT), Status.WARN),
    "it saves 4.9 %": (given_weights(weighed(0.5, saved=0.049), AUGMENT), Status.PASS),
    "it saves half, and input costs 4 %": (
        given_weights(weighed(0.9, saved=0.5), AUGMENT, cached=104.0),
        Status.PASS,
    ),
    "it saves half, and what input costs is not known": (
        evidence(weighed(0.9, saved=0.5), program=program(AUGMENT, BATCH, PREFETCH), baseline=100.0),
        Status.UNKNOWN,
    ),
    "it costs": (given_weights(weighed(0.5, saved=-0.5), AUGMENT), Status.PASS),
    "XLA refused": (given_weights(weighed(0.5, problem="XLA did not compile it"), AUGMENT), Status.PASS),
    "augmenting, and input costs 6 %": (given(AUGMENT, cached=106.0), Status.UNKNOWN),
    "augmenting, and it costs 4 %": (given(AUGMENT, cached=104.0), Status.PASS),
    "only decoding": (given(DECODE), Status.PASS),
    "only scaling": (given(mapped("scale", SCALES)), Status.PASS),
    "compiled already": (given(replace(AUGMENT, work=replace(AUGMENTS, compiled=True))), Status.PASS),
    "shapes vary": (given(replace(AUGMENT, work=replace(AUGMENTS, bytes_in=None))), Status.PASS),
    "no registry of kernels": (
        given(replace(AUGMENT, work=replace(AUGMENTS, not_in_xla=None))),
        Status.UNKNOWN,
    ),
    "arrays": (evidence(program=program(data_kind="arrays"), baseline=100.0), Status.NOT_APPLICABLE),
}


@pytest.mark.parametrize("case", COMPILABLE)
def test_compilable_input(case: str) -> None:
    """4.5: what compiling saves of the pipeline's work, where input costs the job something."""
    found, status = COMPILABLE[case]
    assert judged("4.5", found).status == status


def test_what_xla_could_compile_is_named_with_the_line_to_try() -> None:
    result = judged("4.5", given(DECODE, AUGMENT))
    assert result.summary == (
        "XLA could compile map(augment). The variant weighed was not run: this audit was not asked for it."
    )
    assert result.fix == (".map(tf.function(augment, jit_compile=True), num_parallel_calls=tf.data.AUTOTUNE)")
    assert ("xla could not compile more of: map(decode)", "no kernel for DecodeJpeg, ParseExampleV2") in [
        (fact.name, fact.value) for fact in result.facts
    ]


def test_what_compiling_saves_is_told_with_the_line_that_does_it() -> None:
    result = judged("4.5", given_weights(weighed(0.5, saved=0.3), AUGMENT))
    assert result.summary == "Compiling saves the pipeline some of its work: map(augment) 30 %."
    assert result.fix == (".map(tf.function(augment, jit_compile=True), num_parallel_calls=tf.data.AUTOTUNE)")
    assert result.gain_is_bound


# --------------------------------------------------------------------------------------------------
# 4.4


def loaded(identifier: str, rate: float, job: float, busy: float | None = None) -> VariantResult:
    """A variant that keeps so many of four cores busy, and the machine ``busy`` of them."""
    cores = (job if busy is None else busy) / 4
    blocks = [block(rate, usage=usage(job_cpu_s=job, busy_core_s=(cores,) * 4))] * 6
    return measured(identifier, blocks=blocks)


CACHED = loaded("cached-input", 140.0, 1.0)

CORES = {
    "busy cores, and input costs 6 %": (
        evidence(loaded("baseline", 100.0, 3.8), loaded("cached-input", 106.0, 1.0)),
        Status.WARN,
    ),
    "busy cores, and it costs 4 %": (
        evidence(loaded("baseline", 100.0, 3.8), loaded("cached-input", 104.0, 1.0)),
        Status.PASS,
    ),
    "90 % busy": (evidence(loaded("baseline", 100.0, 3.6), CACHED), Status.WARN),
    "89 % busy": (evidence(loaded("baseline", 100.0, 3.56), CACHED), Status.PASS),
    "others take a quarter": (evidence(loaded("baseline", 100.0, 3.0, busy=4.0), CACHED), Status.UNKNOWN),
    "others take less": (evidence(loaded("baseline", 100.0, 3.04, busy=4.0), CACHED), Status.WARN),
    "no usage": (evidence(baseline=100.0, cached_input=140.0), Status.UNKNOWN),
    "no usage, but input costs nothing": (evidence(baseline=100.0, cached_input=101.0), Status.PASS),
    "too uncertain": (
        evidence(baseline=[100.0] * 6, cached_input=[80.0, 300.0] * 3),
        Status.UNKNOWN,
    ),
    "not compared": (evidence(baseline=100.0), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", CORES)
def test_other_cpus(case: str) -> None:
    """4.4: more cores help where training waits for input while the cores are busy."""
    found, status = CORES[case]
    assert judged("4.4", found).status == status


def test_the_cores_that_would_keep_up_are_counted() -> None:
    """Input alone gives 120 with 4 cores, so that 180 take 6; training takes 1.5 besides."""
    found = evidence(
        loaded("baseline", 100.0, 4.0), loaded("cached-input", 180.0, 1.5), loaded("input-only", 120.0, 4.0)
    )
    result = judged("4.4", found)
    assert result.summary == "Training waits for input while all cores are busy. About 8 would keep up."
    assert result.fix.startswith("About 8 cores in place of 4 (an estimate)")
    assert judged("4.4", evidence(loaded("baseline", 100.0, 4.0), CACHED)).summary.endswith(
        "How many would do was not measured."
    )


SERVICE = {
    "nothing known": (None, program(PARALLEL_MAP), None),
    "not tried": (Weighed(), program(PARALLEL_MAP), None),
    "it gave a batch": (Weighed(is_portable=True), program(PARALLEL_MAP), "yes: "),
    "Python": (Weighed(is_portable=True), program(Stage(op="from_generator", python=True)), "no: from_gen"),
    "it cannot": (Weighed(is_portable=False, problem="A table."), program(PARALLEL_MAP), "no: A table."),
}


@pytest.mark.parametrize("case", SERVICE)
def test_whether_the_service_could_run_the_pipeline_is_told(case: str) -> None:
    """4.4: only a pipeline that can is advised to move to other machines."""
    found, job, told = SERVICE[case]
    others: Sequence[VariantResult] = (
        [VariantResult(id="weighed", status="measured", weighed=found)] if found else []
    )
    loads = (loaded("baseline", 100.0, 4.0), CACHED, loaded("input-only", 120.0, 4.0))
    result = judged("4.4", evidence(*loads, *others, program=job))
    facts = [str(fact.value) for fact in result.facts if "service" in fact.name]
    assert [fact[: len(told or "")] for fact in facts] == ([told] if told else [])
    assert ("distribute" in result.fix) == bool(told and told.startswith("yes"))
