"""The project.

Section 7 of the checklist: habits that save whole experiments.
"""

from __future__ import annotations

import re

from ..checking import Outcome, check, manual, passed, planned, warned
from ..evidence import Evidence
from ..program.callbacks import TRACKERS
from ..records import Program

#: Callbacks of Keras that end a run early.
STOPPERS = frozenset({"EarlyStopping", "TerminateOnNaN"})

#: Names that record runs so that they can be compared later, beside the trackers' own packages.
RECORDERS = frozenset({"TensorBoard"})


def _has_fit(program: Program) -> bool:
    return program.form in ("script", "module")


@check(number="7.1", needs=("program", "source"))
def failing_runs_stopped(evidence: Evidence) -> Outcome:
    """Stopping of failing runs

    What it looks at
    EarlyStopping, TerminateOnNaN or a callback of your own that ends training, in fit's callbacks and in
    the project's source.

    Why it matters
    A run whose loss is NaN or no longer falls costs as much per hour as a good one.

    How to fix
    callbacks=[keras.callbacks.TerminateOnNaN(), keras.callbacks.EarlyStopping(patience=…)]
    """
    program, source = evidence.program, evidence.source
    assert program is not None
    for callback in program.callbacks:
        if STOPPERS & {callback.name, *callback.bases} or re.search("stop(?!watch)", callback.name, re.I):
            return passed(f"{callback.name} does.")
    for name, place in source.calls.items():
        if name.rpartition(".")[2] in STOPPERS:
            return passed(f"{name} does ({place}).")
    if source.stops:
        return passed(f"The program sets stop_training itself ({source.stops}).")
    if not _has_fit(program):
        return manual("The target has no call of fit: are failing runs stopped early?")
    return warned(
        "Nothing stops a run that has failed.",
        fix="callbacks=[keras.callbacks.TerminateOnNaN(), keras.callbacks.EarlyStopping(patience=…)]",
    )


@check(number="7.4", needs=("program", "source"))
def experiments_tracked(evidence: Evidence) -> Outcome:
    """Experiment tracking

    What it looks at
    Trackers such as MLflow, Weights & Biases or TensorBoard among fit's callbacks and the project's
    imports and calls.

    Why it matters
    An experiment that nobody recorded is run again.

    How to fix
    Log parameters, metrics and the commit of each run to a tracker: mlflow.tensorflow.autolog() is one
    line.
    """
    program, source = evidence.program, evidence.source
    assert program is not None
    for callback in program.callbacks:
        package = callback.module.partition(".")[0]
        if package in TRACKERS or RECORDERS & {callback.name, *callback.bases}:
            return passed(f"{callback.name} ({package}) records runs.")
    for module, place in source.imports.items():
        if module.partition(".")[0] in TRACKERS:
            return passed(f"{module.partition('.')[0]} is imported ({place}).")
    for name, place in source.calls.items():
        if name.rpartition(".")[2] in RECORDERS:
            return passed(f"{name} is called ({place}).")
    if not _has_fit(program):
        return manual("The target has no call of fit: are experiments recorded somewhere?")
    return warned("No experiment tracker was found.", fix="import mlflow\nmlflow.tensorflow.autolog()")


planned(
    __name__,
    {
        "7.2": ("hyper_parameter_search", "Hyper-parameter search"),
        "7.3": ("unused_storage", "Unused storage"),
    },
)
