"""What to know about a trace before trusting its figures."""

from __future__ import annotations

from collections.abc import Iterator

from .hosts import HostView
from .names import Work
from .steps import Steps
from .summary import Health
from .tables import Trace

# Of the profiler's own remarks, so many are passed on.
REMARKS_SHOWN = 5
_CUPTI_FIX = (
    "give the process access to the GPU's counters (modprobe option "
    "NVreg_RestrictProfilingToAdminUsers=0, or --cap-add=SYS_ADMIN for a container) and check that "
    "libcupti is on the library path"
)


def examine(trace: Trace, host: HostView, steps: Steps) -> list[Health]:
    """Return the remarks on one file, warnings first."""
    remarks = [*_devices(trace, host), *_steps(steps), *_events(trace)]
    return sorted(remarks, key=lambda remark: remark.level != "warning")


def _note(kind: str, message: str) -> Health:
    return Health(kind=kind, level="info", message=message)


def _warning(kind: str, message: str) -> Health:
    return Health(kind=kind, level="warning", message=message)


def _devices(trace: Trace, host: HostView) -> Iterator[Health]:
    used = [plane for plane in trace.devices if len(plane.events)]
    unused = [plane.name for plane in trace.devices if not len(plane.events)]
    if not trace.devices:
        yield _note(
            "no-device",
            "The trace has no device plane: the job ran on the CPU, or the profiler could not see "
            f"the accelerator; on a GPU, {_CUPTI_FIX}.",
        )
    elif not used:
        yield _warning(
            "no-device-events",
            f"The trace has {len(unused)} device plane(s), but nothing ran on them while it was "
            f"recorded: profile later steps; if the GPU was at work, {_CUPTI_FIX}.",
        )
    elif unused:
        yield _note("unused-devices", f"Nothing ran on {', '.join(unused)} during the trace.")
    if not host.present:
        yield _warning(
            "no-host",
            "The trace has no host events: steps, waiting for input and the causes of gaps cannot be told.",
        )
    for plane in used:
        kinds = plane.events["kind"].to_numpy()
        if host.present and (kinds == Work.COPY).any():
            yield _note(
                "copies-without-direction",
                f"{int((kinds == Work.COPY).sum())} copies on {plane.name} do not tell their "
                "direction; they are counted under other.",
            )
        if plane.events["graphed"].any():
            yield _note(
                "cuda-graphs",
                f"{plane.name} runs CUDA graphs: one launch covers many kernels, so the cause of "
                "the gaps between them is uncertain.",
            )


def _steps(steps: Steps) -> Iterator[Health]:
    if not steps:
        yield _warning(
            "no-steps",
            "No step markers were found, so nothing can be said per step: wrap each step in "
            'tf.profiler.experimental.Trace("train", step_num=i, _r=1).',
        )
    elif not steps.rooted:
        yield _note(
            "markers-without-root",
            "The step markers lack _r=1 (as Keras 3 writes them): tfaudit uses them, XProf shows no steps.",
        )


def _events(trace: Trace) -> Iterator[Health]:
    if trace.damaged_events:
        yield _warning(
            "damaged-events",
            f"{trace.damaged_events} event(s) had impossible times and were left out.",
        )
    for remark in trace.remarks[:REMARKS_SHOWN]:
        yield _warning("profiler", f"The profiler reports: {remark.strip()[:300]}")
