"""What is told of a trace: frozen records of plain numbers, ready to be written as JSON.

Times are milliseconds (``_ms``) from the earliest line of their file; ``_fraction`` is between 0
and 1; None means that the trace does not tell. This module imports neither pandas nor NumPy.
"""

from __future__ import annotations

from enum import Enum

from ..record import Record


class Cause(str, Enum):
    """Why a device idled, in the order in which causes are tried."""

    INPUT = "waiting for input"
    COPY = "synchronous copy or host read-back"
    COMPILATION = "compilation or autotuning"
    LAUNCH = "launch-bound"
    OTHER = "Python or other"
    GRAPH = "uncertain: one launch covers many kernels"  # CUDA graphs, XLA command buffers
    UNKNOWN = "unknown: no host events"


class Gap(Record, frozen=True):
    """A stretch in which nothing ran on the device. ``step`` is None outside the steps."""

    start_ms: float
    duration_ms: float
    step: int | None
    cause: Cause


class IdleCause(Record, frozen=True):
    """All gaps of one cause, the unlisted short ones too."""

    cause: Cause
    count: int
    duration_ms: float


class Copies(Record, frozen=True):
    """The copies of one direction.

    ``busy_ms`` is the union of their time; ``exposed_ms`` the part of it in which no kernel ran;
    ``bytes`` counts those ``count - unsized_count`` copies whose size the trace tells, and
    ``gb_per_s`` is these bytes over their time. ``pageable_*`` is None where the trace does not say
    what memory was copied from or to. ``mid_step_count`` are those that lie between two kernels of
    one step; None without steps.
    """

    count: int
    bytes: int
    busy_ms: float
    exposed_ms: float
    gb_per_s: float | None
    unsized_count: int
    largest_bytes: int
    pageable_count: int | None
    pageable_bytes: int | None
    synchronous_count: int
    mid_step_count: int | None


class Copy(Record, frozen=True):
    """One copy. ``direction`` is ``h2d``, ``d2h``, ``d2d`` or ``other``, ``op`` what asked for it."""

    direction: str
    start_ms: float
    duration_ms: float
    bytes: int | None
    pageable: bool | None
    step: int | None
    op: str


class CopySummary(Record, frozen=True):
    """Copies by direction; ``other`` are those whose direction the trace does not tell."""

    h2d: Copies
    d2h: Copies
    d2d: Copies
    other: Copies
    longest: tuple[Copy, ...] = ()


class Op(Record, frozen=True):
    """All events of one name. ``time_ms`` is self time: what nested events took is theirs.

    ``op`` is the framework op behind most of that time. ``kind`` is ``kernel``, ``collective`` or a
    direction of copies. ``sixteen_bit`` is None where the name tells no type.
    """

    name: str
    op: str
    kind: str
    count: int
    time_ms: float
    share_fraction: float
    sixteen_bit: bool | None
    tensor_core: bool
    changes_layout: bool


class Collectives(Record, frozen=True):
    """Communication between devices. ``exposed_ms`` is what no other kernel overlapped.

    ``tail_fraction`` is the share of their time in the last quarter of the step: near 1, gradients
    are exchanged only when the backward pass is over. None without steps or collectives.
    """

    count: int
    busy_ms: float
    exposed_ms: float
    overlapped_fraction: float | None
    tail_fraction: float | None


class Precision(Record, frozen=True):
    """Number types and matrix units, told from the names of kernels.

    Fractions are of ``kernel_ms``, the summed time of kernels without collectives and copies.
    ``untold_fraction`` is the share of kernels whose names state no type.
    """

    kernel_ms: float
    sixteen_bit_fraction: float | None
    tensor_core_fraction: float | None
    untold_fraction: float | None


class Device(Record, frozen=True):
    """One device plane. A plane without events has zeros, and None for what cannot be told.

    ``span_ms`` runs from the first event to the last; idleness before and after is not counted.
    ``busy_ms`` is the union of kernels and copies over all streams, ``kernel_busy_ms`` of kernels.
    ``gaps`` lists the longest, by start; ``idle_causes`` sums all of them. ``small_kernel_*`` are
    kernels under 20 us, as a share of their number and of their summed time.
    """

    plane: str
    host: str
    events: int
    span_ms: float
    busy_ms: float
    kernel_busy_ms: float
    idle_fraction: float | None
    longest_gap_ms: float | None
    gap_count: int
    gaps: tuple[Gap, ...]
    idle_causes: tuple[IdleCause, ...]
    copies: CopySummary
    top_ops: tuple[Op, ...]
    small_kernel_count: int
    small_kernel_fraction: float | None
    small_kernel_time_fraction: float | None
    collectives: Collectives
    precision: Precision
    model: str | None = None
    vendor: str | None = None
    core_count: int | None = None
    memory_bytes: int | None = None
    compute_capability: str | None = None


