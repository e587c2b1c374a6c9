"""Facts on a captured job. Runs in the child, with the user's TensorFlow."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..feeding import is_dataset
from ..job import VariedJob
from ..machine import installed_version
from ..records import CallbackFact, Device, Program, Resolved, Stage, VariantEnvironment
from . import cluster, epochs, files, kernels, pipeline, sagemaker

#: Packages whose versions belong in a report. TensorBoard comes with TensorFlow before 2.21 only.
PACKAGES = ("keras", "tf_keras", "numpy", "tensorboard", "tb-nightly")


def describe(
    job: VariedJob,
    callbacks: list[CallbackFact],
    variables: Mapping[str, str] = os.environ,
    root: Path = Path("/"),
    *,
    with_files: bool = False,
) -> Program:
    """What can be told of a job before it runs, by itself and by the environment that it runs in.

    ``with_files`` also looks for the files that it reads, which may take a second or two.
    """
    model, stages = job.model, _stages(job.dataset)
    return Program(
        form=job.form,
        model_class=type(model).__name__,
        model_name=str(getattr(model, "name", "")),
        parameters=_parameters(model),
        layers=_count(getattr(model, "layers", None)),
        data_kind=data_kind(job.dataset),
        element_spec=pipeline.element_spec(job.dataset) if is_dataset(job.dataset) else (),
        cardinality=int(job.dataset.cardinality()) if is_dataset(job.dataset) else None,
        pipeline=stages,
        callbacks=tuple(callbacks),
        fit_arguments={name: _short(value) for name, value in job.fit.items() if name != "callbacks"},
        location=job.location,
        training=epochs.training(job.dataset, job.fit, stages),
        validation=epochs.validation(job.dataset, job.fit, _stages(job.fit.get("validation_data"))),
        strategy=strategy(model),
        cluster=cluster.read(variables),
        channels=sagemaker.channels(variables, root),
        kernels=kernels.kernels(model),
        options=pipeline.options(job.dataset) if is_dataset(job.dataset) else {},
        files=files.read(job.dataset) if with_files and is_dataset(job.dataset) else None,
    )


def _stages(data: Any) -> tuple[Stage, ...]:
    return pipeline.stages(data) if is_dataset(data) else ()


def strategy(model: Any) -> str:
    """The class of the distribution strategy that a model was made under; empty for the default one."""
    import tensorflow as tf

    found = getattr(model, "distribute_strategy", None) or tf.distribute.get_strategy()
    name = type(found).__name__
    return "" if name.startswith("_Default") else name


def data_kind(data: Any) -> str:
    """One word for what ``fit`` is fed with, as in `Program.data_kind`."""
    if is_dataset(data):
        return "tf.data"
    names = {kind.__name__ for kind in type(data).__mro__}
    if names & {"PyDataset", "Sequence"} and hasattr(data, "__getitem__"):
        return "PyDataset"
    if hasattr(data, "__next__"):
        return "generator"
    if isinstance(data, (list, tuple, Mapping)) or hasattr(data, "shape"):
        return "arrays"
    return type(data).__name__


def _parameters(model: Any) -> int | None:
    try:
        return int(model.count_params())
    except Exception:
        return None  # not built yet, or no Keras model


def _count(values: Any) -> int | None:
    return len(values) if isinstance(values, (list, tuple)) else None


def _short(value: Any) -> str:
    if isinstance(value, (int, float, str, bool)) or value is None:
        return repr(value)[:80]
    return type(value).__name__


def resolve(job: VariedJob) -> Resolved:
    """The configuration that is in force once the train function has been built."""
    model, framework = job.model, job.framework
    if job.train_step is not None:
        return Resolved(
            jit_compile=_compiled_by_xla(job.train_step),
            dtype_policy=dtype_policy(model),
            run_eagerly=not hasattr(job.train_step, "get_concrete_function"),
            framework=framework,
        )
    requested = _compile_config(model).get("jit_compile", "")
    return Resolved(
        jit_compile=bool(getattr(model, "jit_compile", False)),
        jit_compile_requested=str(requested),
        dtype_policy=dtype_policy(model),
        run_eagerly=bool(model.run_eagerly),
        steps_per_execution=int(getattr(model, "steps_per_execution", None) or 1),
        optimizer=type(model.optimizer).__name__,
        replicas=int(model.distribute_strategy.num_replicas_in_sync),
        framework=framework,
    )


def _compile_config(model: Any) -> Mapping[str, Any]:
    config = getattr(getattr(model, "_compile_config", None), "config", None)
    return config if isinstance(config, Mapping) else {}


def _compiled_by_xla(train_step: Any) -> bool:
    return bool(getattr(train_step, "_jit_compile", False))


def dtype_policy(model: Any) -> str:
    """The dtype policy of most layers that hold weights; ties go to the first."""
    flatten = getattr(model, "_flatten_layers", None)
    layers = list(flatten(include_self=True)) if flatten else []
    policies = Counter(
        str(getattr(policy, "name", policy))
        for layer in layers
        if getattr(layer, "_trainable_variables", None) or getattr(layer, "_trainable_weights", None)
        if (policy := getattr(layer, "dtype_policy", None) or getattr(layer, "_dtype_policy", None))
    )
    return policies.most_common(1)[0][0] if policies else ""


def step_graph(train_step: Any) -> Any:
    """The graph of a hand-written train step's first trace; None when it is no ``tf.function``."""
    traced: list[Any] = getattr(train_step, "_list_all_concrete_functions", list)()
    return traced[0].graph if traced else None


def graph_ops(graph: Any) -> dict[str, int]:
    """Op types of a traced train step, loop bodies and called functions included, with their counts."""
    if graph is None:
        return {}
    counts = Counter(operation.type for operation in graph.get_operations())
    for function in getattr(graph, "_functions", {}).values():
        definition = getattr(function, "function_def", None)
        counts.update(node.op for node in getattr(definition, "node_def", ()))
    return dict(sorted(counts.items()))


def environment() -> VariantEnvironment:
    """Versions and devices of this process; asking for the devices initialises them."""
    import platform

    import tensorflow as tf

    versions = {"python": platform.python_version()}
    versions |= {name: version for name in PACKAGES if (version := installed_version(name))}
    versions["tensorflow"] = tf.__version__
    return VariantEnvironment(versions=versions, devices=tuple(_devices()))


def _devices() -> list[Device]:
    import tensorflow as tf

    devices = []
    for device in tf.config.list_physical_devices():
        details = tf.config.experimental.get_device_details(device)
        capability = details.get("compute_capability")
        devices.append(
            Device(
                name=device.name,
                kind=device.device_type,
                description=str(details.get("device_name", "")),
                compute_capability=".".join(map(str, capability)) if capability else None,
            )
        )
    return devices


def peak_device_bytes() -> int | None:
    """The largest memory in use on the first GPU so far; None without one."""
    import tensorflow as tf

    if not tf.config.list_logical_devices("GPU"):
        return None
    return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])
