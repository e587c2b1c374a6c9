"""Running a job's own training loop, in the child, and reporting each step to a recorder."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

from .feeding import cardinality, is_dataset, is_distributed, replaced
from .job import VariedJob
from .recorders import Enough, Recorder

#: The entry that carries a batch's size through the logs that a Keras train step returns.
SAMPLES = "tfaudit_samples"


class StepProbe:
    """Stands around the model's train step: sizes each batch, counts traces, sees the graph's ops.

    With a ``constant`` batch every step is given that. A graph that uses an eager tensor takes it as an
    argument from where it lies, so that nothing is copied and nothing computed in advance.
    """

    def __init__(self, train_step: Callable[[Any], Any], constant: Any = None) -> None:
        self._train_step = train_step
        self._constant = constant
        #: Steps and samples of all calls, where asked for by `count`.
        self.counted: Any = None
        self.traces = 0
        self.graph: Any = None

    def count(self) -> Callable[[], tuple[int, int]]:
        """Count in the step itself; returns what tells steps and samples so far, once they are over."""
        import tensorflow as tf

        self.counted = tf.Variable([0, 0], dtype=tf.int64, trainable=False)

        def counted() -> tuple[int, int]:
            steps, samples = self.counted.numpy()
            return int(steps), int(samples)

        return counted

    def __call__(self, data: Any) -> Any:
        import tensorflow as tf

        if not tf.executing_eagerly():
            self.traces += 1
            self.graph = tf.compat.v1.get_default_graph()
        batch = data if self._constant is None else self._constant
        samples = _total(batch_size(batch))
        if self.counted is not None:
            given = [part for part in tf.nest.flatten(data, expand_composites=True) if tf.is_tensor(part)]
            with tf.control_dependencies(given):  # lest a call be counted that finds the data at its end
                self.counted.assign_add([1, tf.cast(samples, tf.int64)])
            return self._train_step(batch)
        logs = self._train_step(batch)
        if not isinstance(logs, dict):
            return logs
        return {**logs, SAMPLES: samples}


def counts_in_step(job: VariedJob) -> bool:
    """Whether a job's samples are best counted in its train step rather than told by its logs.

    Of several steps in one call only the last one's logs come out; and each number that comes out of a graph
    takes 15 µs per step, a count that stays in it next to nothing. On an accelerator that would be a copy to
    the device in each step.
    """
    import tensorflow as tf

    if job.train_step is not None or is_distributed(job.model):
        return False
    if int(getattr(job.model, "steps_per_execution", None) or 1) > 1:
        return True
    accelerated = any(device.device_type != "CPU" for device in tf.config.list_physical_devices())
    return not accelerated and not job.model.run_eagerly


def _total(samples: Any) -> Any:
    """Sum over replicas; Keras itself would report only the first replica's figure."""
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is not None and context.num_replicas_in_sync > 1:
        return context.all_reduce(tf.distribute.ReduceOp.SUM, samples)
    return samples


def batch_size(data: Any) -> Any:
    """The first dimension of a batch's first component: an int when eager, else a scalar tensor.

    Raises `TypeError` when no component has a first dimension.
    """
    import tensorflow as tf

    for component in tf.nest.flatten(data):
        if isinstance(component, tf.RaggedTensor):
            return tf.cast(component.nrows(), tf.int32)
        if isinstance(component, tf.SparseTensor):
            return tf.cast(component.dense_shape[0], tf.int32)
        if component is not None and len(getattr(component, "shape", ())) > 0:
            return int(component.shape[0]) if tf.executing_eagerly() else tf.shape(component)[0]
    raise TypeError("The batches have no first dimension to count samples by.")


def train(job: VariedJob, recorder: Any, probe: StepProbe | None = None) -> Any:
    """Run the job's loop until the recorder has `Enough` or the data has ended for good.

    Returns the iterator that it last took batches from; None when it got to none.
    """
    retired = Retired()
    with contextlib.suppress(Enough):
        if job.train_step is not None:
            _own_loop(job, recorder, retired)
        else:
            assert probe is not None
            _keras_loop(job, recorder, probe, retired)
        recorder.end_of_data()
    return retired.last


def _own_loop(job: VariedJob, recorder: Recorder, retired: Retired) -> None:
    assert job.train_step is not None
    while True:
        recorder.begin_epoch()
        batches = iter(job.dataset)
        retired.keep(batches)
        count = 0
        while True:
            with recorder.around_step():
                batch = next(batches, _END)
                if batch is _END:
                    break
                result = job.train_step(job.model, batch) if job.trains else None
            loss = result.get("loss") if isinstance(result, dict) else result
            recorder.after_step(1, batch_size(batch), loss)
            count += 1
        recorder.end_epoch()
        if count == 0:
            return


_END = object()