class HostOp(Record, frozen=True):
    """All events of one op on the host's executor threads; ``time_ms`` is self time."""

    name: str
    count: int
    time_ms: float


class Host(Record, frozen=True):
    """The host plane of one file.

    ``input_wait_ms`` is the union of the time in which IteratorGetNext was being waited for,
    ``executor_ms`` of that in which ops ran on executor threads.
    """

    host: str
    source: str
    events: int
    span_ms: float
    input_wait_ms: float
    executor_ms: float
    compilation_ms: float
    top_ops: tuple[HostOp, ...]
    top_input_ops: tuple[HostOp, ...]


class Step(Record, frozen=True):
    """One step, split into parts that sum to ``duration_ms``.

    The split is that of ``device``, the busiest in this step (None: no device, then compute is the
    ops of the executor). What overlaps counts once: compute before communication before copies
    before waiting for input before launching. ``copy_ms`` is thus the copies that nothing hid.
    ``idle_fraction`` is the share in which the device did nothing.
    """

    step: int
    name: str
    host: str
    device: str | None
    start_ms: float
    duration_ms: float
    input_wait_ms: float
    copy_ms: float
    launch_ms: float
    compute_ms: float
    communication_ms: float
    other_ms: float
    idle_fraction: float | None


class Health(Record, frozen=True):
    """Something to know before trusting the figures. ``level`` is ``info`` or ``warning``."""

    kind: str
    level: str
    message: str


def plane_number(plane: str) -> int | None:
    """The device's number in its plane's name: 3 of ``/device:GPU:3``."""
    number = plane.rpartition(":")[2]
    return int(number) if number.isascii() and number.isdigit() else None


class TraceSummary(Record, frozen=True):
    """Everything told of a trace, over all its files: numbers and names only."""

    sources: tuple[str, ...]
    hosts: tuple[Host, ...]
    devices: tuple[Device, ...]
    steps: tuple[Step, ...]
    health: tuple[Health, ...]


# --------------------------------------------------------------------------------------------------


class Interval(Record, frozen=True):
    """A stretch of one lane of a timeline. ``kind`` is what it is coloured by."""

    start_ms: float
    duration_ms: float
    kind: str
    name: str
    count: int = 1


class Lane(Record, frozen=True):
    """What is drawn in one row; ``busy_ms`` is its exact time, of which ``intervals`` show what is seen."""

    name: str
    intervals: tuple[Interval, ...]
    busy_ms: float = 0.0


class Timeline(Record, frozen=True):
    """One step (or, without steps, the whole span) of one device: what ran when, and why it idled.

    Times count from the start of the window. Neighbours of one kind are merged where they would
    be drawn on top of each other. Lanes: compute, communication, copies, idle by cause, and the host's.
    """

    host: str
    device: str | None
    step: int | None
    start_ms: float
    duration_ms: float
    lanes: tuple[Lane, ...]


class XprofVerdict(Record, frozen=True):
    """What XProf says of the same file. ``error`` says why there is nothing, otherwise None.

    ``*_fraction`` are shares of the step time. ``classification`` is its input-bound sentence,
    ``recommendation`` the advice of its overview page.
    """

    error: str | None = None
    version: str | None = None
    steps: int | None = None
    step_ms: float | None = None
    input_fraction: float | None = None
    output_fraction: float | None = None
    launch_fraction: float | None = None
    other_fraction: float | None = None
    compute_16bit_fraction: float | None = None
    classification: str = ""
    recommendation: str = ""
    diagnostics: tuple[str, ...] = ()


class TraceEvidence(Record, frozen=True):
    """All that is kept of a trace: its summary, or one sentence on why there is none.

    ``timeline`` is the representative step's, ``xprof`` the profiler's own verdict where it was asked.
    """

    bytes: int = 0
    summary: TraceSummary | None = None
    problem: str = ""
    timeline: Timeline | None = None
    xprof: XprofVerdict | None = None
