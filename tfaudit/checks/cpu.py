"""CPU bottlenecks.

Section 4 of the checklist: the work between reading and the accelerator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil
from pathlib import Path

from ..checking import Outcome, check, failed, not_applicable, passed, percent, unknown, warned
from ..evidence import NO_ACCELERATOR, Evidence
from ..mapcosts import (
    WORTH_SHARE,
    MapCost,
    MapCosts,
    bounded,
    heavy_ones,
    in_words,
    map_costs,
    share_of,
    together,
    weighed_in,
    why_not_weighed,
)
from ..program import moves
from ..records import Interval, Program, Stage, Work
from ..report import numbers
from ..stalls import as_facts, stalls
from ..utilisation import SATURATED, Load, load
from .performance import FAIL_GAIN, GAIN_RULE, WARN_GAIN, incomparable, input_gain

#: Stages that tf.data can run in parallel and does not unless asked.
PARALLELISABLE = ("map", "interleave")

#: tf.data's options map_parallelization and inject_prefetch, on by default in all versions supported here.
BY_ITSELF = "TensorFlow does this by itself unless told otherwise, so that asking for it may gain little."

#: A cache of more than half of the memory that is left would push out what the job needs besides.
MOST_OF_MEMORY = 0.5


@check(
    number="4.1",
    needs=("program",),
    uses=("baseline", "parallel-input", "cached-input"),
    threshold=f"a stage that could be parallel, or no prefetch at the end, and adding them gives:"
    f" {GAIN_RULE}; where that was not measured, cached input instead",
)
def parallel_pipeline(evidence: Evidence) -> Outcome:
    """Prefetch and parallel calls

    What it looks at
    The stages of the tf.data pipeline: map and interleave without num_parallel_calls, and a last stage
    that is no prefetch; and how fast the job is with both added. Where that was not measured, it is weighed
    by what cached input would give; what TensorFlow mends by itself, maps that keep no state and the
    prefetch, then warns at most.

    Why it matters
    A serial stage uses one core however many there are, and without a prefetch the accelerator waits
    while the next batch is prepared and the CPU waits while it trains.

    How to fix
    Give map and interleave num_parallel_calls=tf.data.AUTOTUNE and end the pipeline with
    prefetch(tf.data.AUTOTUNE).
    """
    program = evidence.program
    assert program is not None
    if outcome := _without_pipeline(program):
        return outcome
    faults, advice = pipeline_faults(program)
    if not faults:
        return passed("Every stage that can be parallel is, and a prefetch ends the pipeline.")
    summary, fix = f"Found: {'; '.join(faults)}.", "\n".join(advice)
    added = (
        None if evidence.why_missing("parallel-input") else evidence.ratio("parallel-input", to="baseline")
    )
    if added is not None:
        return _parallel_gain(faults, fix, added)
    gain = input_gain(evidence)
    if gain is None:
        return warned(f"{summary} What it costs was not measured.", fix=fix, fault=faults)
    facts = {"fault": faults, "cached_input_over_baseline_ratio": gain}
    if gain.low >= WARN_GAIN and mended_by_tensorflow(program):
        return warned(f"{summary} {BY_ITSELF}", fix=fix, **facts)
    if gain.low >= FAIL_GAIN:
        return failed(summary, fix=fix, at_most=gain, **facts)
    if gain.low >= WARN_GAIN:
        return warned(summary, fix=fix, at_most=gain, **facts)
    return passed(f"{summary} It costs nothing measurable here.", **facts)


def _without_pipeline(program: Program) -> Outcome | None:
    """What there is to say where the data is no ``tf.data`` pipeline."""
    if program.data_kind == "tf.data":
        return None
    return not_applicable(f"The data is no tf.data pipeline ({program.data_kind}).")


def _parallel_gain(found: list[str], fix: str, gain: Interval) -> Outcome:
    """The verdict by what adding what is missing was measured to give."""
    facts, faults = {"fault": found, "with_them_over_baseline_ratio": gain}, "; ".join(found)
    what = f"With parallel calls and a prefetch it trains {gain.median:.2f}× as fast"
    if gain.low >= WARN_GAIN:
        judge = failed if gain.low >= FAIL_GAIN else warned
        return judge(f"{what}.", fix=fix, gain=gain, **facts)
    if gain.median >= WARN_GAIN and gain.high >= FAIL_GAIN:
        return unknown(f"{what}, too uncertain to call: measure longer. Found: {faults}.", fix=fix, **facts)
    if gain.median >= WARN_GAIN:
        return passed(f"{what}, but not for certain. Found: {faults}.", **facts)
    if gain.high <= 1 / WARN_GAIN:
        return passed(f"{what}: they slow it down here. Found: {faults}.", **facts)
    return passed(f"Found: {faults}. Adding what is missing gains nothing measurable here.", **facts)


def mended_by_tensorflow(program: Program) -> bool:
    """Whether tf.data does by itself all that the program does not ask for: parallel maps, and a prefetch."""
    return all(stage.op == "map" and stage.work and stage.work.is_deterministic for stage in _serial(program))


def _serial(program: Program) -> list[Stage]:
    """Stages that could run in parallel and are not asked to."""
    return [
        stage
        for stage in program.pipeline
        if stage.op in PARALLELISABLE and stage.num_parallel_calls is None
        if stage.is_own and not stage.inside
    ]


def pipeline_faults(program: Program) -> tuple[list[str], list[str]]:
    """What is missing, and the lines that would add it, each in the order of the pipeline."""
    faults, advice = [], []
    for stage in _serial(program):
        faults.append(f"{described(stage)} runs serially")
        if stage.python:
            advice.append(f"# {described(stage)} runs Python, which parallel calls hardly speed up: see 5.5")
            continue
        advice.append(f"{_place(stage)}.{stage.op}({_quoted(stage)}, num_parallel_calls=tf.data.AUTOTUNE)")
    ops = [stage.op for stage in program.pipeline if stage.op != "with_options" and not stage.inside]
    # A repeat behind the prefetch costs next to nothing.
    last_work = next((op for op in reversed(ops) if op != "repeat"), "")
    if ops and last_work != "prefetch":
        faults.append(f"no prefetch ends the pipeline (its last stage is {ops[-1]})")
        advice.append("dataset = dataset.prefetch(tf.data.AUTOTUNE)  # last")
    return faults, advice


def described(stage: Stage) -> str:
    """A stage as a reader of the program would name it: ``map(decode)``."""
    return f"{stage.op}({stage.function})" if stage.function else stage.op


def _quoted(stage: Stage) -> str:
    """The name of a stage's function as code."""
    return stage.function if stage.function and stage.function != "<lambda>" else "…"


