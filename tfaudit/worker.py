"""One variant in one process: load the target, apply the variant, measure, and tell the runner."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import resource
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from . import failures, measure, target
from .feeding import fill_caches, is_dataset, keep_file_caches_in, trailing_prefetch
from .job import VariedJob
from .measure import StepProbe
from .program import callbacks, compression, placement, tuning
from .program import job as jobs
from .recorders import WARM_UP_STEPS, Logging, Timing, Tracing
from .records import Compression, Placement, VariantRequest, read
from .session import Channel, Done, Failed, Found, PhaseStarted, child_end
from .variants import VARIANTS, Variant
from .weighing import weigh

#: What the user's program finds in its environment. An audit touches no network and opens no window:
#: trackers are told to stay silent. GPU memory is taken as needed, so that several children fit.
ENVIRONMENT = {
    "CLEARML_OFFLINE_MODE": "1",
    "COMET_OFFLINE_MODE": "1",
    "MPLBACKEND": "Agg",
    "NEPTUNE_MODE": "debug",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    "WANDB_MODE": "disabled",
}


def main(folder: Path, descriptor: int) -> NoReturn:
    """Run the request in ``folder`` and end the process; what is told goes to ``descriptor``."""
    code = 1
    try:
        request = read(folder / "request.json", VariantRequest)
        code = Worker(request, child_end(descriptor)).run()
    finally:
        leave(code)


def leave(code: int) -> NoReturn:
    """End without running the user's ``finally`` blocks and exit handlers: they could save a model."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


class Worker:
    """Carries out one request."""

    def __init__(self, request: VariantRequest, channel: Channel) -> None:
        self.request = request
        self.channel = channel
        self.variant: Variant = VARIANTS[request.variant]
        self.loaded = False
        self.process = os.getpid()

    def run(self) -> int:
        """Load the target. A script's `measure` takes over from within its call of ``fit``."""
        name = self.request.target.name
        self._enter("load")
        try:
            prepare(self.request)
            set_up(self.variant, self.request.seed, self.request.launch)
            keep_file_caches_in(self.request.scratch)
            target.load(self.request.target, then=self.measure)
        except BaseException as error:
            return self._fail(failures.while_loading(error, name))
        return self._fail(failures.no_fit(name))

    def measure(self, job: VariedJob) -> NoReturn:
        """Measure the job and end the process, whatever happens."""
        if os.getpid() != self.process:
            self._fail(failures.fit_in_child_process())
            leave(1)
        if self.loaded:
            raise RuntimeError("fit was called again while the audit was running it.")
        self.loaded = True
        code = 1
        try:
            self._enter("build")
            self._measure(replace(job, form=self.request.target.kind))
            self.channel.send(Done())
            code = 0
        except BaseException as error:
            code = self._fail(failures.while_running(error))
        finally:
            leave(code)

    def _measure(self, job: VariedJob) -> None:
        kept, facts = callbacks.split(job.fit.get("callbacks"))
        job = replace(job, fit={**job.fit, "callbacks": kept})
        program = jobs.describe(job, facts)
        self.channel.send(Found(program=program, environment=jobs.environment()))
        if self.variant.purpose == "weigh":
            self._enter("weigh")
            self.channel.send(Found(weighed=weigh(job.dataset, program)))
            return
        given = job.dataset
        job = apply(self.variant, job)
        filled = fill_caches(job.dataset) if job.dataset is given and self.variant.purpose == "time" else None
        self.channel.send(Found(notes=job.notes or None, cache_filled=filled))
        probe = None
        if job.train_step is None:
            probe = StepProbe(job.model.train_step if job.trains else no_step, job.constant)
        recorder = self._recorder(job, probe)
        last = measure.train(job, recorder, probe)
        if isinstance(recorder, Tracing):
            recorder.stop()
        self._enter("finish")
        check_dtype_policy(self.variant, job)
        self.channel.send(
            Found(
                # Only now is a model built that Keras builds on its first batch.
                program=jobs.describe(job, facts, with_files=True) if self.variant.id == "baseline" else None,
                resolved=jobs.resolve(job),
                train_ops=jobs.graph_ops(probe.graph if probe else jobs.step_graph(job.train_step)),
                traces=measure.trace_count(job, probe),
                peak_device_bytes=jobs.peak_device_bytes(),
                peak_host_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT,
                placement=self._placement(),
                compression=self._compression(job),  # after the placement log was read
                tuned=tuning.chosen(last) if self.variant.id == "baseline" else None,
            )
        )

    def _recorder(self, job: VariedJob, probe: StepProbe | None) -> Timing | Logging | Tracing:
        if self.variant.purpose == "log":
            return Logging()
        if self.variant.purpose == "trace":
            return Tracing(self.channel, str(Path(self.request.folder) / "trace"))
        steps = WARM_UP_STEPS + buffered_batches(job)
        counted = probe.count() if probe and measure.counts_in_step(job) else None
        return Timing(self.channel, measure.sync_devices, steps, self.request.warm_up_s, counted)

    def _placement(self) -> Placement | None:
        if self.variant.purpose != "log":
            return None
        log = Path(self.request.folder) / "stderr.log"
        return placement.parse(log.read_text(errors="replace"))

    def _compression(self, job: VariedJob) -> Compression | None:
        if self.variant.purpose != "log" or not is_dataset(job.dataset):
            return None
        return compression.weigh(job.dataset)

    def _enter(self, phase: str) -> None:
        self.channel.send(PhaseStarted(name=phase))

    def _fail(self, failed: Failed) -> int:
        with contextlib.suppress(OSError):
            self.channel.send(failed)
        return 1


