"""Using the GPU better.

Section 5 of the checklist: precision, compilation, placement, shapes.
"""

from __future__ import annotations

from .. import numerics
from ..checking import (
    Outcome,
    check,
    failed,
    not_applicable,
    passed,
    percent,
    unknown,
    warned,
)
from ..evidence import NO_ACCELERATOR, Evidence
from ..mapcosts import WORTH_SHARE, bounded, heavy_ones, map_costs, share_of
from ..program.pipeline import PYTHON_OPS
from ..records import Interval, Kernel, Program, Stage
from ..stability import outlier_share
from ..trace.verdicts import busiest, steps_of
from .cpu import cores_of_job, described, weights
from .performance import FAIL_GAIN, FAIL_TRACES, GAIN_RULE, WARN_GAIN, WARN_TRACES, input_gain

NUMERICS_RULE = (
    f"a loss that is no number, or further than {numerics.WARN_DISTANCE:g}× the spread of two seeds from the"
    " baseline's, warns"
)

PRECISIONS = {"bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}

FOR_PYTHON = (
    "# write it with TensorFlow ops (tf.io, tf.image, tf.strings),\n"
    "# or, if nothing in it is random, store once what it gives"
)

#: What an accelerator would need, for a reader whose machine has none.
HARDWARE_RULE = "bfloat16 from compute capability 8.0, float16 tensor cores from 7.0"

#: What channels should be multiples of on tensor cores, in 16 bit and in TF32
#: (docs.nvidia.com/deeplearning/performance/dl-performance-convolutional).
EVEN_16_BIT, EVEN_TF32 = 8, 4

#: Less than a tenth of the parameters is a first or a last layer, whose sizes the data prescribe.
WARN_UNEVEN = 0.10

#: A kernel of 64 by 64 fills one tile; what is smaller takes no time that alignment could save.
SMALLEST_KERNEL = 64 * 64

#: Layers that are named one by one.
MOST_NAMED = 5

#: What suits a GPU, for a reader whose machine has none.
FORMAT_RULE = (
    "channels last for 16 bit on tensor cores, channels first for float32 without them; channels and units in"
    f" multiples of {EVEN_16_BIT}, of {EVEN_TF32} in TF32"
)

#: Ops whose output's shape depends on values, so that XLA cannot compile them in place.
DYNAMIC_OPS = frozenset(
    {"DynamicPartition", "NonMaxSuppressionV3", "Unique", "UniqueV2", "UniqueWithCounts", "Where"}
)

#: Steps beyond twice the median take next to no time where nothing is compiled.
WARN_COMPILING_SHARE = 0.25

#: Input is copied before the first kernel and results after the last one; any other copy is a detour.
WARN_MID_STEP_COPIES = 1.0

#: Ops that belong on the host: what moves data there, keeps a handle or computes shapes.
HOST_OPS = frozenset(
    {
        "Arg", "AssignVariableOp", "Assert", "Const", "Identity", "IdentityN", "IteratorGetNext",
        "IteratorGetNextAsOptional", "NoOp", "OptionalFromValue", "OptionalGetValue", "OptionalHasValue",
        "PartitionedCall", "Placeholder", "ReadVariableOp", "Retval", "Shape", "StatefulPartitionedCall",
        "VarHandleOp", "_Arg", "_DeviceArg", "_DeviceRetval", "_EagerConst", "_Retval",
    }
)  # fmt: skip


@check(
    number="5.1",
    needs=("baseline",),
    uses=("bfloat16", "float16", "machine", "cached-input", "program"),
    threshold=f"a precision not used yet, over the baseline: {GAIN_RULE}; {NUMERICS_RULE}",
)
def mixed_precision(evidence: Evidence) -> Outcome:
    """Mixed precision

    What it looks at
    The same job under Keras's mixed_bfloat16 and mixed_float16 policies, set before its code runs; and how
    many of its layers have sizes that tensor cores would pad (5.6).

    Why it matters
    16-bit arithmetic is several times faster on hardware built for it and halves the memory of
    activations; elsewhere it is slower, so it has to be measured.

    How to fix
    keras.mixed_precision.set_global_policy("mixed_bfloat16") before the model is built; keep the last
    activation in float32, and compare the loss.
    """
    baseline = evidence.variant("baseline")
    assert baseline is not None
    policy = baseline.resolved.dtype_policy if baseline.resolved else ""
    gains = {name: gain for name in PRECISIONS if (gain := evidence.ratio(name, to="baseline")) is not None}
    facts: dict[str, object] = {f"{name}_over_baseline_ratio": gain for name, gain in gains.items()}
    facts |= {f"{name}": reason for name in PRECISIONS if (reason := _why_not(evidence, name))}
    facts["policy_now"] = policy
    if not evidence.accelerators:
        facts["on_an_accelerator"] = HARDWARE_RULE
    facts |= dims_facts(evidence.program)
    facts |= loss_facts(evidence, *gains)
    wrong = {name: reason for name in gains if (reason := why_not_trusted(evidence, name))}
    usable = {name: gain for name, gain in gains.items() if name not in wrong}
    if tempting := [name for name in wrong if gains[name].low >= WARN_GAIN]:
        return warned(f"{tempting[0]} is faster, but {wrong[tempting[0]]}. Do not use it as it is.", **facts)
    if "16" in policy:
        return passed(f"The program uses {policy} already.", **facts)
    if not usable:
        return unknown(f"No precision could be measured. {_first_reason(facts, wrong)}".strip(), **facts)
    best, gain = max(usable.items(), key=lambda item: item[1].median)
    fix = f'keras.mixed_precision.set_global_policy("{PRECISIONS[best]}")  # before the model is built'
    return _gain(evidence, gain, f"{best} trains {gain.median:.2f}× as fast.", fix, facts)


def _why_not(evidence: Evidence, name: str) -> str:
    reason = evidence.why_missing(name)
    return reason if evidence.variant(name) is not None else ""


def _first_reason(facts: dict[str, object], wrong: dict[str, str]) -> str:
    if wrong:
        return f"With {' and '.join(wrong)} {next(iter(wrong.values()))}."
    return next((str(facts[name]) for name in PRECISIONS if name in facts), "")


def why_not_trusted(evidence: Evidence, name: str) -> str:
    """What is wrong with a variant's loss, as the end of a sentence; empty when nothing is known to be."""
    found = evidence.numerics(name)
    if found is None or numerics.follows(found) is not False:
        return ""
    if not found.is_finite:
        return f"the loss was no number after {found.step} steps"
    return f"the loss left the baseline's by more than another seed does ({found.step} steps)"


def loss_facts(evidence: Evidence, *names: str) -> dict[str, object]:
    """The loss of each variant and its distance from the baseline's, in spreads of two seeds."""
    facts: dict[str, object] = {}
    for name in names:
        if (found := evidence.numerics(name)) is not None:
            facts[f"{name}_loss_after_{found.step}_steps"] = found.loss
            facts[f"baseline_loss_after_{found.step}_steps"] = found.reference_loss
            if found.distance is not None and found.spread:
                facts[f"{name}_loss_distance_in_seed_spreads"] = found.distance / found.spread
    return facts


def _gain(evidence: Evidence, gain: Interval, summary: str, fix: str, facts: dict[str, object]) -> Outcome:
    """The one rule for measured gains."""
    if gain.low >= FAIL_GAIN:
        return failed(summary, fix=fix, gain=gain, **facts)
    if gain.low >= WARN_GAIN:
        return warned(summary, fix=fix, gain=gain, **facts)
    masked = input_gain(evidence)
    if masked and masked.low >= FAIL_GAIN:
        summary += " The job waits for input, which hides what it would gain: mend that first (1.8)."
        return passed(summary, **facts)
    return passed(f"{summary} That is no gain worth a change.", **facts)


@check(
    number="5.2",
    needs=("baseline", "xla", "no-xla"),
    uses=("cached-input", "program"),
    threshold=f"the setting not used yet, over the one in force: {GAIN_RULE}; {NUMERICS_RULE}",
)
def xla_effect(evidence: Evidence) -> Outcome:
    """XLA

    What it looks at
    The same job with jit_compile=True and with jit_compile=False, and what the program's own setting
    resolved to. Compiling is told apart from the steady steps.

    Why it matters
    XLA fuses many small kernels into few; with changing shapes it compiles again and again instead.

    How to fix
    model.compile(…, jit_compile=True) or False, as measured; keep shapes fixed.
    """
    baseline = evidence.variant("baseline")
    if baseline is None or baseline.resolved is None:
        return unknown("The baseline ended before its resolved setting could be read.")
    now = bool(baseline.resolved.jit_compile)
    other, current = ("no-xla", "xla") if now else ("xla", "no-xla")
    gain = evidence.ratio(other, to=current)
    if gain is None:
        return unknown("No block of either variant was measured.")
    facts: dict[str, object] = {
        "xla_over_no_xla_ratio": evidence.ratio("xla", to="no-xla"),
        "jit_compile_now": now,
        "jit_compile_requested": baseline.resolved.jit_compile_requested or None,
        "first_step_with_xla_s": _first_step_s(evidence, "xla"),
        "first_step_without_s": _first_step_s(evidence, "no-xla"),
        "samples_to_earn_compiling_back": break_even_samples(evidence),
    }
    facts |= loss_facts(evidence, other)
    if not now and compiles_again(evidence):
        reason = "it compiles again for each new shape, so fix the shapes first (5.4)"
        return passed(f"With XLA it trains {gain.median:.2f}× as fast: {reason}.", **facts)
    wrong = why_not_trusted(evidence, other)
    if wrong and gain.low >= WARN_GAIN:
        return warned(f"{other} is faster, but {wrong}. Do not use it as it is.", **facts)
    state = "off" if other == "no-xla" else "on"
    fix = f"model.compile(…, jit_compile={other == 'xla'})"
    return _gain(evidence, gain, f"With XLA {state} it trains {gain.median:.2f}× as fast.", fix, facts)


def compiles_again(evidence: Evidence) -> bool:
    """Whether XLA met shapes that vary, and a good part of its time went into steps that are far too long."""
    program, result = evidence.program, evidence.variant("xla")
    if program is None or result is None or not varying_dimensions(program):
        return False
    return outlier_share(result.blocks) >= WARN_COMPILING_SHARE


def _first_step_s(evidence: Evidence, name: str) -> float | None:
    result = evidence.variant(name)
    return result.first_step_s if result else None


def break_even_samples(evidence: Evidence) -> int | None:
    """Samples after which the longer first step under XLA is earned back; None when it never is."""
    with_xla, without = evidence.samples_per_s("xla"), evidence.samples_per_s("no-xla")
    first, plain = _first_step_s(evidence, "xla"), _first_step_s(evidence, "no-xla")
    if with_xla is None or without is None or first is None or plain is None:
        return None
    saved_s = 1 / without.median - 1 / with_xla.median
    return round(max(0.0, first - plain) / saved_s) if saved_s > 0 else None


@check(
    number="5.3",
    needs=("machine",),
    uses=("placement", "baseline", "trace"),
    threshold="any op of the train step on the host; in the trace,"
    f" ≥ {WARN_MID_STEP_COPIES:g} copy with the host per step between two kernels",
)
def ops_on_accelerator(evidence: Evidence) -> Outcome:
    """Ops off the accelerator

    What it looks at
    TensorFlow's placement log of a few steps: ops of the train step that were placed on the CPU
    although an accelerator is there, ops that belong on the host left out. In the trace: copies between
    host and device in the middle of a step.

    Why it matters
    Each such op makes the accelerator wait, and its data travel there and back.

    How to fix
    Replace the op by one with a kernel for the accelerator, move it into the input pipeline, or drop
    an explicit tf.device("CPU").
    """
    if not evidence.accelerators:
        return not_applicable(NO_ACCELERATOR)
    on_host = placed_on_host(evidence)
    copies = mid_step_copies(evidence)
    facts = {
        "on_the_host": on_host if isinstance(on_host, dict) else None,
        "placement": on_host if isinstance(on_host, str) else None,
        "mid_step_copies_per_step": copies,
    }
    if isinstance(on_host, dict) and on_host:
        names = ", ".join(list(on_host)[:5])
        return warned(f"{len(on_host)} kinds of op run on the host: {names}.", **facts)
    if copies is not None and copies >= WARN_MID_STEP_COPIES:
        return warned(f"In the middle of each step, data are copied {copies:.3g} times.", **facts)
    if isinstance(on_host, dict):
        return passed("No op of the train step runs on the host.", **facts)
    if copies is None:
        return unknown(f"{'No step in the trace tells of copies. ' if evidence.trace else ''}{on_host}")
    return passed("The trace shows no copies with the host in the middle of a step.", **facts)


def placed_on_host(evidence: Evidence) -> dict[str, int] | str:
    """Ops of the train step on the host, counted by type; or why that is not known."""
    if reason := evidence.why_missing("placement"):
        return reason
    placed, baseline = evidence.variant("placement"), evidence.variant("baseline")
    if placed is None or placed.placement is None or not placed.placement.ops:
        return "TensorFlow logged no placement."
    step_ops = set((baseline and baseline.train_ops) or placed.train_ops or {})
    if not step_ops:
        return "The train step was not traced into a graph, so its ops are not known."
    on_host = placed.placement.ops.get("CPU", {})
    return {op: count for op, count in on_host.items() if op in step_ops and op not in HOST_OPS}


def mid_step_copies(evidence: Evidence) -> float | None:
    """Copies with the host between two kernels of one step, per step; None where no trace tells."""
    summary = evidence.trace.summary if evidence.trace else None
    device = busiest(summary) if summary else None
    if summary is None or device is None:
        return None
    counts = (device.copies.h2d.mid_step_count, device.copies.d2h.mid_step_count)
    steps = steps_of(summary, device)
    return sum(count or 0 for count in counts) / steps if steps else None


@check(
    number="5.4",
    needs=("program", "baseline"),
    threshold=f"eager execution fails; ≥ {WARN_TRACES} traces of the train step warn, ≥ {FAIL_TRACES} fail;"
    " dimensions that vary beyond the batch, or ops whose output shape depends on values, warn",
)
def accelerator_friendly_model(evidence: Evidence) -> Outcome:
    """Shapes and execution

    What it looks at
    How often the train step was traced, whether it runs eagerly, dimensions of the data that vary from
    batch to batch, and ops such as boolean_mask or unique whose output's shape depends on values.

    Why it matters
    Each new shape is traced, and under XLA compiled, again; eager ops are launched one by one from
    Python. Both leave the accelerator waiting.

    How to fix
    Pad or bucket to a few shapes, batch with drop_remainder=True, drop run_eagerly=True, and pass
    tensors rather than Python numbers to tf.functions.
    """
    program, baseline = evidence.program, evidence.variant("baseline")
    assert program is not None and baseline is not None
    resolved, traces = baseline.resolved, baseline.traces
    varying = varying_dimensions(program)
    dynamic = sorted(DYNAMIC_OPS & (baseline.train_ops or {}).keys())
    facts = {
        "traces": baseline.traces,
        "runs_eagerly": resolved.run_eagerly if resolved else None,
        "varying": varying,
        "dynamic_op": dynamic,
    }
    if resolved and resolved.run_eagerly:
        fix = "model.compile(…, run_eagerly=False)" if resolved.optimizer else "@tf.function"
        return failed("The train step runs eagerly, op by op from Python.", fix=fix, **facts)
    if traces is None:
        return unknown("How often the train step was traced is not known.", **facts)
    if traces >= WARN_TRACES:
        summary = f"The train step was traced {traces} times."
        fix = (
            "Pad or bucket the batches to a few shapes, batch with drop_remainder=True, or give"
            " tf.function an input_signature."
        )
        return (failed if traces >= FAIL_TRACES else warned)(summary, fix=fix, **facts)
    if dynamic:
        return warned(f"Output shapes depend on values: {', '.join(dynamic)}.", **facts)
    if varying:
        fix = "padded_batch to a fixed length, or bucket_by_sequence_length with few boundaries"
        return warned(f"Dimensions vary from batch to batch: {'; '.join(varying)}.", fix=fix, **facts)
    if resolved and resolved.jit_compile and traces > 1 and _partial_batches(program):
        return warned(
            "XLA compiled twice: the batches are not all of one size.",
            fix="dataset.batch(…, drop_remainder=True)",
            **facts,
        )
    return passed(f"Shapes are fixed and the train step was traced {traces} times.", **facts)


def varying_dimensions(program: Program) -> list[str]:
    """Components of the batches with an unknown dimension other than the first."""
    return [
        spec
        for spec in program.element_spec
        if "…" in spec or ": ragged " in spec or "?" in spec.partition("[")[2].partition(",")[2]
    ]


def _partial_batches(program: Program) -> bool:
    return any("[?" in spec for spec in program.element_spec)


@check(
    number="5.5",
    needs=("program",),
    uses=("baseline", "cached-input", "weighed", "machine"),
    threshold=f"Python in the train step fails; in the pipeline it warns, and fails when it takes"
    f" ≥ {percent(WORTH_SHARE)} of the pipeline's work and cached input gives ≥ {FAIL_GAIN:g}×",
)
def no_python_in_graph(evidence: Evidence) -> Outcome:
    """Python in the graph

    What it looks at
    py_function, numpy_function and from_generator among the pipeline's stages and the ops of the train
    step, and data that is itself a Python generator; and how much of the pipeline's work maps take that call
    Python.

    Why it matters
    Such a function holds Python's global lock: it uses one core, cannot be compiled or moved, and every
    element passes through the interpreter.

    How to fix
    Write it with TensorFlow ops (tf.io, tf.image, tf.strings), or prepare its result once and store it
    as TFRecords.
    """
    program, baseline = evidence.program, evidence.variant("baseline")
    assert program is not None
    in_step = sorted(PYTHON_OPS & ((baseline and baseline.train_ops) or {}).keys())
    if in_step:
        return failed(f"The train step itself calls Python: {', '.join(in_step)}.", op=in_step)
    stages = [stage for stage in program.pipeline if stage.python and not stage.inside]
    is_generator = program.data_kind == "generator"
    found = [*map(described, stages), *(["the data is a Python generator"] if is_generator else [])]
    if not found:
        return passed("Nothing in the pipeline or the train step calls Python.")
    gain, costs = input_gain(evidence), map_costs(evidence)
    facts = {"python": found, **weights(stages, costs), "cached_input_over_baseline_ratio": gain}
    summary = f"Python runs for every element: {', '.join(found)}."
    if gain is None or gain.low < WARN_GAIN:
        return warned(summary, **facts)
    if not is_generator:
        gain = bounded(gain, share_of(stages, costs), cores_of_job(evidence))
    costly = is_generator or bool(heavy_ones(stages, costs))
    judge = failed if costly and gain.low >= FAIL_GAIN else warned
    return judge(summary, fix=_without_python(stages), at_most=gain, **facts)


def _without_python(stages: list[Stage]) -> str:
    """Where the functions are, and what is to become of them."""
    places = [f"# {described(stage)}: {stage.location}" for stage in stages if stage.location]
    return "\n".join([*places, FOR_PYTHON]) if places else ""


@check(
    number="5.6",
    needs=("machine", "program", "baseline"),
    threshold="on tensor cores: channels_first in 16 bit warns; so do layers with"
    f" ≥ {percent(WARN_UNEVEN)} of the kernels' parameters whose channels or units are no multiple of"
    f" {EVEN_16_BIT} in 16 bit, of {EVEN_TF32} in TF32",
)
def memory_format(evidence: Evidence) -> Outcome:
    """Memory format

    What it looks at
    Dense and convolutional layers: their data_format, and how many channels or units go in and come out,
    against the precision in force and the GPU's compute capability. Nothing is measured: 1.12 shows
    transposes that the layout caused.

    Why it matters
    Tensor cores multiply in tiles: with channels last, and numbers of channels that fill them, nothing is
    transposed or padded. cuDNN's kernels for float32 without tensor cores prefer channels first; TensorFlow's
    layout optimizer changes to that by itself where it pays.

    How to fix
    keras.config.set_image_data_format("channels_last"), and numbers of channels and units, the padded
    vocabulary included, that are multiples of 8. A first layer with three channels is small enough to leave.
    """
    program, baseline = evidence.program, evidence.variant("baseline")
    assert program is not None and baseline is not None
    gpus = [device for device in evidence.machine.devices if device.kind == "GPU"]
    if not gpus:
        what = "no GPU" if evidence.accelerators else "no accelerator"
        return not_applicable(f"This machine has {what}.", on_a_GPU=FORMAT_RULE, **dims_facts(program))
    if not program.kernels:
        return unknown("No dense or convolutional layer of Keras was found built.")
    policy = baseline.resolved.dtype_policy if baseline.resolved else ""
    if not policy:
        return unknown("The precision in force is not known.")
    even = needed_multiple(policy, gpus[0].compute_capability)
    first = [kernel.layer for kernel in program.kernels if kernel.data_format == "channels_first"]
    uneven = uneven_kernels(program, even)
    share = _share(program, uneven)
    facts = {
        "policy_now": policy,
        "compute_capability": gpus[0].compute_capability,
        "channels_first": first,
        "rule": FORMAT_RULE,
        **dims_facts(program),
    }
    if "16" in policy and even > 1 and first:
        fix = 'keras.config.set_image_data_format("channels_last")  # before the model is built'
        return warned(f"In 16 bit, {len(first)} layers keep channels first.", fix=fix, **facts)
    if share >= WARN_UNEVEN:
        return warned(
            f"Layers with {percent(share)} of the kernels' parameters have channels or units that are no"
            f" multiple of {even}.",
            fix="\n".join(_rounded(kernel, even) for kernel in uneven[:MOST_NAMED]),
            **facts,
        )
    if even == 1:
        return passed("Without tensor cores, TensorFlow chooses the layout itself.", **facts)
    return passed(f"Channels and units fill the tensor cores' tiles (multiples of {even}).", **facts)


def needed_multiple(policy: str, capability: str | None) -> int:
    """What channels and units should be multiples of in a precision on a GPU; 1 for anything."""
    version = float(capability) if capability else None
    if "16" in policy:
        return EVEN_16_BIT if version is None or version >= 7.0 else 1
    return EVEN_TF32 if version is not None and version >= 8.0 and policy == "float32" else 1


def uneven_kernels(program: Program, multiple: int) -> list[Kernel]:
    """The kernels of any weight with a dimension that is no such multiple, the largest first."""
    found = [
        kernel
        for kernel in program.kernels
        if kernel.parameters >= SMALLEST_KERNEL
        and (kernel.channels_in % multiple or kernel.channels_out % multiple)
    ]
    return sorted(found, key=lambda kernel: -kernel.parameters)


def _share(program: Program, some: list[Kernel]) -> float:
    total = sum(kernel.parameters for kernel in program.kernels)
    return sum(kernel.parameters for kernel in some) / total if total else 0.0


def dims_facts(program: Program | None) -> dict[str, object]:
    """The layers with a dimension that tensor cores would pad in 16 bit, and their share of the kernels."""
    if program is None or not program.kernels:
        return {}
    uneven = uneven_kernels(program, EVEN_16_BIT)
    return {
        "parameters_in_kernels_with_a_dimension_not_a_multiple_of_8_fraction": _share(program, uneven),
        "not_a_multiple_of_8": [
            f"{kernel.layer}: {kernel.channels_in} to {kernel.channels_out}" for kernel in uneven[:MOST_NAMED]
        ],
    }


def _rounded(kernel: Kernel, multiple: int) -> str:
    """The line that has a layer fill its tiles, or what has to be done about what it is fed."""
    into, out = (-(-size // multiple) * multiple for size in (kernel.channels_in, kernel.channels_out))
    if out != kernel.channels_out:
        arguments = f"{out}, …" if kernel.data_format else f"{out}"
        return f"keras.layers.{kernel.kind}({arguments})  # {kernel.layer}: not {kernel.channels_out}"
    return f"# {kernel.layer} is fed {kernel.channels_in} channels: pad them to {into}"