def _place(stage: Stage) -> str:
    if not stage.location:
        return ""
    path, _, line = stage.location.rpartition(":")
    return f"# where {stage.function or stage.op}, from {Path(path).name}:{line}, is used:\n"


PREPARATION_QUESTION = "Is all work that is the same in every epoch done once, before training?"


@check(
    number="4.2",
    needs=("program", "baseline"),
    uses=("cached-input", "constant-batch", "source-cached", "weighed", "machine"),
    threshold="a map that does the same in every epoch, is not kept by a cache() and takes"
    f" ≥ {percent(WORTH_SHARE)} of the pipeline's work, while cached input gives: lower end of the interval"
    f" ≥ {WARN_GAIN:g}× warns",
    question=PREPARATION_QUESTION,
)
def data_preparation(evidence: Evidence) -> Outcome:
    """Work for the data preparation

    What it looks at
    The functions of the pipeline's maps, op by op: those that draw no random numbers, keep no state, run no
    Python and come before anything that does, so that they give the same in every epoch; maps that only
    reshape or scale aside, and what lies before a cache(). A map that decodes and then draws random numbers
    could be split. How much of the pipeline's work each takes is measured, in one thread, with what feeds it
    held in memory, and then what it gives. What cached input gives bounds what all of it costs the job.

    Why it matters
    Such work is paid for in every epoch, and on a machine that is rented for its accelerator. Done once, on
    a cheap machine or in the first epoch, it is paid for once.

    How to fix
    cache() behind the last such map and before shuffle and repeat, where memory allows it; otherwise
    cache(filename) on a fast disk, or store what the map gives as TFRecords.
    """
    program = evidence.program
    assert program is not None
    if outcome := _without_pipeline(program):
        return outcome
    gain, found, costs = input_gain(evidence), moves.preparable(program), map_costs(evidence)
    facts = {
        "the_same_in_every_epoch": by_name(found, _bytes_per_element),
        **weights(found, costs),
        "cached_input_over_baseline_ratio": gain,
        **_preparing(evidence),
    }
    matters = gain is None or gain.low >= WARN_GAIN
    if not found and matters and (unsure := _unsure(program)):
        return unknown(f"Whether these do the same in every epoch cannot be told: {unsure}.", **facts)
    if not found:
        return passed("No map does the same costly work in every epoch.", **facts)
    names = ", ".join(described(stage) for stage in found)
    if gain is None:
        return unknown(f"What {names} costs was not measured. {_why_no_gain(evidence)}", **facts)
    if not matters:
        return passed(f"{names} does the same in every epoch, but costs nothing measurable here.", **facts)
    heavy = heavy_ones(found, costs)
    if not heavy:
        return passed(f"{names} does the same in every epoch, but hardly any of the work.", **facts)
    fix = _cache_after(evidence, heavy[-1])
    if unsure := _unsure(program):
        fix += f"\n# if {unsure} gives the same in every epoch as well, put the cache behind that instead"
    summary = f"The same work is done in every epoch: {_with_shares(heavy, costs)}."
    last = costs.of(heavy[-1])
    spared = last.until if last else None
    return warned(summary, fix=fix, at_most=bounded(gain, spared, cores_of_job(evidence)), **facts)


