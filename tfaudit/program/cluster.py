"""Who else trains the same model, told by the environment that launchers set."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..records import Cluster

#: Tasks of TF_CONFIG that train; ``ps`` holds variables, ``evaluator`` evaluates beside them.
TRAINING_TASKS = ("chief", "master", "worker")

#: How many processes there are in all, and how many of them on one instance: Open MPI's and Horovod's names.
PROCESS_COUNTS = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("HOROVOD_SIZE", "HOROVOD_LOCAL_SIZE"),
)


def read(variables: Mapping[str, str]) -> Cluster:
    """The cluster that this process is part of; one instance with one process where nothing tells of more."""
    if text := variables.get("TF_CONFIG"):
        return _of_tf_config(_parsed(text))
    for total, local in PROCESS_COUNTS:
        if text := variables.get(total):
            return _of_counts(total, text, variables.get(local, "1"))
    if text := variables.get("SM_HOSTS"):
        hosts = _parsed(text)
        count = len(hosts) if isinstance(hosts, list) else None
        return Cluster(instances=count, processes=count, told_by="SM_HOSTS")
    return Cluster()


def _of_tf_config(config: Any) -> Cluster:
    """TF_CONFIG lists a ``host:port`` for each task; tasks on the same host share an instance."""
    unreadable = Cluster(instances=None, processes=None, told_by="TF_CONFIG")
    if not isinstance(config, dict):
        return unreadable
    tasks, own = config.get("cluster") or {}, config.get("task") or {}
    if not isinstance(tasks, dict) or not isinstance(own, dict):
        return unreadable
    places = [place for task in TRAINING_TASKS for place in _places(tasks.get(task))]
    hosts = {place.rpartition(":")[0] or place for place in places}
    return Cluster(
        instances=max(1, len(hosts)),
        processes=max(1, len(places)),
        has_evaluator="evaluator" in (*tasks, own.get("type")),
        told_by="TF_CONFIG",
    )


def _places(addresses: Any) -> list[str]:
    """Addresses as a list, or by index as ``tf.train.ClusterSpec`` takes them, too."""
    listed = addresses.values() if isinstance(addresses, dict) else addresses
    return [str(each) for each in listed or ()] if not isinstance(listed, str) else [listed]


def _of_counts(variable: str, total: str, local: str) -> Cluster:
    if not (total.isdecimal() and local.isdecimal() and int(total) and int(local)):
        return Cluster(instances=None, processes=None, told_by=variable)
    return Cluster(instances=-(-int(total) // int(local)), processes=int(total), told_by=variable)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
