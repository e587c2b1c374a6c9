"""Section 7: one line on each side of each rule."""

from __future__ import annotations

from typing import Any

import pytest
from checks.builders import callback, evidence, failed, judged, program
from msgspec.structs import replace

from tfaudit.evidence import Evidence
from tfaudit.records import Source, Status, Stored, StoredKind


def of(*callbacks: Any, form: str = "script", **source: Any) -> Evidence:
    return evidence(program=program(form=form, callbacks=callbacks), source=Source(**source))


UNKNOWN = evidence(failed("baseline", "raised", "load"))

STOPPED = {
    "nothing": (of(), Status.WARN),
    "nothing, run with python -m": (of(form="module"), Status.WARN),
    "EarlyStopping": (of(callback("EarlyStopping")), Status.PASS),
    "TerminateOnNaN": (of(callback("TerminateOnNaN")), Status.PASS),
    "another callback": (of(callback("History")), Status.WARN),
    "a class made from EarlyStopping": (
        of(callback("Patient", "train", "EarlyStopping", "Callback")),
        Status.PASS,
    ),
    "a callback named for it": (of(callback("StopWhenFlat", "train")), Status.PASS),
    "called somewhere in the project": (
        of(calls={"keras.callbacks.EarlyStopping": "train.py:9"}),
        Status.PASS,
    ),
    "imported by name": (of(calls={"TerminateOnNaN": "train.py:9"}), Status.PASS),
    "a call of another name": (of(calls={"EarlyStoppingReport": "train.py:9"}), Status.WARN),
    "stop_training is set": (of(stops="train.py:3"), Status.PASS),
    "a factory has no fit to look at": (of(form="factory"), Status.MANUAL),
    "builders have no fit to look at": (of(form="builders"), Status.MANUAL),
    "a factory whose project does": (of(form="factory", stops="train.py:3"), Status.PASS),
    "the job is not known": (UNKNOWN, Status.UNKNOWN),
}


@pytest.mark.parametrize("case", STOPPED)
def test_failing_runs_stopped(case: str) -> None:
    """7.1"""
    given, status = STOPPED[case]
    assert judged("7.1", given).status == status


def test_what_stops_a_run_is_named_with_its_place() -> None:
    result = judged("7.1", of(calls={"keras.callbacks.EarlyStopping": "train.py:9"}))
    assert result.summary == "keras.callbacks.EarlyStopping does (train.py:9)."


def test_a_stopwatch_stops_no_run() -> None:
    assert judged("7.1", of(callback("StopwatchCallback", "train"))).status == Status.WARN


TRACKED = {
    "nothing": (of(), Status.WARN),
    "nothing, run with python -m": (of(form="module"), Status.WARN),
    "TensorBoard": (of(callback("TensorBoard", kept=False)), Status.PASS),
    "a class made from TensorBoard": (of(callback("Board", "train", "TensorBoard", "Callback")), Status.PASS),
    "a tracker's callback": (
        of(callback("WandbMetricsLogger", "wandb.integration.keras", kept=False)),
        Status.PASS,
    ),
    "CSVLogger is no tracker": (of(callback("CSVLogger", kept=False)), Status.WARN),
    "a tracker is imported": (of(imports={"mlflow.tensorflow": "train.py:2"}), Status.PASS),
    "a package whose name begins like one": (of(imports={"mlflowing": "train.py:2"}), Status.WARN),
    "another package": (of(imports={"numpy": "train.py:2"}), Status.WARN),
    "TensorBoard is called": (of(calls={"tf.keras.callbacks.TensorBoard": "train.py:4"}), Status.PASS),
    "a factory has no fit to look at": (of(form="factory"), Status.MANUAL),
    "builders whose project imports a tracker": (
        of(form="builders", imports={"wandb": "train.py:2"}),
        Status.PASS,
    ),
    "the job is not known": (UNKNOWN, Status.UNKNOWN),
}


@pytest.mark.parametrize("case", TRACKED)
def test_experiments_tracked(case: str) -> None:
    """7.4"""
    given, status = TRACKED[case]
    assert judged("7.4", given).status == status


def test_the_tracker_is_named_with_its_place() -> None:
    result = judged("7.4", of(imports={"mlflow.tensorflow": "train.py:2"}))
    assert result.summary == "mlflow is imported (train.py:2)."