def _with_shares(found: list[Stage], costs: MapCosts) -> str:
    """``map(decode) (34 % of the pipeline's work)``, as far as it was weighed."""
    told = []
    for stage in found:
        cost = costs.of(stage)
        share = f" ({percent(min(1.0, max(0.0, cost.share.median)))} of the pipeline's work)" if cost else ""
        told.append(f"{described(stage)}{share}")
    return ", ".join(told)


def _load(evidence: Evidence, name: str) -> Load | None:
    """What the machine did during a variant's blocks; None where that was not recorded."""
    result = evidence.variant(name)
    return load(result.blocks) if result else None


def cores_of_job(evidence: Evidence) -> float:
    """How many cores the job may use."""
    during = _load(evidence, "baseline")
    return (during.core_limit if during else None) or float(evidence.machine.cores)


def weights(found: list[Stage], costs: MapCosts) -> dict[str, dict[str, str]]:
    """What the stages cost, as facts."""
    return {"takes": by_name(found, lambda stage: in_words(cost) if (cost := costs.of(stage)) else None)}


def by_name(stages: Iterable[Stage], value: Callable[[Stage], str | None]) -> dict[str, str]:
    """Values by their stage's name, numbered where several have the same; those that are None left out."""
    found: dict[str, str] = {}
    for stage in stages:
        name = described(stage)
        same = sum(known == name or known.startswith(f"{name} (") for known in found)
        if (told := value(stage)) is not None:
            found[f"{name} ({same + 1})" if same else name] = told
    return found


def _unsure(program: Program) -> str:
    """Stages of which nobody can tell whether they do the same in every epoch."""
    stages = [
        stage
        for stage in program.pipeline
        if stage.python and not stage.inside and not moves.KEEPERS.intersection(stage.before)
    ]
    return ", ".join(dict.fromkeys(described(stage) for stage in (*stages, *moves.unread(program))))


