"""Section 2: one line on each side of each rule."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from checks.builders import (
    CPU,
    GPU,
    RESOLVED,
    block,
    callback,
    evidence,
    failed,
    judged,
    measured,
    program,
)
from msgspec.structs import replace

from tfaudit.checks.instances import HOST_ONLY
from tfaudit.evidence import Evidence
from tfaudit.records import Epoch, Placement, Source, Stage, Status, Tie

NO_JOB = evidence(failed("baseline", "raised", "load"))


def texts(given: Evidence, number: str) -> dict[str, object]:
    return {fact.name: fact.value for fact in judged(number, given).facts}


# 2.1, 2.3, 2.4, 2.7 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["2.1", "2.3", "2.4", "2.7"])
@pytest.mark.parametrize("given", [evidence(baseline=100.0, program=program()), NO_JOB], ids=["all", "none"])
def test_what_only_a_person_knows_is_asked(number: str, given: Evidence) -> None:
    result = judged(number, given)
    assert result.status == Status.MANUAL
    assert result.summary.endswith("?")


def test_what_the_machine_is_stands_beside_the_question() -> None:
    told = texts(evidence(baseline=100.0, devices=(CPU, GPU)), "2.1")
    assert told["processor"] == "Some CPU" and told["accelerator"] == "Some GPU"


def test_what_the_job_needs_stands_beside_the_question() -> None:
    given = evidence(measured("baseline", peak_host_bytes=2**30), program=program())
    told = texts(given, "2.7")
    assert told["peak on the host"] == 2**30
    assert (told["computes in"], told["replicas"], told["instances"]) == ("float32", 1, 1)


# 2.2 ------------------------------------------------------------------------------------------------


def obstacles(
    *stages: Stage,
    devices: tuple[Any, ...] = (CPU,),
    placed: dict[str, int] | None = None,
    data_kind: str = "tf.data",
    spec: tuple[str, ...] = ("x: float32[?, 8]", "y: int64[?]"),
    **fields: Any,
) -> Evidence:
    variants = [measured("baseline", **fields)]
    if placed is not None:
        variants.append(
            measured("placement", [], placement=Placement(ops={"CPU": placed, "GPU": {"Mul": 3}}))
        )
    job = program(*stages, element_spec=spec, data_kind=data_kind)
    return evidence(*variants, program=job, devices=devices)


MATMUL = {"MatMul": 2}

ACCELERATORS = {
    "none, on a CPU": (obstacles(), Status.PASS),
    "none, on a GPU": (obstacles(devices=(CPU, GPU), placed={}), Status.PASS),
    "none, on a GPU whose placement is not known": (obstacles(devices=(CPU, GPU)), Status.PASS),
    "Python in the pipeline": (obstacles(Stage(op="map", function="decode", python=True)), Status.WARN),
    "Python that makes the data": (obstacles(data_kind="generator"), Status.WARN),
    "a PyDataset": (obstacles(data_kind="PyDataset"), Status.PASS),
    "Python in the step": (obstacles(train_ops={**MATMUL, "EagerPyFunc": 1}), Status.WARN),
    "a batch of varying size": (obstacles(spec=("x: float32[?, 8]",)), Status.PASS),
    "a length that varies": (obstacles(spec=("x: float32[32, ?]",)), Status.WARN),
    "ragged data": (obstacles(spec=("x: ragged int64[?, ?]",)), Status.WARN),
    "a size that depends on values": (obstacles(train_ops={**MATMUL, "Where": 1}), Status.WARN),
    "strings as data": (obstacles(spec=("x: string[?]",)), Status.WARN),
    "a component named string": (obstacles(spec=("x.string: int32[?]",)), Status.PASS),
    "strings in the step": (obstacles(train_ops={**MATMUL, "StringToHashBucketFast": 1}), Status.WARN),
    "a look-up in the step": (obstacles(train_ops={**MATMUL, "LookupTableFindV2": 1}), Status.WARN),
    "float64": (obstacles(spec=("x: float64[?, 8]",)), Status.WARN),
    "complex numbers": (obstacles(spec=("x: complex64[?, 8]",)), Status.WARN),
    "a float64 policy": (obstacles(resolved=replace(RESOLVED, dtype_policy="float64")), Status.WARN),
    "a mixed policy": (obstacles(resolved=replace(RESOLVED, dtype_policy="mixed_bfloat16")), Status.PASS),
    "eager": (obstacles(resolved=replace(RESOLVED, run_eagerly=True), train_ops=None), Status.WARN),
    "an op on the host": (obstacles(devices=(CPU, GPU), placed={"MatMul": 1}), Status.WARN),
    "an op of the pipeline on the host": (obstacles(devices=(CPU, GPU), placed={"Range": 1}), Status.PASS),
    "on a CPU everything is on the host": (obstacles(placed={"MatMul": 1}), Status.PASS),
    "nothing is known of the step": (obstacles(resolved=None, train_ops=None), Status.UNKNOWN),
    "the job is not known": (NO_JOB, Status.UNKNOWN),
}


@pytest.mark.parametrize("case", ACCELERATORS)
def test_dedicated_accelerators(case: str) -> None:
    """2.2"""
    given, status = ACCELERATORS[case]
    assert judged("2.2", given).status == status


def test_obstacles_are_named_with_what_to_do() -> None:
    given = obstacles(Stage(op="map", function="decode", python=True), spec=("x: string[?]", "y: float64[?]"))
    result = judged("2.2", given)
    assert result.summary == (
        "In the way of an accelerator: Python (map(decode)); strings (x: string[?]); types (y: float64[?])."
    )
    assert len(result.fix.splitlines()) == 3


def test_python_in_the_data_and_in_the_step_is_told_together() -> None:
    given = obstacles(Stage(op="map", function="f", python=True), train_ops={"PyFunc": 1})
    assert judged("2.2", given).summary == "In the way of an accelerator: Python (map(f), PyFunc)."


@pytest.mark.parametrize("op", ["StringSplitV2", "LookupTableFindV2", "DecodeJpeg", "RegexReplace", "Substr"])
def test_ops_with_a_kernel_for_the_cpu_alone(op: str) -> None:
    assert HOST_ONLY.fullmatch(op)


@pytest.mark.parametrize("op", ["MatMul", "Conv2D", "Const", "StringFormat", "PrintV2", "SparseMatMul"])
def test_ops_that_are_none_of_these(op: str) -> None:
    assert not HOST_ONLY.fullmatch(op)


KERNELS = """
import json, tensorflow as tf
from tensorflow.python.framework.kernels import get_all_registered_kernels
kinds = {}
for kernel in get_all_registered_kernels().kernel:
    kinds.setdefault(kernel.op, []).append(kernel.device_type)
