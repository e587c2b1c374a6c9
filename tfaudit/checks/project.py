"""The project.

Section 7 of the checklist: habits that save whole experiments.
"""

from __future__ import annotations

import re
import shlex

from ..checking import Outcome, check, manual, passed, unknown, warned
from ..evidence import Evidence
from ..program.callbacks import TRACKERS
from ..program.names import is_of
from ..program.stored import OLD_DAYS, OTHER
from ..records import StoredKind
from ..report import numbers
from ..report.trace_words import counted

#: Callbacks of Keras that end a run early.
STOPPERS = frozenset({"EarlyStopping", "TerminateOnNaN"})

#: Packages and functions that search hyper-parameters, as beginnings of full names.
TUNERS = (
    "autokeras",
    "ax",
    "azure.ai.ml.sweep",
    "bayes_opt",
    "clearml.automation",
    "comet_ml.Optimizer",
    "deephyper",
    "dehb",
    "flaml",
    "google.cloud.aiplatform.HyperparameterTuningJob",
    "hpbandster",
    "hyperopt",
    "kerastuner",
    "keras_tuner",
    "kubeflow.katib",
    "nevergrad",
    "nni",
    "optuna",
    "optuna_integration",
    "orion",
    "ray.tune",
    "sherpa",
    "skopt",
    "smac",
    "syne_tune",
    "talos",
    "tune_sklearn",
    "vizier",
    "wandb.agent",
    "wandb.sweep",
)

#: Classes that search, in packages that do much else.
SEARCHES = frozenset(
    {
        "GridSearchCV",
        "HalvingGridSearchCV",
        "HalvingRandomSearchCV",
        "HyperparameterTuner",
        "RandomizedSearchCV",
    }
)
SEARCHING_PACKAGES = ("sagemaker", "sklearn")

#: Names that record runs so that they can be compared later, beside the trackers' own packages.
RECORDERS = frozenset({"TensorBoard"})


@check(number="7.1", needs=("program", "source"), question="Are runs that have failed ended early?")
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
    if not program.has_fit:
        return manual("The target has no call of fit: are failing runs stopped early?")
    return warned(
        "Nothing stops a run that has failed.",
        fix="callbacks=[keras.callbacks.TerminateOnNaN(), keras.callbacks.EarlyStopping(patience=…)]",
    )


SEARCH_QUESTION = "Are hyper-parameters searched automatically, rather than tried by hand?"


@check(number="7.2", uses=("source",), question=SEARCH_QUESTION)
def hyper_parameter_search(evidence: Evidence) -> Outcome:
    """Hyper-parameter search

    What it looks at
    Tuners such as Keras Tuner, Optuna, Ray Tune, Vizier, SageMaker's or W&B's sweeps, used in the program or
    the project's modules that it imports. A search that starts the program from outside cannot be seen there.

    Why it matters
    Trying values by hand takes more runs for a worse result, and a tuner also ends the runs that will not
    win early.

    How to fix
    Give the model-building function a tuner: keras_tuner.Hyperband(build_model, "val_loss"), or a sweep of
    the service that tracks the experiments (7.4).
    """
    if found := evidence.source.first_use(*TUNERS):
        return passed(f"{found[0]} searches them ({found[1]}).")
    for full, place in evidence.source.uses.items():
        if is_of(full, SEARCHES, SEARCHING_PACKAGES):
            return passed(f"{full} searches them ({place}).")
    return manual(f"No tuner was found in the program. {SEARCH_QUESTION}")


#: Less than this is not worth anyone's time: at usual prices it costs cents a month.
WARN_OLD_BYTES = 1_000_000_000

STORAGE_QUESTION = "Are checkpoints, logs and data sets that nobody needs any more deleted?"


@check(
    number="7.3",
    uses=("storage",),
    threshold=f"≥ {numbers.size(WARN_OLD_BYTES)} of checkpoints, models and logs not written for {OLD_DAYS}"
    " days warn",
    question=STORAGE_QUESTION,
)
def unused_storage(evidence: Evidence) -> Outcome:
    """Unused storage

    What it looks at
    The folders named with --storage: size and age of what looks like checkpoints, models, logs and traces.
    Nothing is opened. Only a person knows which of them are still needed, and what else is stored elsewhere.

    Why it matters
    Storage is paid for by the month, whether anyone reads it or not; checkpoints of every epoch of every
    experiment soon cost more than the training.

    How to fix
    Keep the best and the last checkpoint of a run (max_to_keep, save_best_only=True), and let the bucket's
    lifecycle rules delete the rest after some weeks.
    """
    if not evidence.storage:
        return manual(f"{STORAGE_QUESTION} Their size and age: --storage FOLDER.")
    old_bytes = sum(kind.old_bytes for kind in _kept(evidence))
    all_bytes = sum(kind.bytes for kind in _kept(evidence))
    facts = {
        "folder": {
            f"{each.path}: {kind.kind}": _held(kind) for each in evidence.storage for kind in each.kinds
        },
        "old": {
            path: numbers.size(size) for each in evidence.storage for path, size in each.old_folders.items()
        },
        "not_all_was_seen": [each.path for each in evidence.storage if not each.is_complete],
    }
    whole = f"{numbers.size(all_bytes)} of checkpoints, models and logs"
    if old_bytes >= WARN_OLD_BYTES:
        paths = [path for each in evidence.storage for path in each.old_folders]
        fix = "\n".join(
            f"find {shlex.quote(path)} -type f -mtime +{OLD_DAYS}  # is it needed?" for path in paths
        )
        summary = f"Of {whole}, {numbers.size(old_bytes)} were not written for {OLD_DAYS} days."
        return warned(summary, fix=fix, **facts)
    if not all(each.is_complete for each in evidence.storage):
        return unknown("There was too much in the folders to see all of it in time.", **facts)
    return passed(f"The folders hold {whole}, {numbers.size(old_bytes)} of it old.", **facts)


def _kept(evidence: Evidence) -> list[StoredKind]:
    """What is judged: data and whatever else lies there is not."""
    return [kind for each in evidence.storage for kind in each.kinds if kind.kind != OTHER]


def _held(kind: StoredKind) -> str:
    size, files = numbers.size(kind.bytes), counted(kind.count, "file")
    newest, oldest = f"{kind.newest_days:.0f}", f"{kind.oldest_days:.0f}"
    return f"{size} in {files}, written {newest if newest == oldest else f'{newest} to {oldest}'} days ago"


@check(
    number="7.4",
    needs=("program", "source"),
    question="Are experiments recorded somewhere, with their parameters and results?",
)
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
    if not program.has_fit:
        return manual("The target has no call of fit: are experiments recorded somewhere?")
    return warned("No experiment tracker was found.", fix="import mlflow\nmlflow.tensorflow.autolog()")