def _bytes_per_element(stage: Stage) -> str:
    size = stage.work.bytes_out if stage.work else None
    kept = f"{numbers.size(size)} per element" if size is not None else "size varies"
    return f"{kept}, before its random part" if moves.must_split(stage) else kept


def _preparing(evidence: Evidence) -> dict[str, Interval]:
    """The share of a step's time that preprocessing takes, and what could not be told apart from it."""
    shares = stalls(evidence).items()
    return as_facts({part: share for part, share in shares if "preprocessing" in part})


def _why_no_gain(evidence: Evidence) -> str:
    return incomparable(evidence) or evidence.why_missing("cached-input")


def _cache_after(evidence: Evidence, stage: Stage) -> str:
    """The lines that keep what a stage gives, in memory where it fits or is not known not to."""
    lines = []
    if moves.must_split(stage):
        lines.append(f"# split {stage.function or 'it'}: decode in one map, draw random numbers in the next")
    moved = [op for op in dict.fromkeys(stage.after) if op in ("repeat", "shuffle", "cache")]
    if "shuffle" in moved and "batch" in stage.after:
        moved.append("batch")
    if moved:
        lines.append(
            f"# put before {' and '.join(f'{op}()' for op in moved)}: a cache keeps the order and the length"
        )
    size, room = _kept_bytes(evidence, stage), _room_bytes(evidence)
    fits = size is None or size <= MOST_OF_MEMORY * room
    call = f".{stage.op}({_quoted(stage)}, num_parallel_calls=tf.data.AUTOTUNE)"
    lines.append(f"{_place(stage)}{call}")
    if fits:
        told = f"about {numbers.size(size)}, an estimate" if size is not None else _unknown_size(stage, room)
        lines.append(f".cache()  # in memory: {told}")
    else:
        told = f"about {numbers.size(size)} do not fit into memory ({numbers.size(room)} available)"
        lines.append(f'.cache("/fast/disk/prepared")  # {told}; or write them as TFRecords once')
    return "\n".join(lines)


def _unknown_size(stage: Stage, room: float) -> str:
    size = stage.work.bytes_out if stage.work else None
    if not size or moves.must_split(stage):
        return f"if it fits ({numbers.size(room)} available); else cache(filename) or TFRecords"
    most = int(MOST_OF_MEMORY * room / size)
    return (
        f"{numbers.size(size)} per element, so up to {most:,} elements fit; else cache(filename) or TFRecords"
    )


def _kept_bytes(evidence: Evidence, stage: Stage) -> int | None:
    """What a cache behind the stage would hold; None where the number or the size of elements is unknown."""
    size = stage.work.bytes_out if stage.work else None
    if size is None or stage.elements is None or stage.elements < 0 or moves.must_split(stage):
        return None
    return size * stage.elements


def _room_bytes(evidence: Evidence) -> int:
    during = _load(evidence, "baseline")
    available = during.available_memory_bytes if during else None
    return available if available is not None else evidence.machine.memory_bytes