#: ``ru_maxrss`` counts KiB, on macOS bytes.
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


def prepare(request: VariantRequest) -> None:
    """Make this process one in which the user's program finds what it would find without tfaudit."""
    os.environ.update(ENVIRONMENT)
    os.environ["TMPDIR"] = request.scratch
    if importlib.util.find_spec("mlflow"):  # elsewhere a program may take the variable for a promise
        os.environ["MLFLOW_TRACKING_URI"] = Path(request.scratch, "mlruns").as_uri()
    tempfile.tempdir = None
    sys.dont_write_bytecode = True
    os.chdir(request.working_directory)


def set_up(variant: Variant, seed: int, launch: int) -> None:
    """What must be in force before the user's code runs: seeds, dtype policy, placement logging.

    Every launch has seeds of its own, also where the program sets them itself: two launches of the baseline
    then show how far the loss depends on them.
    """
    import keras
    import tensorflow as tf

    if keras.backend.backend() != "tensorflow":
        raise target.TargetError(
            "unsupported",
            f"Keras runs on {keras.backend.backend()} here: tfaudit measures Keras on TensorFlow"
            " (unset KERAS_BACKEND).",
        )
    keras.utils.set_random_seed(seed + launch)
    if launch:
        shift_seeds(launch)
    if variant.dtype_policy:
        keras.config.set_dtype_policy(variant.dtype_policy)
        if importlib.util.find_spec("tf_keras"):
            tf_keras = importlib.import_module("tf_keras")
            tf_keras.mixed_precision.set_global_policy(variant.dtype_policy)
    if variant.purpose == "log":
        tf.debugging.set_log_device_placement(True)


def shift_seeds(by: int) -> None:
    """Have the functions that set all of a program's seeds add to what they are given."""
    import tensorflow as tf

    names = ("keras.utils", "keras._tf_keras.keras.utils", "tf_keras.utils")
    modules = [
        importlib.import_module(name) for name in names if importlib.util.find_spec(name.split(".")[0])
    ]
    for module, name in [(tf.random, "set_seed"), *((module, "set_random_seed") for module in modules)]:
        original = getattr(module, name)
        setattr(module, name, lambda seed, original=original: original(seed + by))


def apply(variant: Variant, job: VariedJob) -> VariedJob:
    """The job as the variant wants it.

    Raises `tfaudit.failures.NotApplied` when Keras or the program itself refuses the change.
    """
    check_dtype_policy(variant, job)
    job = variant.change(job)
    if job.jit_compile is None or not job.trains:
        return job
    if job.train_step is not None:
        return replace(job, train_step=compiled(job.train_step, job.jit_compile))
    if job.jit_compile and job.model.run_eagerly:
        raise failures.NotApplied("The model runs eagerly (run_eagerly=True), which rules out XLA.")
    job.model.jit_compile = job.jit_compile
    if bool(job.model.jit_compile) != job.jit_compile:
        raise failures.NotApplied(
            "Keras turned XLA off for this model: one of its layers does not support it."
        )
    return job


def check_dtype_policy(variant: Variant, job: VariedJob) -> None:
    """Make sure that the dtype policy set before loading is the one that the layers got."""
    policy = jobs.dtype_policy(job.model)
    if variant.dtype_policy and policy and policy != variant.dtype_policy:
        raise failures.NotApplied(
            f"The program sets its own dtype policy ({policy}), which overrides {variant.dtype_policy}."
        )


def compiled(train_step: Any, jit_compile: bool) -> Any:
    """A hand-written train step as a ``tf.function`` with that ``jit_compile``."""
    import tensorflow as tf

    function = getattr(train_step, "python_function", train_step)
    if not jit_compile and function is train_step:
        return train_step  # eager already; compiling it to a graph would be another change
    return tf.function(function, jit_compile=jit_compile)


def no_step(data: Any) -> dict[str, Any]:
    """A train step that trains nothing."""
    import tensorflow as tf

    return {"loss": tf.constant(0.0)}


#: A prefetch of more batches than this is not drained before the clock starts.
MOST_DRAINED_BATCHES = 64


def buffered_batches(job: VariedJob) -> int:
    """Batches that a trailing prefetch filled while the first step compiled: free for a while."""
    buffer = trailing_prefetch(job.dataset) if is_dataset(job.dataset) else None
    return min(max(buffer or 0, 0), MOST_DRAINED_BATCHES)
