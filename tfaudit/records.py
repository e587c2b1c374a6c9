"""The documents on disk: frozen structs whose field names carry their units.

``plan.json`` is a `Plan`, ``variants/<id>/request.json`` a `VariantRequest`,
``variants/<id>/result.json`` a `VariantResult`, ``evidence.json`` an
`tfaudit.evidence.Evidence` and ``report.json`` a `Report`.
Raw measurements are kept; statistics are computed when a document is read.
"""

from __future__ import annotations

import math
import os
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from .errors import UsageError
from .record import Record as Record
from .trace.summary import TraceEvidence

SCHEMA_VERSION = "1"

#: What a person may say of a check: it is in order, it is not, or the question does not arise.
Said = Literal["yes", "no", "n-a"]

T = TypeVar("T")


class Status(str, Enum):
    """The outcome of one check."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    NOT_APPLICABLE = "not-applicable"
    UNKNOWN = "unknown"
    MANUAL = "manual"
    ERROR = "error"


# --------------------------------------------------------------------------------------------------
# What is asked of a run


class Target(Record, frozen=True):
    """What the user pointed tfaudit at.

    ``kind`` is ``script``, ``module`` (run with ``python -m``), ``factory`` or ``builders``
    (``build_model`` and ``build_dataset``).
    """

    kind: str
    path: str
    name: str
    factory: str | None = None
    is_file: bool = True
    arguments: tuple[str, ...] = ()
    commit: str | None = None


class Settings(Record, frozen=True):
    """The limits of a run, the same for every variant.

    ``time_budget_s`` is for the timed steps of all variants together; None leaves ``steps`` to limit them.
    ``warm_up_s`` is the shortest time between the first step and the clock's start. Every timed variant is
    started ``launches`` times. Steps that begin within ``settle_s`` of a pause are slower, caches having gone
    to others, and count as those after them. ``shortest_block_s``: between a block's end and the freeze a
    pipeline may run ahead of the clock for a millisecond or two, which must not count.
    """

    steps: int | None = None
    time_budget_s: float | None = 24.0
    launches: int = 2
    phase_timeout_s: float = 300.0
    warm_up_s: float = 0.5
    settle_s: float = 0.06
    shortest_block_s: float = 0.1
    seed: int = 0


class Tie(Record, frozen=True):
    """A place in the source that binds the program to one kind of machine.

    ``kind`` is ``device`` (one is named or picked by its number), ``count`` (so many are assumed), ``cuda``
    (it runs with CUDA only) or ``dtype`` (a floating type that not every device computes in).
    """

    kind: str
    text: str
    place: str


class Source(Record, frozen=True):
    """What the target's file and the project's modules that it imports say, read without running them.

    ``imports`` are module names, relative ones with their dots, ``calls`` dotted names as written
    (``keras.callbacks.EarlyStopping``), ``uses`` the full names of what is used of installed packages,
    whatever it is called there (``tensorflow.device``), all with the ``file:line`` of the first place.
    ``ties`` bind the program to one kind of machine. ``throughput`` is the first place whose text speaks of
    samples (images, tokens, …) per second; ``stops`` the first that sets a model's ``stop_training``.
    """

    imports: dict[str, str] = {}
    calls: dict[str, str] = {}
    uses: dict[str, str] = {}
    ties: tuple[Tie, ...] = ()
    throughput: str | None = None
    stops: str | None = None
    files: tuple[str, ...] = ()

    def first_use(self, *names: str) -> tuple[str, str] | None:
        """The first full name that is one of those, or lies within one, with its place; None without any."""
        for full, place in self.uses.items():
            if any(full == name or full.startswith(f"{name}.") for name in names):
                return full, place
        return None


class Device(Record, frozen=True):
    """One device as TensorFlow lists it."""

    name: str
    kind: str
    description: str = ""
    compute_capability: str | None = None

    @property
    def is_accelerator(self) -> bool:
        return self.kind not in ("CPU", "XLA_CPU")


class Environment(Record, frozen=True):
    """The machine and the versions a report rests on; devices as the children saw them."""

    machine: str
    os: str
    cpu: str
    cores: int
    memory_bytes: int
    devices: tuple[Device, ...]
    versions: dict[str, str]


class StoredKind(Record, frozen=True):
    """Files of one kind in a folder; ``old_bytes`` is what those hold that were not written for a month."""

    kind: str
    count: int
    bytes: int
    old_bytes: int
    newest_days: float
    oldest_days: float


class Stored(Record, frozen=True):
    """What a folder holds that was named with ``--storage``.

    ``old_folders`` has the bytes of old checkpoints, models and logs in the folders that hold most of them;
    ``is_complete`` is False where looking took too long.
    """

    path: str
    kinds: tuple[StoredKind, ...] = ()
    old_folders: dict[str, int] = {}
    is_complete: bool = True


class Plan(Record, frozen=True):
    """What `tfaudit run` set out to do, written before the first child starts."""

    target: Target
    working_directory: str
    variants: tuple[str, ...]
    checks: tuple[str, ...]
    settings: Settings
    source: Source
    machine: Environment
    usd_per_hour: float | None = None
    storage: tuple[Stored, ...] = ()
    tfaudit_version: str = ""
    started_at: str = ""


class VariantRequest(Record, frozen=True):
    """All that a child process is told. Each ``launch`` of a variant, counted from 0, has its own seed."""

    variant: str
    target: Target
    working_directory: str
    folder: str
    scratch: str
    seed: int
    warm_up_s: float
    launch: int = 0


# --------------------------------------------------------------------------------------------------
# What was measured


class Failure(Record, frozen=True):
    """Why a variant did not end normally.

    ``kind`` is one word for programs: ``import``, ``missing``, ``raised``, ``returned``, ``no-fit``,
    ``exited``, ``no-data``, ``data-ended``, ``memory``, ``timed-out``, ``killed``, ``no-result``,
    ``not-applied``, ``unsupported``, ``lost``, ``interrupted`` or ``not-run``. ``message`` is the sentence
    for people; ``detail`` is their traceback or the tail of the child's stderr.
    """

    phase: str
    kind: str
    message: str
    detail: str = ""
    exit_code: int | None = None
    signal: str | None = None

    @property
    def is_inapplicable(self) -> bool:
        """Whether the change makes no sense here, which says something of the program, not of the audit."""
        return self.kind in ("not-applied", "unsupported")

    @property
    def blames_target(self) -> bool:
        """Whether the target itself is at fault, so that every other variant would fail like this one."""
        if self.is_inapplicable or self.kind in ("interrupted", "not-run", "lost"):
            return False
        return self.phase == "load" or self.kind == "no-data"


class Phase(Record, frozen=True):
    """A stretch of a child's life: start, load, build, warm-up, measure, trace, finish."""

    name: str
    duration_s: float