@check(
    number="4.3",
    needs=("program", "baseline", "machine"),
    uses=("cached-input", "constant-batch", "source-cached", "weighed"),
    threshold="maps at the pipeline's end with kernels for an accelerator throughout, which take"
    f" ≥ {percent(WORTH_SHARE)} of the pipeline's work, while cached input gives: lower end of the interval"
    f" ≥ {WARN_GAIN:g}× warns",
)
def work_for_accelerator(evidence: Evidence) -> Outcome:
    """Work for the accelerator

    What it looks at
    The last maps of the pipeline: whether TensorFlow or XLA has a kernel for a GPU for each op in them,
    whether whole batches could be treated alike, whether the elements that would then be copied are not much
    larger than those copied now, and how much of the pipeline's work they take. The kernels are those that
    are registered in the installed TensorFlow.

    Why it matters
    An accelerator that waits for input has time to spare, and flips, crops and scales a batch in a fraction
    of a millisecond. The CPU is then left with what only it can do: reading and decoding.

    How to fix
    Keras's preprocessing layers (RandomFlip, Rescaling, Normalization, …) in front of the model, or the same
    function called in train_step.
    """
    program = evidence.program
    assert program is not None
    if outcome := _without_pipeline(program):
        return outcome
    found, gain, costs = moves.movable(program), input_gain(evidence), map_costs(evidence)
    names = ", ".join(described(stage) for stage in found)
    facts: dict[str, object] = {
        "has_kernels_for_an_accelerator": by_name(found, _copied),
        **weights(found, costs),
    }
    if not evidence.accelerators:
        there = f" On one, {_with_shares(found, costs)} could be done there." if found else ""
        return not_applicable(f"{NO_ACCELERATOR}{there}", **facts)
    facts |= {"cached_input_over_baseline_ratio": gain, **_preparing(evidence)}
    if moves.unread(program) or any(work.not_on_accelerator is None for work in _read(program)):
        return unknown("What the maps do, or which kernels there are, could not be read.", **facts)
    if not found:
        return passed("No map at the pipeline's end could be done by the accelerator.", **facts)
    if gain is None:
        return unknown(f"What {names} costs was not measured. {_why_no_gain(evidence)}", **facts)
    if gain.low < WARN_GAIN:
        return passed(f"The accelerator could do {names}, but that costs nothing measurable here.", **facts)
    heavy = heavy_ones(found, costs)
    if not heavy:
        return passed(f"The accelerator could do {names}, but that is hardly any of the work.", **facts)
    shares = _with_shares(heavy, costs)
    summary = f"The accelerator waits for input and could do {shares} itself (there it was not tried)."
    most = bounded(gain, share_of(heavy, costs), cores_of_job(evidence))
    return warned(summary, fix=_in_train_step(heavy), at_most=most, **facts)


def _read(program: Program) -> list[Work]:
    return [stage.work for stage in moves.maps(program) if stage.work]


def _copied(stage: Stage) -> str:
    """What would be copied to the device for an element in place of what is copied now."""
    work = stage.work or Work()
    if work.bytes_in is None or work.bytes_out is None:
        return "size varies"
    return f"{numbers.size(work.bytes_in)} to copy in place of {numbers.size(work.bytes_out)}"


def _in_train_step(found: list[Stage]) -> str:
    """The lines that do the work of maps in the train step."""
    calls = "".join(f"        data = {_quoted(stage)}(*data)\n" for stage in found)
    names = " and ".join(described(stage) for stage in found)
    return (
        f"# leave {names} out of the pipeline; written for whole batches, with random numbers of their own\n"
        "# for each sample, the same runs in the step (or use keras.layers.RandomFlip(…) and the like):\n"
        "class Preparing(keras.Model):\n"
        "    def train_step(self, data):\n"
        f"{calls}"
        "        return super().train_step(data)\n"
        "\n"
        "model = Preparing(model.inputs, model.outputs)"
    )


def _job_cores(evidence: Evidence, name: str) -> float | None:
    """How many cores a variant keeps busy."""
    during = _load(evidence, name)
    return during.job_cores if during else None


