"""The controlled changes under which a job is run: one decorated function ``Job -> Job`` each.

Nothing here imports TensorFlow: the functions only call methods of the objects they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from . import feeding, parallelism
from .errors import UsageError
from .job import VariedJob

Change = Callable[[VariedJob], VariedJob]


@dataclass(frozen=True)
class Variant:
    """``title`` and ``description`` come from the function's docstring.

    ``dtype_policy`` is set before the user's code runs. ``purpose`` says what it is for: to ``time`` its
    steps, to ``log`` their placement, to ``trace`` them, or to ``weigh`` the pipeline without any; only the
    first gives a rate. ``for_accelerators`` says that it is run without one only where it is asked for.
    """

    id: str
    title: str
    description: str
    change: Change
    dtype_policy: str | None = None
    purpose: str = "time"
    for_accelerators: bool = False


VARIANTS: dict[str, Variant] = {}


def variant(
    *, dtype_policy: str | None = None, purpose: str = "time", for_accelerators: bool = False
) -> Callable[[Change], Change]:
    """Register a change as a variant; the function's name with dashes is its id."""

    def register(change: Change) -> Change:
        identifier = change.__name__.replace("_", "-")
        title, _, description = (change.__doc__ or "").strip().partition("\n")
        VARIANTS[identifier] = Variant(
            id=identifier,
            title=title.rstrip("."),
            description=description.strip(),
            change=change,
            dtype_policy=dtype_policy,
            purpose=purpose,
            for_accelerators=for_accelerators,
        )
        return change

    return register


def plan(wanted: Iterable[str]) -> tuple[str, ...]:
    """The variants named in ``wanted``, in the order in which they run.

    The baseline always comes first, since everything is compared with it.
    Raises `UsageError` for a name that is no variant.
    """
    names = set(wanted)
    if unknown := sorted(names - VARIANTS.keys()):
        raise UsageError(f"There is no variant {unknown[0]!r}: choose from {', '.join(VARIANTS)}.")
    return tuple(name for name in VARIANTS if name == "baseline" or name in names)


@variant()
def baseline(job: VariedJob) -> VariedJob:
    """As you have it.

    Nothing is changed but the callbacks that write files, which are left out.
    """
    return job


@variant()
def cached_input(job: VariedJob) -> VariedJob:
    """Input from one cached batch.

    ``take(1).cache().repeat()`` before a trailing prefetch: what the model could do if its input cost
    nothing. The copy to the device is still paid.
    """
    return feeding.repeat_first_batch(job)


@variant()
def constant_batch(job: VariedJob) -> VariedJob:
    """One batch that lies on the device.

    No dataset and no copy to the device: what the model could do if its input were there already.
    """
    return feeding.constant_batch(job)


@variant()
def parallel_input(job: VariedJob) -> VariedJob:
    """Its input in parallel and ahead.

    ``num_parallel_calls=tf.data.AUTOTUNE`` for every map and interleave, and at the end
    ``prefetch(tf.data.AUTOTUNE)``, where the pipeline lacks them.
    """
    return parallelism.in_parallel(job)


@variant()
def source_cached(job: VariedJob) -> VariedJob:
    """Its source in memory.

    What the sources of the pipeline read is held in memory, a bounded number of elements; all that follows is
    done as before: what the job could do if its storage cost nothing.
    """
    return feeding.cache_sources(job)


@variant()
def input_only(job: VariedJob) -> VariedJob:
    """Input alone, no training.

    Keras's own loop over the data with a step that does nothing: what the pipeline can deliver.
    """
    return replace(job, trains=False, jit_compile=False)


@variant()
def source_cached_input_only(job: VariedJob) -> VariedJob:
    """Its source in memory, no training.

    What the pipeline can deliver if its storage costs nothing: fetching told apart from preprocessing.
    """
    return input_only(feeding.cache_sources(job))


@variant(for_accelerators=True)
def batch_x2(job: VariedJob) -> VariedJob:
    """Cached input in batches of twice the size.

    Whether the device has room and use for them; what the model learns from them is another matter.
    """
    return feeding.repeat_first_batch(job, times=2)


@variant(for_accelerators=True)
def batch_x4(job: VariedJob) -> VariedJob:
    """Cached input in batches of four times the size."""
    return feeding.repeat_first_batch(job, times=4)


@variant(dtype_policy="mixed_bfloat16")
def bfloat16(job: VariedJob) -> VariedJob:
    """Mixed precision with bfloat16."""
    return job


@variant(dtype_policy="mixed_float16")
def float16(job: VariedJob) -> VariedJob:
    """Mixed precision with float16.

    Keras scales the loss, as it does for any model compiled under this policy.
    """
    return job


@variant()
def xla(job: VariedJob) -> VariedJob:
    """Compiled with XLA (``jit_compile=True``)."""
    return replace(job, jit_compile=True)


@variant()
def no_xla(job: VariedJob) -> VariedJob:
    """Not compiled with XLA (``jit_compile=False``)."""
    return replace(job, jit_compile=False)


@variant(purpose="log")
def placement(job: VariedJob) -> VariedJob:
    """On which device each op runs.

    A few untimed steps with ``tf.debugging.set_log_device_placement``.
    """
    return job


@variant(purpose="weigh")
def weighed(job: VariedJob) -> VariedJob:
    """Its pipeline map by map.

    Without training, in one thread: what each map costs, and what XLA makes of it.
    """
    return job


@variant(purpose="trace")
def profiled(job: VariedJob) -> VariedJob:
    """Under the profiler.

    A few untimed steps with step markers that the profiler recognises.
    """
    return job