class DeviceUsage(Record, frozen=True):
    """What NVML said of one GPU during a block; None for what it did not say.

    ``utilisation_fraction`` is the share of the time in which any kernel ran, whoever's; it and ``power_w``
    are means. Memory used is that of all processes, at its largest, as is the temperature. ``throttled``
    says in words why the driver held back the clocks.
    """

    name: str
    utilisation_fraction: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttled: tuple[str, ...] = ()


class Usage(Record, frozen=True):
    """What the machine did while a block was measured; None where that cannot be known.

    ``busy_core_s`` has an entry for each core that the job may run on: the time in which it was neither idle
    nor waiting for a disk, whoever kept it busy. ``iowait_core_s`` sums the waiting over these cores.
    ``core_limit`` is how many of them the job may use at once, fewer where a container has a quota.
    ``job_*`` are of the child and its descendants, disk and network bytes of the whole machine, the network's
    without loopback. Memory is that at the block's end.
    """

    duration_s: float
    busy_core_s: tuple[float, ...] = ()
    iowait_core_s: float | None = None
    core_limit: float | None = None
    job_cpu_s: float | None = None
    job_memory_bytes: int | None = None
    available_memory_bytes: int | None = None
    disk_read_bytes: int | None = None
    disk_written_bytes: int | None = None
    network_sent_bytes: int | None = None
    network_received_bytes: int | None = None
    devices: tuple[DeviceUsage, ...] = ()


class Block(Record, frozen=True):
    """Consecutive timed steps, between two moments at which the device had finished its work.

    ``step_ns`` has one entry per call of Keras's train function (``steps_per_execution`` steps);
    what passes between epochs (end-of-epoch callbacks) is left out of it and of ``duration_ns``, its sum.
    ``settling_ns`` are the first of them as they were, slower after a pause; in ``step_ns`` they take what
    steps take otherwise. ``epoch_starts`` are the places of first steps of epochs.
    ``losses`` holds the loss after the steps whose number, counted from the process's first, is a power of
    two, None where it is no number. Blocks of different variants with the same ``launch`` and ``round`` were
    measured one after another; ``usage`` is what the machine did meanwhile.
    """

    steps: int
    samples: int
    duration_ns: int
    step_ns: tuple[int, ...]
    settling_ns: tuple[int, ...] = ()
    epoch_starts: tuple[int, ...] = ()
    loss: float | None = None
    losses: dict[int, float | None] = {}
    launch: int = 0
    round: int = 0
    usage: Usage | None = None