@check(
    number="4.4",
    needs=("baseline", "cached-input"),
    uses=("input-only", "weighed", "program"),
    threshold=f"cached input gives ≥ {WARN_GAIN:g}× (lower end of the interval) and cores are"
    f" ≥ {percent(SATURATED)} busy: warns",
    question="Has the job been tried with more or faster CPU cores per accelerator?",
)
def other_cpus(evidence: Evidence) -> Outcome:
    """Other CPUs

    What it looks at
    Whether training waits for input while the cores are busy, and how many cores would end that: those that
    iterating the data alone keeps busy, for its rate, scaled up to the rate of cached input, and those that
    training on cached input takes besides. That is the ceiling: beyond it the pipeline is not what limits.
    Whether the pipeline could run on other machines, under the tf.data service: it is serialised and built
    again, as the service's workers do, and must give a batch; Python functions would stay behind.

    Why it matters
    Instances with the same accelerator come with different numbers of cores. Where cores limit, more of them
    cost little beside the accelerator that waits; where they do not, they are paid for in vain.

    How to fix
    First have the pipeline do less (4.2, 4.3). Then choose an instance with the number of cores named, or
    move the pipeline to CPU machines with tf.data.experimental.service.
    """
    if reason := incomparable(evidence):
        return unknown(reason)
    baseline, gain = evidence.variant("baseline"), input_gain(evidence)
    assert baseline is not None
    if gain is None:
        return unknown("No block of either variant was measured.")
    feeding, training = cores_to_feed(evidence), _job_cores(evidence, "cached-input")
    during = load(baseline.blocks)
    facts = {
        "cached_input_over_baseline_ratio": gain,
        "cores": during.core_limit if during else None,
        "cores_used_by_the_job": during.job_cores if during else None,
        "cores_to_feed_the_rate_of_cached_input": feeding,
        "cores_used_on_cached_input": training,
        "could_run_under_the_tf.data_service": under_service(evidence),
    }
    if gain.low < WARN_GAIN:
        uncertain = gain.median >= WARN_GAIN and gain.high >= FAIL_GAIN
        if uncertain:
            return unknown("Whether training waits for input is too uncertain to call.", **facts)
        return passed("Training does not wait for input: other CPUs would not feed it faster.", **facts)
    if during is None or during.busy_fraction is None:
        return unknown("How busy the cores were was not recorded.", **facts)
    if during.busy_fraction < SATURATED:
        busy = percent(during.busy_fraction)
        serial = bool(evidence.program and _serial(evidence.program))
        first = " Make the pipeline parallel first (4.1)." if serial else ""
        limit = f"the cores are {busy} busy, and count as the limit from {percent(SATURATED)} on.{first}"
        return passed(f"Training waits for input, but {limit}", **facts)
    if during.is_crowded:
        taken = percent(during.others_fraction or 0.0)
        return unknown(f"Other processes took {taken} of the busy time: measure on a quiet machine.", **facts)
    summary = "Training waits for input while all cores are busy."
    if feeding is None or training is None:
        return warned(f"{summary} How many would do was not measured.", at_most=gain, **facts)
    total = ceil(feeding + training)
    has = f"{during.core_limit:g}" if during.core_limit else "those there are"
    fix = f"About {total} cores in place of {has} (an estimate), once they do no more than they must (4.2)."
    if (under_service(evidence) or "").startswith("yes"):
        fix += (
            " Or other machines prepare the data: dataset.apply(tf.data.experimental.service.distribute(…))."
        )
    return warned(f"{summary} About {total} would keep up.", fix=fix, at_most=gain, **facts)


def cores_to_feed(evidence: Evidence) -> float | None:
    """The cores that would iterate the data as fast as training goes on cached input."""
    alone, target = evidence.samples_per_s("input-only"), evidence.samples_per_s("cached-input")
    used = _job_cores(evidence, "input-only")
    if evidence.why_missing("input-only") or alone is None or target is None or not used or not alone.median:
        return None
    return target.median / (alone.median / used)


def under_service(evidence: Evidence) -> str | None:
    """Whether the tf.data service could run the pipeline, and why; None where that was not tried."""
    weighed, program = weighed_in(evidence), evidence.program
    if weighed is None or weighed.is_portable is None or program is None:
        return None
    if not weighed.is_portable:
        return f"no: {weighed.problem}"
    if python := [described(stage) for stage in program.pipeline if stage.python]:
        return f"no: {', '.join(python)} runs Python of this process"
    return "yes: serialised and built again, it gave a batch"


COMPILING_QUESTION = "Has it been tried to compile the pipeline's functions, or is there nothing to gain?"


