"""Instance choice.

Section 2 of the checklist, with five questions of our own (2.3 to 2.7).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..checking import Outcome, check, manual, passed, unknown, warned
from ..evidence import Evidence
from ..program.pipeline import PYTHON_OPS
from ..program.resuming import restored_by, resumed_by, saved_by
from ..records import Program, Source, Tie, VariantResult
from ..report import numbers
from .cpu import described
from .gpu import DYNAMIC_OPS, placed_on_host, varying_dimensions
from .performance import mean_batch

#: Ops for which TensorFlow 2.21's CUDA build has a kernel for the CPU alone, as far as a step may hold them.
HOST_ONLY = re.compile(
    r"AsString|(Decode|Encode)(Base64|Bmp|CSV|Gif|Image|Jpeg|Png|Raw|Wav)|DecodeAndCropJpeg|(Static)?Regex\w+"
    r"|String(Join|Length|Lower|NGrams|Split(V2)?|Strip|ToHashBucket(Fast|Strong)?|ToNumber|Upper)|Substr"
    r"|Unicode\w+|ReduceJoin|UnsortedSegmentJoin|EditDistance|LookupTable(Find|Insert|Size)(V2)?|ParseTensor"
    r"|Parse(Single)?(Example|SequenceExample)(V2)?|SparseCross(V2|Hashed)?|SparseReduceSum|RaggedCross"
    r"|(Uniform|LogUniform|FixedUnigram|LearnedUnigram)CandidateSampler|RandomPoisson(V2)?|DrawBoundingBoxes(V2)?"
)

#: Types that accelerators compute in slowly or, as TPUs, not at all.
SLOW_DTYPES = re.compile(r": (?:ragged )?(float64|complex64|complex128)\[")
STRINGS = re.compile(r": (?:ragged )?string\[")

#: A run shorter than this may as well start anew: SageMaker gives its own algorithms no more than that on
#: spot instances (MaxWaitTimeInSeconds) where they write no checkpoints.
LONG_RUN_S = 3600.0

BACKUP = (
    'callbacks=[keras.callbacks.BackupAndRestore("checkpoints")]  # in a folder that outlives the instance'
)

FOR_TIES = {
    "device": "# drop it: TensorFlow places ops by itself; tf.distribute.MirroredStrategy() finds all GPUs",
    "count": 'len(tf.config.list_physical_devices("GPU"))  # rather than a number',
    "cuda": 'if tf.config.list_physical_devices("GPU"): …  # and a way that needs no CUDA',
    "dtype": "tf.cast(x, self.compute_dtype)  # the layer's own policy, or keras.config.floatx()",
}

GENERATION_QUESTION = "Is this instance type of a current generation, and were others considered?"


@check(number="2.1", needs=("machine",), question=GENERATION_QUESTION)
def instance_generation(evidence: Evidence) -> Outcome:
    """Instance generation

    What it looks at
    The processor and accelerators of this machine. Whether that is a current generation, and what else there
    is, a person has to say.

    Why it matters
    A newer generation usually trains more samples per dollar, and an old one stays in use only because
    nobody looked again.

    How to fix
    Measure the same job on the current generation with `tfaudit run --price …` and compare samples per
    dollar: one that costs twice as much has to be twice as fast.
    """
    machine = evidence.machine
    return manual(
        GENERATION_QUESTION,
        processor=machine.cpu,
        cores=machine.cores,
        memory_bytes=machine.memory_bytes,
        accelerator=evidence.accelerators or ("none",),
    )


@check(
    number="2.2",
    needs=("program", "baseline"),
    uses=("placement", "machine"),
    threshold="anything in the program that an accelerator cannot run, or that would keep it waiting, warns",
    question="Were dedicated accelerators tried for this job?",
)
def dedicated_accelerators(evidence: Evidence) -> Outcome:
    """Dedicated accelerators

    What it looks at
    What in the program stands in the way of GPUs, TPUs and the like: Python in the pipeline or the train
    step, dimensions and outputs whose size depends on the data, strings, float64 and complex numbers, eager
    execution, and ops that have a kernel for the CPU alone.

    Why it matters
    Most models train several times as many samples per dollar on an accelerator, unless something keeps them
    on the CPU, or has the accelerator wait for it.

    How to fix
    Move strings, look-ups and Python into the input pipeline or the data preparation; pad to fixed shapes;
    cast float64 to float32; drop run_eagerly. Then measure on an instance with an accelerator.
    """
    program, baseline = evidence.program, evidence.variant("baseline")
    assert program is not None and baseline is not None
    on_host = placed_on_host(evidence) if evidence.accelerators else ""
    found = [*in_the_data(program), *in_the_step(baseline)]
    found += [("ops on the host", op) for op in on_host] if isinstance(on_host, dict) else []
    obstacles = {name: ", ".join(what for other, what in found if other == name) for name, _ in found}
    facts = {"obstacle": obstacles, "accelerator": evidence.accelerators}
    if obstacles:
        names = "; ".join(f"{name} ({what})" for name, what in obstacles.items())
        fix = "\n".join(FOR_OBSTACLES[name] for name in obstacles)
        return warned(f"In the way of an accelerator: {names}.", fix=fix, **facts)
    if baseline.train_ops is None and baseline.resolved is None:
        return unknown("The baseline ended before its train step could be read.", **facts)
    if evidence.accelerators:
        return passed(f"The job runs on {evidence.accelerators[0]}, and nothing is in its way.", **facts)
    return passed("Nothing in the program stands in the way of an accelerator. Here it ran without.", **facts)


#: What to do about each obstacle, as lines of the program.
FOR_OBSTACLES = {
    "Python": "# write it with TensorFlow ops, or prepare its result once and store it (5.5)",
    "shapes that vary": "dataset.padded_batch(…, drop_remainder=True)  # a fixed length, or a few buckets",
    "sizes that depend on values": "tf.where(mask, x, 0)  # rather than tf.boolean_mask, tf.unique (5.4)",
    "strings": "dataset.map(lookup, num_parallel_calls=tf.data.AUTOTUNE)  # numbers instead, before fit",
    "types": "tf.cast(x, tf.float32)  # in the pipeline",
    "eager execution": "model.compile(…, run_eagerly=False)  # or @tf.function around the train step",
    "ops without a kernel": "# move these ops into a map of the input pipeline",
    "ops on the host": "# replace them, or move them into a map of the input pipeline (5.3)",
}


def in_the_data(program: Program) -> Iterator[tuple[str, str]]:
    """Obstacles in what the model is fed with: what each is, and the part that is meant."""
    yield from (
        ("Python", described(stage)) for stage in program.pipeline if stage.python and not stage.inside
    )
    if program.data_kind == "generator":
        yield "Python", "the data is a Python generator"
    yield from (("shapes that vary", spec) for spec in varying_dimensions(program))
    yield from (("strings", spec) for spec in program.element_spec if STRINGS.search(spec))
    yield from (("types", spec) for spec in program.element_spec if SLOW_DTYPES.search(spec))


def in_the_step(baseline: VariantResult) -> Iterator[tuple[str, str]]:
    """Obstacles in the train step, likewise."""
    ops, resolved = baseline.train_ops or {}, baseline.resolved
    yield from (("Python", op) for op in ops if op in PYTHON_OPS)
    yield from (("sizes that depend on values", op) for op in ops if op in DYNAMIC_OPS)
    yield from (("ops without a kernel", op) for op in ops if HOST_ONLY.fullmatch(op))
    if resolved and resolved.dtype_policy == "float64":
        yield "types", "the policy is float64"
    if resolved and resolved.run_eagerly:
        yield "eager execution", "op by op from Python"


UTILITY_QUESTION = "Is it settled what is optimised: cost, time to the result, or which mix of both?"


@check(number="2.3", question=UTILITY_QUESTION)
def utility_function(evidence: Evidence) -> Outcome:
    """What to optimise: cost, time or both

    What it looks at
    Nothing: only a person knows.

    Why it matters
    The cheapest instance is seldom the fastest. Without saying how much an hour earlier is worth, no two of
    them can be compared.

    How to fix
    Write it down as a formula, such as price × hours + 20 $ × hours waited, and compare by that.
    """
    return manual(UTILITY_QUESTION)


COMPARED_QUESTION = "Was this job measured on several instance types within the last year?"


@check(number="2.4", question=COMPARED_QUESTION)
def instances_compared(evidence: Evidence) -> Outcome:
    """Comparison of instance types

    What it looks at
    Nothing yet: one run knows one machine.

    Why it matters
    Which type is cheapest per sample depends on the job, and changes with every generation and price.

    How to fix
    Run `tfaudit run --price …` on each candidate, compare samples per dollar, and do so again once a year.
    """
    return manual(COMPARED_QUESTION)


@check(
    number="2.5",
    needs=("source",),
    threshold="any device, number of devices, CUDA-only call or floating type other than float32 that stands"
    " in the source under no condition on the machine warns",
)
def portable_program(evidence: Evidence) -> Outcome:
    """Ties to one machine

    What it looks at
    The source of the program and the project's modules that it imports: devices named as constants or picked
    by their number, numbers of devices, calls that need CUDA, floating types other than float32. What stands
    under a condition on the machine or an option is none, nor is a policy that one line sets for all layers,
    nor an input pipeline put on the CPU.

    Why it matters
    A program that runs on one kind of machine only cannot be moved to one that is cheaper today, and one
    that counts on two devices leaves the other six idle.

    How to fix
    Let TensorFlow place ops, ask it for the devices that are there, take them from a strategy, and let
    layers compute in their policy's type.
    """
    source = evidence.source
    if not source.files:
        return unknown("No source of the program was read.")
    if not source.ties:
        return passed(f"Nothing in the source ({_counted(source)}) names a device or counts on one.")
    first = source.ties[0]
    others = f", and {len(source.ties) - 1} more" if len(source.ties) > 1 else ""
    return warned(
        f"The program is tied to one kind of machine: {first.text} ({first.place}){others}.",
        fix="\n".join(_advice(kind, source.ties) for kind in dict.fromkeys(tie.kind for tie in source.ties)),
        tie=[f"{tie.place}: {tie.text}" for tie in source.ties],
    )


def _counted(source: Source) -> str:
    return source.files[0] if len(source.files) == 1 else f"{len(source.files)} files"


def _advice(kind: str, ties: tuple[Tie, ...]) -> str:
    """The places of one kind of tie, and the line to write there."""
    places = dict.fromkeys(tie.place for tie in ties if tie.kind == kind)
    return f"# {', '.join(places)}:\n{FOR_TIES[kind]}"


SPOT_QUESTION = "If the instance is taken away, does a new run go on where this one stopped?"


@check(
    number="2.6",
    needs=("program", "source"),
    uses=("baseline",),
    threshold=f"nothing that saves and restores warns where all epochs take ≥ {LONG_RUN_S / 3600:g} h",
    question=SPOT_QUESTION,
)
def spot_ready(evidence: Evidence) -> Outcome:
    """Readiness for spot instances

    What it looks at
    BackupAndRestore and the like among fit's callbacks and in the source, or something that saves together
    with something that restores before training begins. Without any: how long all epochs take, estimated
    from the baseline's rate.

    Why it matters
    Spot instances cost a fraction, and may be taken away at any time. A run that goes on where it stopped
    loses minutes by that, one that starts anew loses all.

    How to fix
    callbacks=[keras.callbacks.BackupAndRestore(…)], with the folder on storage that outlives the instance.
    """
    program, source = evidence.program, evidence.source
    assert program is not None
    if found := resumed_by(program, source):
        return passed(f"{found} saves and restores.")
    saver = saved_by(program, source)
    restored = restored_by(program, source)
    if saver and restored:
        return passed(f"{saver} saves, and {restored} restores.")
    half = f"{saver} saves, but nothing was found that restores. " if saver else ""
    duration_s = run_s(evidence)
    if not program.has_fit or duration_s is None:
        return manual(f"{half}{SPOT_QUESTION}")
    took = f"All epochs of fit take at most {numbers.seconds(duration_s)} (an estimate)"
    facts = {"all_epochs_estimated_s": duration_s}
    if duration_s < LONG_RUN_S:
        return passed(f"{half}{took}: an interrupted run may as well start anew.", **facts)
    nothing = half or "Nothing was found that saves and restores. "
    return warned(f"{nothing}{took}, which an interruption would lose.", fix=BACKUP, **facts)


def run_s(evidence: Evidence) -> float | None:
    """How long all epochs of ``fit`` take at the baseline's rate; None where that is not known."""
    program, baseline, rate = (
        evidence.program,
        evidence.variant("baseline"),
        evidence.samples_per_s("baseline"),
    )
    if program is None or baseline is None or rate is None or not rate.median:
        return None
    batches, samples = program.training.batches, mean_batch(baseline)
    epochs = program.fit_arguments.get("epochs", "1")
    if batches is None or samples is None or not epochs.isdecimal():
        return None
    return int(epochs) * batches * samples / rate.median