class WarmUp(Record, frozen=True):
    """The steps before steady state: the first, which traces and compiles, apart from the others."""

    first_step_ns: int
    step_ns: tuple[int, ...]
    losses: dict[int, float | None] = {}


class CallbackFact(Record, frozen=True):
    """A callback given to ``fit``: kept, or left out of every variant with the reason.

    ``options`` holds those of its settings that a check reads.
    """

    name: str
    module: str
    bases: tuple[str, ...]
    kept: bool
    reason: str = ""
    options: dict[str, str] = {}


class Work(Record, frozen=True):
    """What the function of a stage does to each element, as its graph and TensorFlow's registries tell.

    ``ops`` are the types of all its ops, called functions included; ``random`` those that draw numbers,
    ``stateful`` others that keep state, run Python or act on the outside. ``not_on_accelerator`` and
    ``not_in_xla`` are the ops without a kernel for a GPU and without one of XLA's, None where no registry
    tells; ``compiled`` says that XLA compiles some of it. Bytes are of one element before and after, None
    where its size varies.
    """

    ops: tuple[str, ...] = ()
    random: tuple[str, ...] = ()
    stateful: tuple[str, ...] = ()
    not_on_accelerator: tuple[str, ...] | None = None
    not_in_xla: tuple[str, ...] | None = None
    compiled: bool = False
    bytes_in: int | None = None
    bytes_out: int | None = None

    @property
    def is_deterministic(self) -> bool:
        """Whether the same element always gives the same."""
        return not self.random and not self.stateful


class Stage(Record, frozen=True):
    """One stage of the tf.data pipeline, listed from the source to the end.

    ``op`` is named as the method of ``tf.data.Dataset`` that made it. ``num_parallel_calls`` is None
    where the stage runs serially, -1 for AUTOTUNE. ``location`` is the user's function as
    ``file:line``; ``inside`` the op of the stage whose function builds this one; ``python`` says that
    the stage calls back into the Python interpreter for every element. ``work`` is what its function does,
    ``after`` the stages that feed it, directly or not, and ``before`` those that it feeds, by their ``op`` in
    the order of the pipeline; ``after_varying`` says that one before it may give something else every time,
    another order aside. ``elements`` counts what it gives in an epoch, -1 for no end, None where unknown, and
    ``element`` describes one as `Program.element_spec` does. ``deterministic`` is what the stage was told of
    keeping the order, None where nothing. ``is_own`` is False for what TensorFlow adds to what was asked for.
    """

    op: str
    function: str | None = None
    location: str | None = None
    num_parallel_calls: int | None = None
    buffer_size: int | None = None
    batch_size: int | None = None
    drop_remainder: bool | None = None
    inside: str | None = None
    python: bool = False
    work: Work | None = None
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after_varying: bool = False
    elements: int | None = None
    element: tuple[str, ...] = ()
    deterministic: bool | None = None
    is_own: bool = True


class Resolved(Record, frozen=True):
    """The configuration that was really in force, read from the model after ``fit`` had built it."""

    jit_compile: bool | None = None
    jit_compile_requested: str = ""
    dtype_policy: str = ""
    run_eagerly: bool | None = None
    steps_per_execution: int = 1
    optimizer: str = ""
    replicas: int = 1
    framework: str = ""


class Epoch(Record, frozen=True):
    """One pass over training or validation data; None for what is not known beforehand."""

    batches: int | None = None
    batch_size: int | None = None


class Cluster(Record, frozen=True):
    """Who else trains the same model, by the environment variable in ``told_by``; empty where none tells.

    ``instances`` counts machines or containers, ``processes`` all that train in them; None where the variable
    cannot be read. ``has_evaluator`` says that a task of its own evaluates.
    """

    instances: int | None = 1
    processes: int | None = 1
    has_evaluator: bool = False
    told_by: str = ""


class Channel(Record, frozen=True):
    """One input channel of a SageMaker training job.

    ``mode`` is ``File``, ``FastFile``, ``Pipe``, ``file system`` (EFS or FSx) or empty; ``bytes`` is what a
    channel in File mode copied, None where that was not counted.
    """

    name: str
    mode: str = ""
    bytes: int | None = None