@check(
    number="4.5",
    needs=("program", "baseline"),
    uses=("cached-input", "constant-batch", "source-cached", "weighed", "machine"),
    threshold=f"compiling a map saves ≥ {percent(WORTH_SHARE)} of the pipeline's work (lower end of the"
    f" interval), while cached input gives: lower end ≥ {WARN_GAIN:g}× warns",
    question=COMPILING_QUESTION,
)
def compilable_input(evidence: Evidence) -> Outcome:
    """Compiling the CPU work

    What it looks at
    The maps that do more than a little: whether XLA has a kernel for each of their ops, in the registry of
    the installed TensorFlow, and whether their elements have static shapes. Reading, decoding and text are
    none of XLA's business. Those maps are compiled, and both forms timed in one thread, with what feeds them
    held in memory.

    Why it matters
    A function of many small ops spends its time on starting them and on results in between; compiled, it is
    one loop over the data. For few large ops it changes nothing.

    How to fix
    .map(tf.function(function, jit_compile=True)), then measure the whole job again.
    """
    program = evidence.program
    assert program is not None
    if outcome := _without_pipeline(program):
        return outcome
    found, gain, costs = moves.compilable(program), input_gain(evidence), map_costs(evidence)
    names = ", ".join(described(stage) for stage in found)
    others = by_name((stage for stage in moves.worked(program) if stage not in found), _not_in_xla)
    facts = {
        "xla_could_compile": [described(stage) for stage in found],
        "xla_could_not_compile_more_of": others,
        "compiled": by_name(found, lambda stage: _compiled(cost) if (cost := costs.of(stage)) else None),
        "cached_input_over_baseline_ratio": gain,
        **_preparing(evidence),
    }
    if moves.unread(program) or any(work.not_in_xla is None for work in _read(program)):
        return unknown("What the maps do, or which kernels XLA has, could not be read.", **facts)
    if not found:
        return passed("There is no map of any weight that XLA could compile.", **facts)
    if gain is not None and gain.low < WARN_GAIN:
        return passed(f"XLA could compile {names}, but that costs nothing measurable here.", **facts)
    saved = [(stage, cost.saved) for stage in found if (cost := costs.of(stage)) and cost.saved]
    if saved := [(stage, share) for stage, share in saved if share.low >= WORTH_SHARE]:
        savings = ", ".join(f"{described(stage)} {percent(share.median)}" for stage, share in saved)
        summary = f"Compiling saves the pipeline some of its work: {savings}."
        if gain is None:
            return unknown(f"{summary} What input costs the job was not measured.", **facts)
        most = bounded(gain, together(share for _, share in saved), cores_of_job(evidence))
        return warned(summary, fix=_compiling([stage for stage, _ in saved]), at_most=most, **facts)
    if left := [stage for stage in found if costs.of(stage) is None]:
        names = ", ".join(map(described, left))
        why = why_not_weighed(evidence)
        return unknown(f"XLA could compile {names}. {why}", fix=_compiling(left), **facts)
    return passed(f"Compiled by XLA, {names} would not save the pipeline any work.", **facts)


def _compiling(found: list[Stage]) -> str:
    """The lines that compile maps."""
    calls = ".map(tf.function({}, jit_compile=True), num_parallel_calls=tf.data.AUTOTUNE)"
    return "\n".join(calls.format(_quoted(stage)) for stage in found)


def _compiled(cost: MapCost) -> str:
    """What compiling a map does to the pipeline's work, in words."""
    if cost.saved is None:
        return cost.problem or "not tried"
    low, high = percent(cost.saved.low), percent(cost.saved.high)
    return f"saves {percent(cost.saved.median)} of the pipeline's work ({low} to {high})"


def _not_in_xla(stage: Stage) -> str:
    missing = stage.work.not_in_xla if stage.work else None
    if missing:
        return f"no kernel for {', '.join(missing[:5])}"
    return "it does already" if stage.work and stage.work.compiled else "its shapes vary"
