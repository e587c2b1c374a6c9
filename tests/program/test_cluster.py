"""Who else trains, by what launchers put into the environment."""

from __future__ import annotations

import json

import pytest

from tfaudit.program.cluster import read
from tfaudit.records import Cluster


def config(task: str = "worker", **cluster: object) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": task, "index": 0}})}


def of(instances: int | None, processes: int | None, told_by: str, has_evaluator: bool = False) -> Cluster:
    return Cluster(instances=instances, processes=processes, told_by=told_by, has_evaluator=has_evaluator)


CASES = {
    "nothing": ({}, Cluster()),
    "an empty TF_CONFIG": ({"TF_CONFIG": ""}, Cluster()),
    "two workers": (config(worker=["a:1", "b:1"]), of(2, 2, "TF_CONFIG")),
    "a chief and two workers": (config(chief=["a:1"], worker=["b:1", "c:1"]), of(3, 3, "TF_CONFIG")),
    "parameter servers do not train": (config(worker=["a:1"], ps=["b:1", "c:1"]), of(1, 1, "TF_CONFIG")),
    "two workers on one host": (config(worker=["localhost:1", "localhost:2"]), of(1, 2, "TF_CONFIG")),
    "an IPv6 address": (config(worker=["[::1]:1", "[::2]:1"]), of(2, 2, "TF_CONFIG")),
    "workers by index": (config(worker={"0": "a:1", "1": "b:1"}), of(2, 2, "TF_CONFIG")),
    "an evaluator": (config(worker=["a:1"], evaluator=["b:1"]), of(1, 1, "TF_CONFIG", True)),
    "it is the evaluator": (config("evaluator", worker=["a:1"]), of(1, 1, "TF_CONFIG", True)),
    "only a task": ({"TF_CONFIG": '{"task": {"type": "worker"}}'}, of(1, 1, "TF_CONFIG")),
    "no JSON": ({"TF_CONFIG": "worker"}, of(None, None, "TF_CONFIG")),
    "a list": ({"TF_CONFIG": "[]"}, of(None, None, "TF_CONFIG")),
    "a cluster that is none": ({"TF_CONFIG": '{"cluster": [1]}'}, of(None, None, "TF_CONFIG")),
    "Open MPI on two instances": (
        {"OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"},
        of(2, 8, "OMPI_COMM_WORLD_SIZE"),
    ),
    "Horovod on one instance": ({"HOROVOD_SIZE": "4", "HOROVOD_LOCAL_SIZE": "4"}, of(1, 4, "HOROVOD_SIZE")),
    "a count that is none": ({"HOROVOD_SIZE": "many"}, of(None, None, "HOROVOD_SIZE")),
    "SageMaker with two hosts": ({"SM_HOSTS": '["algo-1", "algo-2"]'}, of(2, 2, "SM_HOSTS")),
    "SageMaker with one": ({"SM_HOSTS": '["algo-1"]'}, of(1, 1, "SM_HOSTS")),
    "hosts that are no list": ({"SM_HOSTS": "algo-1"}, of(None, None, "SM_HOSTS")),
    "TF_CONFIG goes before": (
        {**config(worker=["a:1", "b:1"]), "SM_HOSTS": '["algo-1"]'},
        of(2, 2, "TF_CONFIG"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_cluster(case: str) -> None:
    variables, cluster = CASES[case]
    assert read(variables) == cluster