class Files(Record, frozen=True):
    """The files that a ``tf.data`` pipeline reads, told from its graph; none of them was opened.

    ``readers`` are what opens them, as a user calls it; empty where nothing is read, or, if ``is_cached``,
    only in the first epoch. ``compressions`` are what the readers are told to undo, empty strings included.
    ``count`` names were found, not all where ``is_complete`` is False; ``sized`` of them were asked for their
    size, and ``sized_bytes`` is what these hold. ``problem`` is a sentence on what could not be told.
    """

    readers: tuple[str, ...] = ()
    compressions: tuple[str, ...] = ()
    count: int = 0
    is_complete: bool = True
    sized: int = 0
    sized_bytes: int = 0
    smallest_bytes: int = 0
    median_bytes: int = 0
    largest_bytes: int = 0
    example: str = ""
    is_cached: bool = False
    problem: str = ""

    @property
    def total_bytes(self) -> float:
        """What all of ``count`` hold, if the others are like those that were sized."""
        return self.sized_bytes * self.count / self.sized if self.sized else 0.0


class Compression(Record, frozen=True):
    """What compression costs and saves, measured on records of one of the files that a pipeline reads.

    The records, ``plain_bytes`` in all, were written twice, plainly and with ``packed_with``, and both copies
    read from memory; ``*_read_s`` and ``*_cpu_s`` are of the fastest pass. ``storage_*`` is what reading the
    files took, as they are. ``used`` is what the reader is told to undo, empty for none. ``problem`` says in
    a sentence why there are no such figures.
    """

    reader: str = ""
    used: str = ""
    packed_with: str = ""
    records: int = 0
    plain_bytes: int = 0
    packed_bytes: int = 0
    plain_read_s: float = 0.0
    packed_read_s: float = 0.0
    plain_cpu_s: float = 0.0
    packed_cpu_s: float = 0.0
    storage_bytes: int = 0
    storage_s: float = 0.0
    problem: str = ""

    @property
    def size_ratio(self) -> float:
        """Packed over plain bytes."""
        return self.packed_bytes / self.plain_bytes

    @property
    def cost_s_per_gb(self) -> float:
        """CPU seconds that unpacking takes per GB of what is unpacked."""
        return max(0.0, self.packed_cpu_s - self.plain_cpu_s) / self.plain_bytes * 1e9

    @property
    def saving_s_per_gb(self) -> float:
        """Seconds of reading that packing saves per GB of what is packed."""
        return (1 - self.size_ratio) * self.storage_s / self.storage_bytes * 1e9


class WeighedMap(Record, frozen=True):
    """What one map of a pipeline costs: seconds per batch, one entry per round, by `Weighed`'s single thread.

    ``stage`` is its place in `Program.pipeline`. ``from_input_s`` leaves out all that feeds it, which is held
    in memory, ``from_output_s`` the map as well; ``compiled_s`` is the first with its function compiled by
    XLA, empty where that was not tried or failed, as ``problem`` says in a sentence.
    """

    stage: int
    from_input_s: tuple[float, ...] = ()
    from_output_s: tuple[float, ...] = ()
    compiled_s: tuple[float, ...] = ()
    problem: str = ""


class Weighed(Record, frozen=True):
    """A ``tf.data`` pipeline weighed map by map, without training, one thread doing all of its work.

    ``whole_s`` is what a batch takes, what a ``cache()`` holds aside; its rounds are those of ``maps``.
    ``is_portable`` says that the pipeline, serialised and built again, gave a batch, as it must under the
    tf.data service; None for other data. ``problem`` is a sentence on what could not be done.
    """

    whole_s: tuple[float, ...] = ()
    maps: tuple[WeighedMap, ...] = ()
    is_portable: bool | None = None
    problem: str = ""


class Tuned(Record, frozen=True):
    """A value that AUTOTUNE chose for a stage of the baseline, as it was when the measurement ended.

    ``stage`` is named as tf.data names it once it has rewritten the pipeline; ``parameter`` is
    ``parallelism`` or ``buffer_size``.
    """

    stage: str
    parameter: str
    value: float