CONSTRAINTS_QUESTION = (
    "Were the job's hard constraints (memory, types, framework, interconnect) checked against each candidate?"
)


@check(
    number="2.7",
    needs=("machine",),
    uses=("baseline", "program"),
    question=CONSTRAINTS_QUESTION,
)
def hard_constraints(evidence: Evidence) -> Outcome:
    """Hard constraints of the job

    What it looks at
    What this run shows of what a machine must have: memory on the host and on the device, the type computed
    in, the versions, how many devices take part. Which candidates have it, a person has to say.

    Why it matters
    A candidate that lacks the memory or the types costs a day before that shows.

    How to fix
    Compare each candidate's memory per device, its types (bfloat16 from compute capability 8.0), the
    framework's support for it, and the network between its instances with what is listed here.
    """
    baseline, program = evidence.variant("baseline"), evidence.program
    resolved = baseline.resolved if baseline else None
    versions = evidence.machine.versions
    return manual(
        CONSTRAINTS_QUESTION,
        peak_on_the_host_bytes=baseline.peak_host_bytes if baseline else None,
        peak_on_the_device_bytes=baseline.peak_device_bytes if baseline else None,
        computes_in=(resolved.dtype_policy or None) if resolved else None,
        replicas=resolved.replicas if resolved else None,
        instances=program.cluster.instances if program else None,
        version={name: versions[name] for name in ("tensorflow", "keras", "tf_keras") if name in versions},
    )
