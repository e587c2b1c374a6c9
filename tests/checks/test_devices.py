"""Section 6 without a trace: one line on each side of each rule."""

from __future__ import annotations

from typing import Any

import pytest
from checks.builders import CPU, GPU, RESOLVED, evidence, failed, judged, measured, program
from msgspec.structs import replace

from tfaudit.evidence import Evidence
from tfaudit.records import Cluster, Epoch, Source, Status

NO_JOB = evidence(failed("baseline", "raised", "load"))
TWO = Cluster(instances=2, processes=2, told_by="TF_CONFIG")
UNREADABLE = Cluster(instances=None, processes=None, told_by="TF_CONFIG")


def of(
    gpus: int = 0, replicas: int = 1, cluster: Cluster | None = None, uses: Any = None, **fields: Any
) -> Evidence:
    """A job on so many GPUs, with so many replicas, in that cluster."""
    return evidence(
        measured("baseline", resolved=replace(RESOLVED, replicas=replicas)),
        program=program(cluster=cluster or Cluster(), **fields),
        source=Source(uses=uses or {}),
        devices=(CPU, *[GPU] * gpus),
    )


#: By case: the evidence, and what 6.1 to 6.4 and 6.6 say of it.
SEVERAL = {
    "a CPU": (of(), "n-a n-a n-a n-a n-a"),
    "a GPU": (of(1), "n-a n-a n-a n-a n-a"),
    "two GPUs": (of(2, 2), "unknown pass n-a unknown manual"),
    "eight GPUs of which one is used": (of(8), "unknown pass n-a unknown n-a"),
    "two replicas on a CPU": (of(0, 2), "unknown pass n-a unknown manual"),
    "two processes on one instance": (
        of(0, 1, Cluster(instances=1, processes=2, told_by="TF_CONFIG")),
        "unknown pass n-a unknown manual",
    ),
    "two instances with a GPU each": (of(1, 2, TWO), "unknown warn unknown unknown manual"),
    "two instances with four GPUs each": (of(4, 8, TWO), "unknown warn unknown unknown manual"),
    "two instances with five GPUs each": (of(5, 10, TWO), "unknown pass unknown unknown manual"),
    "two instances with eight GPUs each": (of(8, 16, TWO), "unknown pass unknown unknown manual"),
    "two instances without": (of(0, 2, TWO), "unknown manual unknown unknown manual"),
    "a cluster that cannot be read": (of(1, 1, UNREADABLE), "unknown unknown unknown unknown manual"),
    "the job is not known": (NO_JOB, "unknown unknown unknown unknown unknown"),
}


@pytest.mark.parametrize("case", SEVERAL)
def test_several_devices(case: str) -> None:
    """6.1, 6.2, 6.3, 6.4 and 6.6"""
    given, expected = SEVERAL[case]
    found = [judged(number, given).status.value for number in ("6.1", "6.2", "6.3", "6.4", "6.6")]
    assert " ".join(found).replace("not-applicable", "n-a") == expected


def test_what_comes_later_says_so() -> None:
    assert "comes later" in judged("6.1", of(2, 2)).summary
    assert "comes later" in judged("6.4", of(2, 2)).summary
    assert "catalogue" in judged("6.3", of(1, 2, TWO)).summary


def test_one_instance_that_would_do_is_told() -> None:
    result = judged("6.2", of(1, 2, TWO, strategy="MultiWorkerMirroredStrategy"))
    assert result.summary == ("2 instances train together (TF_CONFIG), with 1 accelerator each: 1 would do.")
    assert "tf.distribute.MirroredStrategy()" in result.fix
    assert ("strategy", "MultiWorkerMirroredStrategy") in [(fact.name, fact.value) for fact in result.facts]


def test_fewer_instances_are_told_where_one_is_not_enough() -> None:
    cluster = Cluster(instances=16, processes=16, told_by="SM_HOSTS")
    result = judged("6.2", of(1, 16, cluster))
    assert result.summary.endswith("with 1 accelerator each: 2 would do.")
    assert result.fix == "# 2 × an instance with 8 accelerators"


