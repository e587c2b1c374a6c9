"""Section 5: one line on each side of each threshold."""

from __future__ import annotations

from typing import Any

import pytest
from checks.builders import CPU, GPU, RESOLVED, block, evidence, failed, judged, learned, measured, program
from msgspec.structs import replace

from tfaudit.evidence import Evidence
from tfaudit.records import Kernel, Placement, Program, Stage, Status, WarmUp

# 5.1 ------------------------------------------------------------------------------------------------

MIXED = replace(RESOLVED, dtype_policy="mixed_bfloat16")
DIVERGED = learned("float16", {8: None}, {8: None}, rate=200.0)
ASTRAY = learned("float16", {8: 1.35}, {8: 1.45}, rate=200.0)
LEARNED = learned("baseline", {8: 1.0}, {8: 1.1})

PRECISION = {
    "bfloat16 26 % faster": (evidence(baseline=100.0, bfloat16=126.0), Status.FAIL),
    "bfloat16 24 % faster": (evidence(baseline=100.0, bfloat16=124.0), Status.WARN),
    "bfloat16 6 % faster": (evidence(baseline=100.0, bfloat16=106.0), Status.WARN),
    "bfloat16 4 % faster": (evidence(baseline=100.0, bfloat16=104.0), Status.PASS),
    "bfloat16 slower": (evidence(baseline=100.0, bfloat16=20.0), Status.PASS),
    "float16 26 % faster": (evidence(baseline=100.0, bfloat16=20.0, float16=126.0), Status.FAIL),
    "the lower end decides": (evidence(baseline=100.0, bfloat16=[110.0, 150.0] * 3), Status.WARN),
    "used already": (
        evidence(measured("baseline", 100.0, resolved=MIXED), float16=200.0),
        Status.PASS,
    ),
    "a loss that is no number is no gain": (evidence(DIVERGED, LEARNED), Status.WARN),
    "a loss that is no number, beside a good one": (
        evidence(DIVERGED, LEARNED, learned("bfloat16", {8: 1.0}, {8: 1.1}, rate=104.0)),
        Status.WARN,
    ),
    "the baseline has no loss either": (
        evidence(DIVERGED, learned("baseline", {8: None}, {8: None})),
        Status.FAIL,
    ),
    "a loss that goes astray is no gain": (evidence(ASTRAY, LEARNED), Status.WARN),
    "a loss that goes astray without a gain": (
        evidence(learned("float16", {8: 1.35}, {8: 1.45}), LEARNED),
        Status.UNKNOWN,
    ),
    "a loss that follows": (
        evidence(learned("float16", {8: 1.05}, {8: 1.05}, rate=200.0), LEARNED),
        Status.FAIL,
    ),
    "a gain that waiting for input hides": (
        evidence(baseline=100.0, bfloat16=100.0, cached_input=200.0),
        Status.PASS,
    ),
    "neither was run": (evidence(baseline=100.0), Status.UNKNOWN),
    "both took no effect": (
        evidence(failed("bfloat16", "not-applied"), failed("float16", "not-applied"), baseline=100.0),
        Status.UNKNOWN,
    ),
    "no baseline": (evidence(bfloat16=100.0), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", PRECISION)
def test_mixed_precision(case: str) -> None:
    """5.1: a precision that is not used yet, over the baseline."""
    given, status = PRECISION[case]
    assert judged("5.1", given).status == status


def test_a_precision_that_failed_at_once_is_no_gain() -> None:
    cut_short = failed("bfloat16", "killed", "measure", 140.0)
    assert judged("5.1", evidence(cut_short, baseline=100.0)).status == Status.UNKNOWN


def test_the_better_precision_is_recommended() -> None:
    result = judged("5.1", evidence(baseline=100.0, bfloat16=130.0, float16=160.0))
    assert result.summary == "float16 trains 1.60× as fast."
    assert 'set_global_policy("mixed_float16")' in result.fix


def test_a_precision_whose_loss_is_no_number_is_never_recommended() -> None:
    result = judged("5.1", evidence(DIVERGED, LEARNED))
    assert result.summary == (
        "float16 is faster, but the loss was no number after 8 steps. Do not use it as it is."
    )
    assert result.fix == ""


def test_a_precision_whose_loss_goes_astray_is_never_recommended() -> None:
    result = judged("5.1", evidence(ASTRAY, LEARNED))
    assert result.summary == (
        "float16 is faster, but the loss left the baseline's by more than another seed does (8 steps). Do not"
        " use it as it is."
    )
    assert result.fix == ""
    facts = {fact.name: fact.value for fact in result.facts}
    assert facts["float16 loss distance in seed spreads"] == pytest.approx(3.5)


def test_a_gain_that_waiting_for_input_hides_is_said_to_be_hidden() -> None:
    result = judged("5.1", evidence(baseline=100.0, bfloat16=100.0, cached_input=200.0))
    assert result.summary.endswith("which hides what it would gain: mend that first (1.8).")


def test_why_a_precision_took_no_effect_is_said() -> None:
    result = judged("5.1", evidence(failed("bfloat16", "not-applied"), baseline=100.0))
    assert result.summary == "No precision could be measured. bfloat16 ended: not-applied."


def test_the_hardware_rule_is_information_where_there_is_no_accelerator() -> None:
    names = [fact.name for fact in judged("5.1", evidence(baseline=100.0, bfloat16=50.0)).facts]
    assert "on an accelerator" in names
    gpu = evidence(baseline=100.0, bfloat16=50.0, devices=(CPU, GPU))
    assert "on an accelerator" not in [fact.name for fact in judged("5.1", gpu).facts]


# 5.2 ------------------------------------------------------------------------------------------------


def compiled(jit_compile: bool, **rates: Any) -> Evidence:
    return evidence(measured("baseline", resolved=replace(RESOLVED, jit_compile=jit_compile)), **rates)


XLA = {
    "off, and on is 26 % faster": (compiled(False, xla=126.0, no_xla=100.0), Status.FAIL),
    "off, and on is 24 % faster": (compiled(False, xla=124.0, no_xla=100.0), Status.WARN),
    "off, and on is 6 % faster": (compiled(False, xla=106.0, no_xla=100.0), Status.WARN),
    "off, and on is 4 % faster": (compiled(False, xla=104.0, no_xla=100.0), Status.PASS),
    "off, and on is slower": (compiled(False, xla=50.0, no_xla=100.0), Status.PASS),
    "on, and off is 26 % faster": (compiled(True, xla=100.0, no_xla=126.0), Status.FAIL),
    "on, and off is 24 % faster": (compiled(True, xla=100.0, no_xla=124.0), Status.WARN),
    "on, and off is 4 % faster": (compiled(True, xla=100.0, no_xla=104.0), Status.PASS),
    "on, and off is slower": (compiled(True, xla=200.0, no_xla=100.0), Status.PASS),
    "the lower end decides": (compiled(False, xla=[110.0, 150.0] * 3, no_xla=100.0), Status.WARN),
    "XLA was refused": (
        evidence(failed("xla", "not-applied", "build"), baseline=100.0, no_xla=100.0),
        Status.UNKNOWN,
    ),
    "not run": (evidence(baseline=100.0), Status.UNKNOWN),
    "nothing was timed": (
        evidence(measured("xla", []), measured("no-xla", []), baseline=100.0),
        Status.UNKNOWN,
    ),
}


@pytest.mark.parametrize("case", XLA)
def test_xla_effect(case: str) -> None:
    """5.2: the setting not used yet, over the one in force."""
    given, status = XLA[case]
    assert judged("5.2", given).status == status


def test_xla_is_unknown_when_the_baseline_died_before_it_told_its_setting() -> None:
    """What is resolved is told last; a baseline that was killed after five blocks counts and lacks it."""
    cut_short = failed("baseline", "killed", "measure", *[100.0] * 5)
    assert judged("5.2", evidence(cut_short, xla=126.0, no_xla=100.0)).status == Status.UNKNOWN


def test_the_samples_that_earn_compiling_back_are_stated() -> None:
    """Nine seconds more for the first step, 5 ms saved on each sample: 1,800 samples."""
    result = judged(
        "5.2",
        evidence(
            measured("xla", 200.0, warm_ups=(WarmUp(first_step_ns=10_000_000_000, step_ns=()),)),
            measured("no-xla", 100.0, warm_ups=(WarmUp(first_step_ns=1_000_000_000, step_ns=()),)),
            baseline=100.0,
        ),
    )
    assert {fact.name: fact.value for fact in result.facts}["samples to earn compiling back"] == 1800
    assert result.fix == "model.compile(…, jit_compile=True)"


def test_compiling_is_never_earned_back_when_xla_is_no_faster() -> None:
    warm = WarmUp(first_step_ns=10_000_000_000, step_ns=())
    result = judged(
        "5.2",
        evidence(
            measured("xla", 100.0, warm_ups=(warm,)),
            measured("no-xla", 100.0, warm_ups=(warm,)),
            baseline=100.0,
        ),
    )
    assert "samples to earn compiling back" not in {fact.name for fact in result.facts}


# 5.3 ------------------------------------------------------------------------------------------------


def placed(*, ops: dict[str, dict[str, int]], train_ops: dict[str, int] | None, **fields: Any) -> Evidence:
    log = measured("placement", [], placement=Placement(ops=ops), train_ops=train_ops)
    return evidence(log, measured("baseline", train_ops=train_ops), **{"devices": (CPU, GPU), **fields})


ON_GPU = {"GPU": {"MatMul": 2}, "CPU": {"IteratorGetNext": 1, "Const": 3}}
WHERE_ON_CPU = {"GPU": {"MatMul": 2}, "CPU": {"Where": 1}}

PLACED = {
    "all on the GPU": (placed(ops=ON_GPU, train_ops={"MatMul": 2, "Const": 3}), Status.PASS),
    "one op on the host": (placed(ops=WHERE_ON_CPU, train_ops={"MatMul": 2, "Where": 1}), Status.WARN),
    "an op of the input pipeline on the host": (
        placed(ops={"CPU": {"DecodeJpeg": 9}, "GPU": {"MatMul": 2}}, train_ops={"MatMul": 2}),
        Status.PASS,
    ),
    "no accelerator": (
        placed(ops=WHERE_ON_CPU, train_ops={"Where": 1}, devices=(CPU,)),
        Status.NOT_APPLICABLE,
    ),
    "nothing logged": (placed(ops={}, train_ops={"MatMul": 2}), Status.UNKNOWN),
    "not run": (evidence(baseline=100.0, devices=(CPU, GPU)), Status.UNKNOWN),
    "the log failed": (
        evidence(failed("placement", "killed"), baseline=100.0, devices=(CPU, GPU)),
        Status.UNKNOWN,
    ),
}


@pytest.mark.parametrize("case", PLACED)
def test_ops_on_accelerator(case: str) -> None:
    """5.3: any op of the train step on the host."""
    given, status = PLACED[case]
    assert judged("5.3", given).status == status


def test_placement_is_unknown_when_the_ops_of_the_step_are() -> None:
    """A hand-written train step has no probe around it, so its ops are not told."""
    assert judged("5.3", placed(ops=WHERE_ON_CPU, train_ops=None)).status == Status.UNKNOWN


def test_the_ops_on_the_host_are_named() -> None:
    result = judged("5.3", placed(ops=WHERE_ON_CPU, train_ops={"Where": 1}))
    assert "Where" in result.summary


# 5.4 ------------------------------------------------------------------------------------------------


def shaped(*spec: str, jit_compile: bool = False, run_eagerly: bool = False, **fields: Any) -> Evidence:
    resolved = replace(RESOLVED, jit_compile=jit_compile, run_eagerly=run_eagerly)
    return evidence(
        measured("baseline", **{"resolved": resolved, **fields}), program=program(element_spec=spec)
    )


SHAPES = {
    "fixed": (shaped("x: float32[32, 224, 224, 3]", "y: int64[32]"), Status.PASS),
    "the batch varies": (shaped("x: float32[?, 224, 224, 3]", "y: int64[?]"), Status.PASS),
    "the length varies": (shaped("x: int64[?, ?]"), Status.WARN),
    "the last dimension varies": (shaped("x: float32[32, 10, ?]"), Status.WARN),
    "one of several varies": (shaped("x.ids: int64[?, ?]", "x.age: int64[?]", "y: int64[?]"), Status.WARN),
    "the rank is unknown": (shaped("x: float32[…]"), Status.WARN),
    "ragged": (shaped("x: ragged int64[?, ?]"), Status.WARN),
    "traced twice": (shaped("x: float32[?, 4]", traces=2), Status.PASS),
    "traced three times": (shaped("x: float32[?, 4]", traces=3), Status.PASS),
    "traced four times": (shaped("x: float32[?, 4]", traces=4), Status.WARN),
    "traced five times": (shaped("x: float32[?, 4]", traces=5), Status.WARN),
    "traced six times": (shaped("x: float32[?, 4]", traces=6), Status.FAIL),
    "eager": (shaped("x: float32[?, 4]", run_eagerly=True), Status.FAIL),
    "an op whose shape depends on values": (shaped("x: float32[?, 4]", train_ops={"Where": 1}), Status.WARN),
    "XLA and smaller last batches": (shaped("x: float32[?, 4]", jit_compile=True, traces=2), Status.WARN),
    "XLA and fixed batches": (shaped("x: float32[32, 4]", jit_compile=True), Status.PASS),
    "no baseline": (evidence(program=program()), Status.UNKNOWN),
    "the job is not known": (evidence(baseline=100.0), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", SHAPES)
def test_accelerator_friendly_model(case: str) -> None:
    """5.4: eager execution, traces, varying dimensions, dynamic ops."""
    given, status = SHAPES[case]
    assert judged("5.4", given).status == status


def test_shapes_are_unknown_when_the_baseline_died_before_it_told_them() -> None:
    """Traces, ops and settings are told last: one killed after five blocks told none of them."""
    cut_short = failed("baseline", "killed", "measure", *[100.0] * 5)
    given = evidence(cut_short, program=program(element_spec=("x: float32[?, 4]",)))
    assert judged("5.4", given).status == Status.UNKNOWN


def test_a_component_that_is_only_named_ragged_is_fixed() -> None:
    assert judged("5.4", shaped("ragged_lengths: int64[?]")).status == Status.PASS


# 5.5 ------------------------------------------------------------------------------------------------

GENERATOR = program(Stage(op="from_generator", python=True), Stage(op="prefetch"))
PY_FUNCTION = program(Stage(op="map", function="augment", python=True), Stage(op="prefetch"))

PYTHON = {
    "none": (evidence(program=program(), baseline=100.0, cached_input=200.0), Status.PASS),
    "in the train step": (
        evidence(measured("baseline", train_ops={"EagerPyFunc": 1}), program=program()),
        Status.FAIL,
    ),
    "from_generator that costs a quarter": (
        evidence(program=GENERATOR, baseline=100.0, cached_input=126.0),
        Status.FAIL,
    ),
    "from_generator that costs less": (
        evidence(program=GENERATOR, baseline=100.0, cached_input=124.0),
        Status.WARN,
    ),
    "from_generator that costs nothing": (
        evidence(program=GENERATOR, baseline=100.0, cached_input=100.0),
        Status.WARN,
    ),
    "py_function, not weighed": (evidence(program=PY_FUNCTION), Status.WARN),
    "a Python generator": (
        evidence(program=program(data_kind="generator", pipeline=())),
        Status.WARN,
    ),
    "arrays": (evidence(program=program(data_kind="arrays", pipeline=())), Status.PASS),
    "the job is not known": (evidence(failed("baseline", "raised", "load")), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", PYTHON)
def test_no_python_in_graph(case: str) -> None:
    """5.5: Python in the train step, or in the pipeline weighed by what cached input gives."""
    given, status = PYTHON[case]
    assert judged("5.5", given).status == status


def test_python_is_not_weighed_by_a_variant_that_failed_at_once() -> None:
    cut_short = failed("cached-input", "killed", "measure", 140.0)
    assert judged("5.5", evidence(cut_short, program=GENERATOR, baseline=100.0)).status == Status.WARN


def test_what_cached_input_gives_is_no_more_than_a_bound() -> None:
    result = judged("5.5", evidence(program=GENERATOR, baseline=100.0, cached_input=126.0))
    assert result.gain is not None and result.gain_is_bound


def test_a_change_that_was_measured_is_a_gain_and_no_bound() -> None:
    for number, given in (
        ("5.1", evidence(baseline=100.0, bfloat16=130.0)),
        ("5.2", compiled(False, xla=130.0, no_xla=100.0)),
    ):
        result = judged(number, given)
        assert result.gain is not None and not result.gain_is_bound


def test_the_stage_that_calls_python_is_named() -> None:
    assert judged("5.5", evidence(program=PY_FUNCTION)).summary == (
        "Python runs for every element: map(augment)."
    )


# 5.6 ------------------------------------------------------------------------------------------------

HALF = measured("baseline", resolved=MIXED)
FULL = measured("baseline")
T4, A100, P100 = (replace(GPU, compute_capability=capability) for capability in ("7.5", "8.0", "6.0"))


def dense(into: int, out: int, layer: str = "dense") -> Kernel:
    return Kernel(layer, "Dense", into, out, into * out)


def conv(into: int, out: int, data_format: str = "channels_last") -> Kernel:
    return Kernel("conv", "Conv2D", into, out, 9 * into * out, data_format)


def of(*kernels: Kernel) -> Program:
    return program(kernels=kernels)


EVEN = of(conv(64, 128), dense(1024, 512))
ODD = of(dense(1024, 900), dense(1000, 99, "head"))
FIRST = of(conv(64, 128, "channels_first"))

FORMATS = {
    "no accelerator": (evidence(HALF, program=ODD), Status.NOT_APPLICABLE),
    "another accelerator": (
        evidence(HALF, program=ODD, devices=(CPU, replace(GPU, kind="TPU"))),
        Status.NOT_APPLICABLE,
    ),
    "all multiples of 8": (evidence(HALF, program=EVEN, devices=(CPU, T4)), Status.PASS),
    "none a multiple of 8": (evidence(HALF, program=ODD, devices=(CPU, T4)), Status.WARN),
    "the same, which have no tensor cores": (evidence(HALF, program=ODD, devices=(CPU, P100)), Status.PASS),
    "the same, on some GPU": (evidence(HALF, program=ODD, devices=(CPU, GPU)), Status.WARN),
    "multiples of 4 in TF32": (
        evidence(FULL, program=of(dense(1024, 900)), devices=(CPU, A100)),
        Status.PASS,
    ),
    "no multiples of 4 in TF32": (
        evidence(FULL, program=of(dense(1024, 901)), devices=(CPU, A100)),
        Status.WARN,
    ),
    "no multiples of 4 in float32": (
        evidence(FULL, program=of(dense(1024, 901)), devices=(CPU, T4)),
        Status.PASS,
    ),
    "a tenth of the parameters": (
        evidence(HALF, program=of(dense(900, 100), dense(100, 100)), devices=(CPU, T4)),
        Status.WARN,
    ),
    "less than that": (
        evidence(HALF, program=of(dense(912, 1000), dense(1000, 100)), devices=(CPU, T4)),
        Status.PASS,
    ),
    "a kernel smaller than a tile": (
        evidence(HALF, program=of(dense(63, 65)), devices=(CPU, T4)),
        Status.PASS,
    ),
    "a kernel of a tile": (evidence(HALF, program=of(dense(4097, 1)), devices=(CPU, T4)), Status.WARN),
    "channels first in 16 bit": (evidence(HALF, program=FIRST, devices=(CPU, T4)), Status.WARN),
    "channels first in float32": (evidence(FULL, program=FIRST, devices=(CPU, T4)), Status.PASS),
    "no such layer": (evidence(HALF, program=of(), devices=(CPU, T4)), Status.UNKNOWN),
    "the precision is not known": (
        evidence(measured("baseline", resolved=None), program=ODD, devices=(CPU, T4)),
        Status.UNKNOWN,
    ),
    "no baseline": (evidence(program=ODD, devices=(CPU, T4)), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", FORMATS)
def test_memory_format(case: str) -> None:
    """5.6: the layout, and channels that fill tensor cores' tiles, where there are any."""
    given, status = FORMATS[case]
    assert judged("5.6", given).status == status


def test_the_layers_that_do_not_fill_the_tiles_are_named() -> None:
    result = judged("5.6", evidence(HALF, program=ODD, devices=(CPU, T4)))
    assert result.summary == (
        "Layers with 100 % of the kernels' parameters have channels or units that are no multiple of 8."
    )
    assert result.fix == "keras.layers.Dense(904)  # dense: not 900\nkeras.layers.Dense(104)  # head: not 99"


def test_what_tensor_cores_would_pad_is_told_of_precision_as_well() -> None:
    facts = {
        fact.name: fact.value
        for fact in judged("5.1", evidence(program=ODD, baseline=100.0, bfloat16=104.0)).facts
    }
    assert facts["parameters in kernels with a dimension not a multiple of 8"] == 1.0
    assert facts["not a multiple of 8"] == "head: 1000 to 99"


@pytest.mark.parametrize(("spec", "words"), [("x: int64[?, ?]", True), ("x: int64[?, 9]", False)])
def test_xla_that_compiles_again_for_every_shape_is_said_to(spec: str, words: bool) -> None:
    slow = tuple(block(10.0, step_ns=(10_000_000,) * 9 + (900_000_000,)) for _ in range(6))
    given = evidence(
        measured("xla", blocks=slow), program=program(element_spec=(spec,)), baseline=100.0, no_xla=100.0
    )
    assert ("compiles again for each new shape" in judged("5.2", given).summary) is words