class Retired:
    """Keeps the iterators of past epochs from being destroyed.

    tf.data's iterator waits, when it is destroyed, for the thread that tunes it. That thread sleeps for
    longer the longer it has lived, up to a minute, and at times misses being woken (seen with TensorFlow
    2.21: steps of 10 to 60 s at an epoch's start, the main thread in ``RootDataset::Iterator``'s destructor,
    the other in ``Model::OptimizeLoop``). A frozen process ages while it does nothing, so this would weigh
    far more here than in the user's own run.
    """

    #: Epochs as short as to have more iterators than this are too short for them to sleep long.
    MOST = 64

    def __init__(self) -> None:
        self._iterators: list[Any] = []
        self.last: Any = None

    def keep(self, iterator: Any) -> None:
        """Hold on to an iterator in use, unless that was done before."""
        if iterator is not self.last and len(self._iterators) < self.MOST:
            self._iterators.append(iterator)
        self.last = iterator


def _keras_loop(job: VariedJob, recorder: Recorder, probe: StepProbe, retired: Retired) -> None:
    """Keras's own ``fit``, with its train function observed.

    The hook is the train function rather than a callback's ``on_train_batch_end``: a callback there
    makes Keras read every step's logs before the next step may start, and would slow what it times.
    """
    model = job.model
    assert job.original_fit is not None
    model.train_function = None
    # Metrics that no step ever updates cannot give a result, which Keras asks for at an epoch's end.
    silenced = {} if job.trains else {"get_metrics_result": dict}
    with replaced(model, train_step=probe, **silenced):
        _make_train_function(model)
        function = model.train_function
        steps_per_call = int(getattr(model, "steps_per_execution", None) or 1)
        steps_per_epoch = job.fit.get("steps_per_epoch") or cardinality(job.dataset)
        progress = _Progress()

        def observed(iterator: Any) -> Any:
            retired.keep(iterator)
            with recorder.around_step():
                logs = function(iterator)
            left = steps_per_epoch - progress.steps if steps_per_epoch else steps_per_call
            steps = max(1, min(steps_per_call, left))
            samples = None
            if probe.counted is None:
                if not isinstance(logs, dict) or SAMPLES not in logs:
                    raise TypeError(
                        "The model's train_step returns no dict of logs, so its samples cannot be counted."
                    )
                samples = logs.pop(SAMPLES)
                samples = samples if steps == 1 else samples * steps
            progress.steps += steps
            progress.total += steps
            recorder.after_step(steps, samples, logs.get("loss") if isinstance(logs, dict) else None)
            return logs

        model.train_function = observed
        arguments = {
            "epochs": 1,
            **job.fit,
            # With steps_per_epoch one iterator lasts through all epochs of a fit: let it last.
            # Keras 2 wants weights at a fit's end, which without training a model may not have.
            **({"epochs": _NEVER} if job.fit.get("steps_per_epoch") or _has_no_weights(job) else {}),
            # Validation runs between epochs, in no timed step; the audit need not wait for it.
            "validation_freq": _NEVER,
            "callbacks": _between_epochs(job, recorder, progress),
        }
        while True:
            before = progress.total
            try:
                job.original_fit(model, job.dataset, **arguments)
            except Exception:
                # Keras refuses a generator that the previous call of fit has used up.
                if hasattr(job.dataset, "__next__") and progress.total == before > 0:
                    return
                raise
            if progress.total == before:
                return


_NEVER = 1_000_000_000


def _has_no_weights(job: VariedJob) -> bool:
    return job.framework == "tf_keras" and not job.trains and is_dataset(job.dataset)


class _Progress:
    """Steps since the epoch began, and since the start."""

    steps = 0
    total = 0


def _make_train_function(model: Any) -> None:
    made = model.make_train_function()
    if model.train_function is None:  # Keras 2 returns it and leaves the assignment to fit
        model.train_function = made


def _between_epochs(job: VariedJob, recorder: Recorder, progress: _Progress) -> list[Any]:
    """The job's callbacks between two that tell the recorder when an epoch ends and when one begins.

    They have no batch hook, so that Keras stays asynchronous.
    """
    base = importlib.import_module(job.framework).callbacks.Callback

    class EpochEnd(base):  # type: ignore[misc, valid-type]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            recorder.end_epoch()

    class EpochBegin(base):  # type: ignore[misc, valid-type]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            progress.steps = 0
            recorder.begin_epoch()

    return [EpochEnd(), *job.fit.get("callbacks", ()), EpochBegin()]


def trace_count(job: VariedJob, probe: StepProbe | None) -> int | None:
    """How often the train step was traced into a graph; None when that cannot be known."""
    if probe is not None:
        return probe.traces
    count = getattr(job.train_step, "experimental_get_tracing_count", None)
    return None if count is None else int(count())


def sync_devices() -> None:
    """Wait until all devices have finished what they were given."""
    import tensorflow as tf

    tf.test.experimental.sync_devices()