COMPRESSED = {
    "horovod.tensorflow.keras.Compression.fp16": Status.PASS,
    "horovod.tensorflow.compression.Compression.fp16": Status.PASS,
    "byteps.tensorflow.Compression.fp16": Status.PASS,
    "grace_dl.tensorflow.compressor.topk.TopKCompressor": Status.PASS,
    "bagua.torch_api.algorithms.bytegrad.ByteGradAlgorithm": Status.PASS,
    "horovod.tensorflow.Compression.none": Status.MANUAL,
    "horovod.tensorflow.Compression": Status.MANUAL,
    "horovod.tensorflow.DistributedOptimizer": Status.MANUAL,
    "zlib.Compression.fp16": Status.MANUAL,
    "tensorflow.distribute.experimental.CommunicationOptions": Status.MANUAL,
}


@pytest.mark.parametrize("name", COMPRESSED)
def test_gradient_compression(name: str) -> None:
    """6.6"""
    assert judged("6.6", of(2, 2, uses={name: "train.py:9"})).status == COMPRESSED[name]


def test_packing_is_told_and_is_no_compression() -> None:
    name = "tensorflow.distribute.experimental.CommunicationOptions"
    result = judged("6.6", of(2, 2, uses={name: "train.py:9"}))
    assert [fact.value for fact in result.facts] == [f"{name} (train.py:9)"]


def test_one_device_compresses_nothing_whatever_the_source_says() -> None:
    given = of(1, uses={"horovod.tensorflow.Compression.fp16": "train.py:9"})
    assert judged("6.6", given).status == Status.NOT_APPLICABLE


# 6.7 ------------------------------------------------------------------------------------------------


def evaluated(
    training: Epoch | None = None, validation: Epoch | None = None, form: str = "script", **fields: Any
) -> Evidence:
    uses = fields.pop("uses", {})
    job = program(form=form, training=training or Epoch(), validation=validation, **fields)
    return evidence(program=job, source=Source(uses=uses))


EVALUATION = {
    "none": (evaluated(), Status.PASS),
    "a factory has no fit to look at": (evaluated(form="factory"), Status.MANUAL),
    "builders have no fit to look at": (evaluated(form="builders"), Status.MANUAL),
    "a factory that is given validation data": (
        evaluated(Epoch(100), Epoch(100), form="factory"),
        Status.WARN,
    ),
    "a fifth of the data": (evaluated(Epoch(80, 32), Epoch(20, 32)), Status.PASS),
    "just under a tenth of the time": (evaluated(Epoch(100), Epoch(33)), Status.PASS),
    "just over a tenth of the time": (evaluated(Epoch(100), Epoch(34)), Status.WARN),
    "few large batches": (evaluated(Epoch(100, 32), Epoch(20, 128)), Status.WARN),
    "many small batches": (evaluated(Epoch(100, 128), Epoch(100, 32)), Status.PASS),
    "every fifth epoch": (
        evaluated(Epoch(100), Epoch(100), fit_arguments={"validation_freq": "5"}),
        Status.PASS,
    ),
    "in epochs that are listed": (
        evaluated(Epoch(100), Epoch(100), fit_arguments={"validation_freq": "list"}),
        Status.UNKNOWN,
    ),
    "training of unknown length": (evaluated(Epoch(), Epoch(100)), Status.UNKNOWN),
    "validation of unknown length": (evaluated(Epoch(100), Epoch()), Status.UNKNOWN),
    "no batch of training": (evaluated(Epoch(0), Epoch(100)), Status.UNKNOWN),
    "a task that evaluates": (
        evaluated(Epoch(100), Epoch(100), cluster=Cluster(has_evaluator=True, told_by="TF_CONFIG")),
        Status.PASS,
    ),
    "a process that evaluates": (
        evaluated(form="factory", uses={"tensorflow.keras.utils.SidecarEvaluator": "eval.py:3"}),
        Status.PASS,
    ),
    "the job is not known": (NO_JOB, Status.UNKNOWN),
}


@pytest.mark.parametrize("case", EVALUATION)
def test_evaluation_elsewhere(case: str) -> None:
    """6.7"""
    given, status = EVALUATION[case]
    assert judged("6.7", given).status == status


def test_the_share_is_called_an_estimate_and_the_advice_brings_it_under_the_threshold() -> None:
    result = judged("6.7", evaluated(Epoch(100), Epoch(100)))
    assert result.summary == "Validation takes 25 % of an epoch (an estimate)."
    assert result.fix == "model.fit(…, validation_freq=4)"
    after = evaluated(Epoch(100), Epoch(100), fit_arguments={"validation_freq": "4"})
    assert judged("6.7", after).status == Status.PASS