class Kernel(Record, frozen=True):
    """The matrix of a dense or convolutional layer, by its Keras class in ``kind``.

    ``data_format`` is ``channels_last`` or ``channels_first``, empty for a dense layer; ``channels_in`` are
    those of one group of a grouped convolution.
    """

    layer: str
    kind: str
    channels_in: int
    channels_out: int
    parameters: int
    data_format: str = ""


class Program(Record, frozen=True):
    """Facts read off the captured job.

    ``form`` is `Target.kind`; ``data_kind`` is ``tf.data``, ``arrays``, ``PyDataset``, ``generator`` or the
    type's name. ``element_spec`` lists ``name: dtype[shape]`` of each component, ``?`` being a dimension
    that varies. ``location`` is the call of ``fit``, ``validation`` the data that ``fit`` itself evaluates,
    None without any. ``strategy`` names the class of a distribution strategy; ``channels`` are SageMaker's,
    None outside of it. ``options`` are those of ``tf.data`` that are set. ``files`` is None until they were
    looked for, and for other data than ``tf.data``.
    """

    form: str
    model_class: str = ""
    model_name: str = ""
    parameters: int | None = None
    layers: int | None = None
    data_kind: str = ""
    element_spec: tuple[str, ...] = ()
    cardinality: int | None = None
    pipeline: tuple[Stage, ...] = ()
    callbacks: tuple[CallbackFact, ...] = ()
    fit_arguments: dict[str, str] = {}
    location: str | None = None
    training: Epoch = Epoch()
    validation: Epoch | None = None
    strategy: str = ""
    cluster: Cluster = Cluster()
    channels: tuple[Channel, ...] | None = None
    kernels: tuple[Kernel, ...] = ()
    files: Files | None = None
    options: dict[str, str] = {}

    @property
    def has_fit(self) -> bool:
        """Whether the program's own call of ``fit`` was seen, with all that it is given."""
        return self.form in ("script", "module")


class Placement(Record, frozen=True):
    """TensorFlow's placement log: ``ops`` counts placed ops by device type, then by op type."""

    ops: dict[str, dict[str, int]]


class VariantEnvironment(Record, frozen=True):
    """Versions and devices as the child saw them."""

    versions: dict[str, str]
    devices: tuple[Device, ...]


class VariantResult(Record, frozen=True):
    """Everything one variant gave, whatever happened to it. ``status``: measured, failed, not-run.

    ``warm_ups`` has one entry per launch, as far as each got; other facts are the last launch's.
    ``traces`` counts how often the train step was traced into a graph, ``train_ops`` that graph's ops
    by type. ``alone`` says that it took no turns with the others, so that its blocks share no rounds
    with theirs. ``cache_filled`` says whether the pipeline's own caches were full before the clock started;
    None without any. ``tuned`` is None where TensorFlow does not tell what it chose. ``notes`` are sentences
    for the report.
    """

    id: str
    status: str
    failure: Failure | None = None
    phases: tuple[Phase, ...] = ()
    warm_ups: tuple[WarmUp, ...] = ()
    blocks: tuple[Block, ...] = ()
    resolved: Resolved | None = None
    program: Program | None = None
    environment: VariantEnvironment | None = None
    placement: Placement | None = None
    train_ops: dict[str, int] | None = None
    traces: int | None = None
    peak_device_bytes: int | None = None
    peak_host_bytes: int | None = None
    compression: Compression | None = None
    weighed: Weighed | None = None
    tuned: tuple[Tuned, ...] | None = None
    alone: bool = False
    cache_filled: bool | None = None
    notes: tuple[str, ...] = ()

    @property
    def first_step_s(self) -> float | None:
        """The shortest first step of all launches: in others more of the machine may have gone elsewhere."""
        return min((warm_up.first_step_ns / 1e9 for warm_up in self.warm_ups), default=None)


# --------------------------------------------------------------------------------------------------
# The report


class Interval(Record, frozen=True):
    """A median with its 95 % bootstrap interval."""

    median: float
    low: float
    high: float

    @property
    def margin(self) -> float:
        """Half the interval's width, as a fraction of the median."""
        return (self.high - self.low) / 2 / self.median if self.median else math.inf


class Numerics(Record, frozen=True):
    """A variant's loss beside the baseline's after the same steps from the same seed, in their first launch.

    ``is_finite`` is None where the baseline's own loss is no number, or none was given. ``distance`` is the
    root mean square over launches, ``spread`` what another seed moves the baseline's loss by.
    """

    step: int
    loss: float | None
    reference_loss: float | None
    is_finite: bool | None
    distance: float | None = None
    spread: float | None = None