print(json.dumps([tf.sysconfig.get_build_info()["is_cuda_build"], kinds]))
"""


@pytest.mark.tensorflow
def test_tensorflow_has_no_other_kernel_for_them() -> None:
    """Only a build with CUDA tells; others know no kernel for a GPU at all."""
    done = subprocess.run([sys.executable, "-c", KERNELS], capture_output=True, text=True, check=True)
    has_cuda, kinds = json.loads(done.stdout.splitlines()[-1])
    if not has_cuda:
        pytest.skip("this TensorFlow is built without CUDA")
    known = {op: set(found) for op, found in kinds.items() if HOST_ONLY.fullmatch(op)}
    assert len(known) > 50
    assert {op for op, found in known.items() if found != {"CPU"}} == set()


# 2.5 ------------------------------------------------------------------------------------------------


def tied(*ties: Tie, files: tuple[str, ...] = ("train.py",)) -> Evidence:
    return evidence(program=program(), source=Source(ties=ties, files=files))


DEVICE = Tie(kind="device", text="with tf.device('/GPU:0')", place="train.py:3")
COUNT = Tie(kind="count", text="num_gpus = 4", place="train.py:9")

PORTABLE = {
    "nothing": (tied(), Status.PASS),
    "a device": (tied(DEVICE), Status.WARN),
    "a number of devices": (tied(COUNT), Status.WARN),
    "no source": (tied(files=()), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", PORTABLE)
def test_portable_program(case: str) -> None:
    """2.5"""
    given, status = PORTABLE[case]
    assert judged("2.5", given).status == status


def test_ties_are_named_with_their_places() -> None:
    result = judged("2.5", tied(DEVICE, COUNT))
    assert result.summary == (
        "The program is tied to one kind of machine: with tf.device('/GPU:0') (train.py:3), and 1 more."
    )
    assert [fact.value for fact in result.facts] == [
        "train.py:3: with tf.device('/GPU:0')",
        "train.py:9: num_gpus = 4",
    ]
    assert "# train.py:9:\nlen(tf.config.list_physical_devices" in result.fix


# 2.6 ------------------------------------------------------------------------------------------------


def spot(
    *callbacks: Any,
    form: str = "script",
    epochs: str = "10",
    batches: int | None = 100,
    seconds_per_batch: float = 0.1,
    location: str | None = "/project/train.py:50",
    initial_epoch: str | None = None,
    **source: Any,
) -> Evidence:
    """A program of so many epochs; 100 s in all when nothing else is said."""
    arguments = {"epochs": epochs} | ({"initial_epoch": initial_epoch} if initial_epoch else {})
    job = program(
        form=form,
        callbacks=callbacks,
        fit_arguments=arguments,
        training=Epoch(batches=batches),
        location=location,
    )
    rate = 100 / seconds_per_batch  # each block's steps are of 100 samples
    baseline = measured("baseline", blocks=[block(rate)] * 6)
    return evidence(baseline, program=job, source=Source(files=("train.py",), **source))


CHECKPOINT = callback("ModelCheckpoint", kept=False)
LONG: dict[str, Any] = {"batches": 100_000}

SPOT = {
    "a short run": (spot(), Status.PASS),
    "a run of just under an hour": (spot(batches=3599, epochs="10"), Status.PASS),
    "a run of an hour": (spot(batches=3601, epochs="10"), Status.WARN),
    "a long run": (spot(**LONG), Status.WARN),
    "a run of unknown length": (spot(batches=None), Status.MANUAL),
    "epochs that are no number": (spot(epochs="int64"), Status.MANUAL),
    "BackupAndRestore": (spot(callback("BackupAndRestore", kept=False), **LONG), Status.PASS),
    "made from BackupAndRestore": (spot(callback("B", "train", "BackupAndRestore"), **LONG), Status.PASS),
    "one's own of that name": (spot(callback("BackupAndRestore", "train"), **LONG), Status.WARN),
    "BackupAndRestore in the source": (
        spot(uses={"keras.callbacks.BackupAndRestore": "train.py:9"}, **LONG),
        Status.PASS,
    ),
    "a handler of preemption": (
        spot(uses={"tensorflow.distribute.experimental.PreemptionCheckpointHandler": "train.py:9"}, **LONG),
        Status.PASS,
    ),
    "ModelCheckpoint alone": (spot(CHECKPOINT, **LONG), Status.WARN),
    "ModelCheckpoint, read back before": (
        spot(CHECKPOINT, calls={"model.load_weights": "train.py:40"}, **LONG),
        Status.PASS,
    ),
    "ModelCheckpoint, read back in another file": (
        spot(CHECKPOINT, calls={"model.load_weights": "model.py:90"}, **LONG),
        Status.PASS,
    ),
    "ModelCheckpoint, read for a test afterwards": (
        spot(CHECKPOINT, calls={"model.load_weights": "train.py:60"}, **LONG),
        Status.WARN,
    ),
    "ModelCheckpoint and load_model": (
        spot(CHECKPOINT, uses={"keras.models.load_model": "train.py:9"}, **LONG),
        Status.PASS,
    ),
    "ModelCheckpoint and a load_model of one's own": (
        spot(CHECKPOINT, calls={"load_model": "train.py:9"}, **LONG),
        Status.WARN,
    ),
    "ModelCheckpoint and a first epoch": (spot(CHECKPOINT, initial_epoch="3", **LONG), Status.PASS),
    "ModelCheckpoint and the first epoch": (spot(CHECKPOINT, initial_epoch="0", **LONG), Status.WARN),
    "pretrained weights alone": (spot(calls={"model.load_weights": "train.py:9"}, **LONG), Status.WARN),
    "a CheckpointManager": (
        spot(uses={"tensorflow.train.CheckpointManager": "train.py:9"}, **LONG),
        Status.WARN,
    ),
    "a CheckpointManager that restores": (
        spot(
            uses={"tensorflow.train.CheckpointManager": "train.py:9"},
            calls={"manager.restore_or_initialize": "train.py:10"},
            **LONG,
        ),
        Status.PASS,
    ),
    "Orbax": (
        spot(
            uses={"orbax.checkpoint.CheckpointManager": "train.py:9"},
            calls={"manager.restore": "train.py:10"},
            **LONG,
        ),
        Status.PASS,
    ),
    "a factory has no fit to look at": (spot(form="factory", **LONG), Status.MANUAL),
    "builders have no fit to look at": (spot(form="builders", **LONG), Status.MANUAL),
    "a factory whose source restores": (
        spot(form="factory", uses={"keras.callbacks.BackupAndRestore": "train.py:9"}, **LONG),
        Status.PASS,
    ),
    "the job is not known": (NO_JOB, Status.UNKNOWN),
}


@pytest.mark.parametrize("case", SPOT)
def test_spot_ready(case: str) -> None:
    """2.6"""
    given, status = SPOT[case]
    assert judged("2.6", given).status == status


def test_without_a_measurement_the_length_of_a_run_is_not_known() -> None:
    job = program(fit_arguments={"epochs": "9"}, training=Epoch(batches=10**6))
    assert judged("2.6", evidence(program=job, source=Source())).status == Status.MANUAL


def test_what_restores_is_named_with_its_place() -> None:
    result = judged("2.6", spot(CHECKPOINT, calls={"model.load_weights": "train.py:40"}))
    assert result.summary == "ModelCheckpoint saves, and model.load_weights (train.py:40) restores."


def test_how_long_a_run_takes_is_told_as_an_estimate() -> None:
    result = judged("2.6", spot(CHECKPOINT, **LONG))
    assert result.summary == (
        "ModelCheckpoint saves, but nothing was found that restores. All epochs of fit take at most 27.8 h"
        " (an estimate), which an interruption would lose."
    )
    assert "BackupAndRestore" in result.fix
