"""CPU bottlenecks.

Section 4 of the checklist: the work between reading and the accelerator.
"""

from __future__ import annotations

from pathlib import Path

from ..checking import Outcome, check, failed, not_applicable, passed, planned, warned
from ..evidence import Evidence
from ..records import Program, Stage
from .performance import FAIL_GAIN, GAIN_RULE, WARN_GAIN, input_gain

#: Stages that tf.data can run in parallel and does not unless asked.
PARALLELISABLE = ("map", "interleave")


@check(
    number="4.1",
    needs=("program",),
    uses=("baseline", "cached-input"),
    threshold=f"a stage that could be parallel, or no prefetch at the end, while cached input gives:"
    f" {GAIN_RULE}",
)
def parallel_pipeline(evidence: Evidence) -> Outcome:
    """Prefetch and parallel calls

    What it looks at
    The stages of the tf.data pipeline: map and interleave without num_parallel_calls, and a last stage
    that is no prefetch. Weighed by what cached input would give.

    Why it matters
    A serial stage uses one core however many there are, and without a prefetch the accelerator waits
    while the next batch is prepared and the CPU waits while it trains.

    How to fix
    Give map and interleave num_parallel_calls=tf.data.AUTOTUNE and end the pipeline with
    prefetch(tf.data.AUTOTUNE).
    """
    program = evidence.program
    assert program is not None
    if program.data_kind != "tf.data":
        return not_applicable(f"The data is no tf.data pipeline ({program.data_kind}).")
    faults, advice = pipeline_faults(program)
    if not faults:
        return passed("Every stage that can be parallel is, and a prefetch ends the pipeline.")
    gain = input_gain(evidence)
    summary, fix = f"Found: {'; '.join(faults)}.", "\n".join(advice)
    if gain is None:
        return warned(f"{summary} What it costs was not measured.", fix=fix, fault=faults)
    facts = {"fault": faults, "cached_input_over_baseline_ratio": gain}
    if gain.low >= FAIL_GAIN:
        return failed(summary, fix=fix, at_most=gain, **facts)
    if gain.low >= WARN_GAIN:
        return warned(summary, fix=fix, at_most=gain, **facts)
    return passed(f"{summary} It costs nothing measurable here.", **facts)


def pipeline_faults(program: Program) -> tuple[list[str], list[str]]:
    """What is missing, and the lines that would add it, each in the order of the pipeline."""
    faults, advice = [], []
    for stage in program.pipeline:
        if stage.inside or stage.op not in PARALLELISABLE or stage.num_parallel_calls is not None:
            continue
        faults.append(f"{described(stage)} runs serially")
        if stage.python:
            advice.append(f"# {described(stage)} runs Python, which parallel calls hardly speed up: see 5.5")
            continue
        function = stage.function if stage.function not in (None, "<lambda>") else "…"
        advice.append(f"{_place(stage)}.{stage.op}({function}, num_parallel_calls=tf.data.AUTOTUNE)")
    ending = [stage for stage in program.pipeline if stage.op != "with_options" and not stage.inside]
    if ending and ending[-1].op != "prefetch":
        faults.append(f"no prefetch ends the pipeline (its last stage is {ending[-1].op})")
        advice.append("dataset = dataset.prefetch(tf.data.AUTOTUNE)  # last")
    return faults, advice


def described(stage: Stage) -> str:
    """A stage as a reader of the program would name it: ``map(decode)``."""
    return f"{stage.op}({stage.function})" if stage.function else stage.op


def _place(stage: Stage) -> str:
    if not stage.location:
        return ""
    path, _, line = stage.location.rpartition(":")
    return f"# where {stage.function or stage.op}, from {Path(path).name}:{line}, is used:\n"


planned(
    __name__,
    {
        "4.2": ("data_preparation", "Work for the data preparation"),
        "4.3": ("work_for_accelerator", "Work for the accelerator"),
        "4.4": ("other_cpus", "Other CPUs"),
        "4.5": ("compilable_input", "Compiling the CPU work"),
    },
)