class TargetSummary(Record, frozen=True):
    kind: str
    path: str
    commit: str | None
    arguments: tuple[str, ...] = ()


class VariantSummary(Record, frozen=True):
    """One row of the variants table. Rates count samples; ``batch_size`` is the mean over all steps.

    ``purpose`` is what it is for: to ``time`` steps, to ``log``, ``trace`` or ``weigh``; only the first gives
    rates.
    ``compile_s`` is what the first step took beyond a steady one.
    """

    id: str
    title: str
    status: str
    purpose: str
    failure: Failure | None
    samples_per_s: Interval | None
    step_ms: Interval | None
    samples_per_usd: Interval | None
    compile_s: float | None
    batch_size: float | None
    steps: int
    resolved: Resolved | None
    phases: tuple[Phase, ...] = ()
    block_samples_per_s: tuple[float, ...] = ()
    loss: float | None = None
    notes: tuple[str, ...] = ()


class Comparison(Record, frozen=True):
    """``ratio`` is samples per second of ``variant`` over ``reference``.

    ``verdict``: ``faster``, ``slower`` or ``no difference``.
    """

    variant: str
    reference: str
    ratio: Interval
    verdict: str


class Fact(Record, frozen=True):
    """One row of a check's evidence: a number or text, what it counts, and its interval if it has one."""

    name: str
    value: float | int | str | bool | None
    unit: str = ""
    interval: Interval | None = None


class Answer(Record, frozen=True):
    """What a person said of the check with the id ``check``."""

    check: str
    said: Said
    note: str = ""
    by: str = ""
    on: date | None = None

    @property
    def words(self) -> str:
        """``yes by Ann on 2026-01-31: note``, on one line."""
        said = "not applicable" if self.said == "n-a" else self.said
        author = f" by {self.by}" if self.by else ""
        day = f" on {self.on}" if self.on else ""
        note = " ".join(self.note.split())
        return f"{said}{author}{day}{f': {note}' if note else '.'}"


class CheckResult(Record, frozen=True):
    """One item of the checklist. ``number`` is the checklist's, ``id`` the function's name with dashes.

    ``threshold`` is the rule in words; ``looks_at``, ``why`` and ``how_to_fix`` are the check's own
    documentation; ``fix`` is advice for this very program. ``gain`` is a ratio of samples per second that
    was measured: with the change itself, or, where ``gain_is_bound``, with more than it, so that the
    change can bring at most that. ``detail`` is the traceback of a check that broke.

    ``question`` is what a person is asked: yes says that the item is in order. ``answer`` is what one said.
    Where ``by_answer``, the status is the answer's, since the check itself left it open; otherwise the
    check's status stands, and ``contradicted`` says that the answer is the opposite.
    """

    id: str
    number: str
    section: str
    title: str
    status: Status
    summary: str
    facts: tuple[Fact, ...] = ()
    threshold: str = ""
    fix: str = ""
    gain: Interval | None = None
    gain_is_bound: bool = False
    looks_at: str = ""
    why: str = ""
    how_to_fix: str = ""
    detail: str = ""
    question: str = ""
    answer: Answer | None = None
    by_answer: bool = False
    contradicted: bool = False


class Report(Record, frozen=True):
    """``report.json``: the public contract that every renderer and outside tool reads.

    ``work_shares`` has the share of the pipeline's work that each weighed stage takes, by its place in
    ``program.pipeline``.
    """

    schema_version: str
    tfaudit_version: str
    created_at: str
    headline: str
    complete: bool
    target: TargetSummary
    environment: Environment
    usd_per_hour: float | None
    counts: dict[str, int]
    variants: tuple[VariantSummary, ...]
    comparisons: tuple[Comparison, ...]
    checks: tuple[CheckResult, ...]
    program: Program | None
    notes: tuple[str, ...] = ()
    trace: TraceEvidence | None = None
    work_shares: dict[int, Interval] = {}


# --------------------------------------------------------------------------------------------------
# Reading and writing


def to_json(document: Any) -> bytes:
    """Encode a record as indented UTF-8 JSON; NaN and infinities become null."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def write(path: Path, document: Any) -> None:
    """Write a record so that a reader sees the whole document or the previous one."""
    save(path, to_json(document))


def save(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the whole of it or the previous one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: Path, kind: type[T]) -> T:
    """Read a record. Raises `UsageError` when the file is missing or is no such document."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist: point at the folder of a finished run.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a {kind.__name__} document: {error}.") from None