# 7.2 and 7.3 ----------------------------------------------------------------------------------------


SEARCHED = {
    "nothing": (of(), Status.MANUAL),
    "Keras Tuner": (of(uses={"keras_tuner.Hyperband": "tune.py:2"}), Status.PASS),
    "Optuna": (of(uses={"optuna.create_study": "tune.py:2"}), Status.PASS),
    "Ray Tune": (of(uses={"ray.tune.Tuner": "tune.py:2"}), Status.PASS),
    "Ray without Tune": (of(uses={"ray.init": "tune.py:2"}), Status.MANUAL),
    "Hyperopt": (of(uses={"hyperopt.fmin": "tune.py:2"}), Status.PASS),
    "Vizier": (of(uses={"vizier.service.clients.Study": "tune.py:2"}), Status.PASS),
    "a sweep": (of(uses={"wandb.agent": "tune.py:2"}), Status.PASS),
    "W&B without a sweep": (of(uses={"wandb.init": "tune.py:2"}), Status.MANUAL),
    "SageMaker's": (of(uses={"sagemaker.tuner.HyperparameterTuner": "tune.py:2"}), Status.PASS),
    "SageMaker without": (of(uses={"sagemaker.tensorflow.TensorFlow": "tune.py:2"}), Status.MANUAL),
    "a grid search": (of(uses={"sklearn.model_selection.GridSearchCV": "tune.py:2"}), Status.PASS),
    "scikit-learn without": (of(uses={"sklearn.model_selection.KFold": "tune.py:2"}), Status.MANUAL),
    "a name that begins alike": (of(uses={"optuna_like.create_study": "tune.py:2"}), Status.MANUAL),
    "a class named alike": (of(uses={"mylib.HyperparameterTuner": "tune.py:2"}), Status.MANUAL),
    "builders whose project searches": (
        of(form="builders", uses={"optuna.create_study": "tune.py:2"}),
        Status.PASS,
    ),
    "the job is not known": (UNKNOWN, Status.MANUAL),
}


@pytest.mark.parametrize("case", SEARCHED)
def test_hyper_parameter_search(case: str) -> None:
    """7.2"""
    given, status = SEARCHED[case]
    assert judged("7.2", given).status == status


def test_the_tuner_is_named_with_its_place() -> None:
    result = judged("7.2", of(uses={"optuna.create_study": "tune.py:2"}))
    assert result.summary == "optuna.create_study searches them (tune.py:2)."


@pytest.mark.parametrize("given", [of(), UNKNOWN], ids=["a job", "none"])
def test_unused_storage(given: Evidence) -> None:
    """7.3"""
    assert judged("7.3", given).status == Status.MANUAL


def storing(old_bytes: int, kind: str = "checkpoints and models", complete: bool = True) -> Evidence:
    """A folder of 2 GB, of which so much is old."""
    found = StoredKind(kind, 3, 2 * 10**9, old_bytes, newest_days=1.2, oldest_days=40.6)
    stored = Stored("runs", (found,), {"runs/old ones": old_bytes}, is_complete=complete)
    return replace(evidence(program=program()), storage=(stored,))


STORED = {
    "1 GB is old": (storing(10**9), Status.WARN),
    "less is old": (storing(10**9 - 1), Status.PASS),
    "old data sets": (storing(10**9, "other"), Status.PASS),
    "too much to see": (storing(0, complete=False), Status.UNKNOWN),
    "enough of it seen": (storing(10**9, complete=False), Status.WARN),
}


@pytest.mark.parametrize("case", STORED)
def test_named_storage(case: str) -> None:
    """7.3: old checkpoints, models and logs in the folders that were named."""
    given, status = STORED[case]
    assert judged("7.3", given).status == status


def test_what_is_old_is_named_with_the_command_that_lists_it() -> None:
    result = judged("7.3", storing(1_500_000_000))
    assert result.summary == (
        "Of 1.86 GiB of checkpoints, models and logs, 1.40 GiB were not written for 30 days."
    )
    assert result.fix == "find 'runs/old ones' -type f -mtime +30  # is it needed?"
    assert ("folder: runs: checkpoints and models", "1.86 GiB in 3 files, written 1 to 41 days ago") in [
        (fact.name, fact.value) for fact in result.facts
    ]
