"""Several devices.

Section 6 of the checklist; it does not apply to a single device.
"""

from __future__ import annotations

from ..checking import (
    Outcome,
    check,
    failed,
    manual,
    not_applicable,
    passed,
    percent,
    unknown,
    warned,
)
from ..evidence import Evidence
from ..program.names import is_of
from ..records import Program
from ..trace.summary import Device, TraceSummary
from ..trace.verdicts import Part, split, used

#: As many accelerators as the large instances of every cloud hold (instances.csv of the catalogue: 33 NVIDIA
#: types with 8, two with 16).
MOST_IN_ONE = 8

#: A forward pass takes about a third of a training step: the backward pass computes two gradients, each as
#: costly as the forward pass, one for the weights and one for the layer before.
FORWARD_SHARE = 1 / 3

#: From a tenth of the time on evaluation is worth a place of its own; other shares have the same bound (1.3).
WARN_VALIDATION = 0.10

#: Packages whose ``Compression`` holds what shrinks gradients on their way, and the one that does not.
EXCHANGES = ("byteps", "horovod", "smdistributed")
NO_COMPRESSION = "none"

#: Packages that do nothing else.
COMPRESSORS = ("bagua", "deepreduce", "grace_dl")

#: What chooses how gradients are packed and sent; none of it makes them smaller.
PACKING = frozenset(
    {
        "CollectiveHints",
        "CommunicationOptions",
        "HierarchicalCopyAllReduce",
        "NcclAllReduce",
        "ReductionToOneDevice",
    }
)

ONE_DEVICE = "One device trains this model."

#: Communication that nothing hides, as a share of the step: a device that waits for others is idle,
#: and 1.11's bands for idleness hold.
WARN_EXPOSED, FAIL_EXPOSED = 0.05, 0.20

#: Spread evenly over the backward pass, two thirds of a step, 38 % of the communication would be in
#: the step's last quarter; from twice that on it is bunched there.
BUNCHED = 0.75


SCALING_QUESTION = "Do all devices together train at least 0.9 times as many samples per dollar as one alone?"


@check(number="6.1", needs=("program", "machine"), uses=("baseline",), question=SCALING_QUESTION)
def scaling_efficiency(evidence: Evidence) -> Outcome:
    """Scaling over devices

    What it looks at
    How many devices take part. Training on one of them alone, for comparison, is not measured yet.

    Why it matters
    Two devices that train 1.4 times as fast as one cost as much as two.

    How to fix
    A larger batch per device, gradients sent while the backward pass goes on (6.5), or fewer devices.
    """
    if not has_several(evidence):
        return not_applicable(ONE_DEVICE)
    return unknown(
        "Training on one device is not compared with all of them yet: that comparison comes later.",
        **_taking_part(evidence),
    )


def has_several(evidence: Evidence) -> bool:
    """Whether more than one device is there, or takes part: replicas, processes, accelerators."""
    program, baseline = evidence.program, evidence.variant("baseline")
    replicas = baseline.resolved.replicas if baseline and baseline.resolved else 1
    cluster = program.cluster if program else None
    processes = cluster.processes if cluster else 1
    return max(replicas, len(evidence.accelerators)) > 1 or processes is None or processes > 1


def _taking_part(evidence: Evidence) -> dict[str, object]:
    program, baseline = evidence.program, evidence.variant("baseline")
    return {
        "strategy": (program.strategy or None) if program else None,
        "replicas": baseline.resolved.replicas if baseline and baseline.resolved else None,
        "instances": program.cluster.instances if program else None,
        "processes": program.cluster.processes if program else None,
        "accelerators_of_this_instance": len(evidence.accelerators),
    }


INSTANCES_QUESTION = "Would one larger instance do instead of several?"


@check(
    number="6.2",
    needs=("program", "machine"),
    uses=("baseline",),
    threshold=f"more instances than their accelerators would fill, {MOST_IN_ONE} in each, warn",
    question=INSTANCES_QUESTION,
)
def one_large_instance(evidence: Evidence) -> Outcome:
    """One instance or many

    What it looks at
    The cluster that TF_CONFIG, Open MPI, Horovod or SageMaker describe to the program, and the accelerators
    of this instance, which the others are taken to resemble.

    Why it matters
    Within an instance gradients pass over NVLink or PCIe, between instances over a network ten to a hundred
    times slower; one instance is also simpler to start, to watch and to restart.

    How to fix
    Take one instance with as many accelerators, and tf.distribute.MirroredStrategy instead of
    MultiWorkerMirroredStrategy.
    """
    program = evidence.program
    assert program is not None
    cluster, here, facts = program.cluster, len(evidence.accelerators), _taking_part(evidence)
    if not has_several(evidence):
        return not_applicable(ONE_DEVICE)
    if cluster.instances is None:
        return unknown(f"{cluster.told_by} could not be read, so the instances are not known.", **facts)
    if cluster.instances == 1:
        return passed("All devices are in one instance.", **facts)
    together = f"{cluster.instances} instances train together ({cluster.told_by})"
    if not here:
        return manual(f"{together}, this one without an accelerator. {INSTANCES_QUESTION}", **facts)
    total = cluster.instances * here
    enough = -(-total // MOST_IN_ONE)
    each = f"{together}, with {_accelerators(here)} each"
    if cluster.instances <= enough:
        return passed(f"{each}: fewer could not hold them.", **facts)
    fix = f"# {enough} × an instance with {_accelerators(min(total, MOST_IN_ONE))}"
    if enough == 1:
        fix += "\nstrategy = tf.distribute.MirroredStrategy()  # and no TF_CONFIG"
    return warned(f"{each}: {enough} would do.", fix=fix, **facts)


def _accelerators(count: int) -> str:
    return f"{count} accelerator{'s' if count > 1 else ''}"


NETWORK_QUESTION = (
    "Is the network between the instances accelerated (EFA, gVNIC with Fast Socket, InfiniBand)?"
)


@check(number="6.3", needs=("program",), question=NETWORK_QUESTION)
def fast_network(evidence: Evidence) -> Outcome:
    """Network between nodes

    What it looks at
    Whether several instances train together. What network their type has is not looked up yet.

    Why it matters
    Each step sends every gradient to every instance: 100 million parameters are 400 MB a step.

    How to fix
    Types with EFA, gVNIC and Fast Socket, or InfiniBand, in one placement group; and NCCL's plug-in for it.
    """
    program = evidence.program
    assert program is not None
    cluster = program.cluster
    if cluster.instances == 1:
        return not_applicable("One instance trains this model.")
    if cluster.instances is None:
        return unknown(f"{cluster.told_by} could not be read, so the instances are not known.")
    return unknown(
        f"{cluster.instances} instances train together ({cluster.told_by}); what network they have is not"
        " looked up yet: that comes with the catalogue of instances."
    )


SHARING_QUESTION = "Were other ways of sharing gradients measured (NCCL, hierarchical copy, one device)?"


@check(number="6.4", needs=("program", "machine"), uses=("baseline", "source"), question=SHARING_QUESTION)
def gradient_sharing(evidence: Evidence) -> Outcome:
    """Sharing of gradients

    What it looks at
    How many devices take part, and whether the program chooses how they share gradients. Other ways are not
    measured yet.

    Why it matters
    Which way is fastest depends on how the devices are connected.

    How to fix
    tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.HierarchicalCopyAllReduce()), and measure.
    """
    if not has_several(evidence):
        return not_applicable(ONE_DEVICE)
    return unknown(
        "Other ways of sharing gradients are not measured yet: that comparison comes later.",
        chosen=_packing(evidence),
        **_taking_part(evidence),
    )


def _packing(evidence: Evidence) -> list[str]:
    """Where the program chooses how gradients are packed and sent."""
    return [f"{full} ({place})" for full, place in evidence.source.uses.items() if is_of(full, PACKING)]


@check(
    number="6.5",
    needs=("trace", "machine"),
    threshold=f"communication that no compute overlaps ≥ {percent(WARN_EXPOSED)} of the time warns,"
    f" ≥ {percent(FAIL_EXPOSED)} fails",
)
def spread_communication(evidence: Evidence) -> Outcome:
    """Spread of communication

    What it looks at
    The collectives in the trace: how much of them runs while the device computes, and how much is
    bunched in the last quarter of the step, when the backward pass is over.

    Why it matters
    Gradients of the last layers are ready first. Exchanged at once, their journey hides behind the rest
    of the backward pass; exchanged at the end, all devices wait.

    How to fix
    Smaller buckets for the gradients (bytes_per_pack in tf.distribute.experimental.CommunicationOptions),
    no global gradient clipping before the exchange, NCCL, or a larger batch per device.
    """
    summary = evidence.trace.summary if evidence.trace else None
    assert summary is not None
    if len(used(summary)) < 2:
        return not_applicable("Only one device is at work." if used(summary) else "There is no accelerator.")
    device = max(used(summary), key=lambda each: each.collectives.busy_ms)
    found = device.collectives
    if not found.count:
        return not_applicable("The trace shows no communication between the devices.")
    exposed = exposed_communication(summary, device)
    facts = {
        "not_overlapped_of_the_time_fraction": exposed,
        "overlapped_by_compute_fraction": found.overlapped_fraction,
        "in_the_last_quarter_of_the_step_fraction": found.tail_fraction,
        "collectives": found.count,
        "duration_ms": found.busy_ms,
    }
    where = ""
    if found.tail_fraction is not None and found.tail_fraction >= BUNCHED:
        where = f", {percent(found.tail_fraction)} of it bunched at the end of the step"
    sentence = f"Communication that nothing hides takes {percent(exposed)} of the time{where}."
    if exposed >= FAIL_EXPOSED:
        return failed(sentence, **facts)
    return (warned if exposed >= WARN_EXPOSED else passed)(sentence, **facts)


def exposed_communication(summary: TraceSummary, device: Device) -> float:
    """Communication without compute, as a share of the steps' time, or of the device's span without steps."""
    if total := split(summary.steps):
        return total.share(Part.COMMUNICATION)
    return device.collectives.exposed_ms / device.span_ms if device.span_ms else 0.0


COMPRESSION_QUESTION = "Are gradients compressed before they are sent, or was it tried?"


@check(
    number="6.6",
    needs=("program", "machine"),
    uses=("baseline", "source"),
    question=COMPRESSION_QUESTION,
)
def gradient_compression(evidence: Evidence) -> Outcome:
    """Gradient compression

    What it looks at
    Compression of Horovod, BytePS and the like in the source. TensorFlow's own CommunicationOptions packs
    gradients, and makes none smaller.

    Why it matters
    Gradients in 16 bits are half as long on the way, at a loss of precision that seldom shows.

    How to fix
    hvd.DistributedOptimizer(optimizer, compression=hvd.Compression.fp16), and compare the loss.
    """
    program, baseline = evidence.program, evidence.variant("baseline")
    assert program is not None
    if not has_several(evidence):
        return not_applicable(ONE_DEVICE)
    if found := compressed_by(evidence):
        return passed(f"{found} compresses gradients.")
    replicas = baseline.resolved.replicas if baseline and baseline.resolved else None
    if replicas == 1 and program.cluster.processes == 1:
        return not_applicable(f"Of {len(evidence.accelerators)} devices one trains: no gradients are sent.")
    return manual(f"No compression was found. {COMPRESSION_QUESTION}", packed_by=_packing(evidence))


def compressed_by(evidence: Evidence) -> str:
    """The first use of something that compresses gradients; empty without any."""
    if found := evidence.source.first_use(*COMPRESSORS):
        return f"{found[0]} ({found[1]})"
    for full, place in evidence.source.uses.items():
        package, *parts = full.split(".")
        if package in EXCHANGES and "Compression" in parts[:-1] and parts[-1] != NO_COMPRESSION:
            return f"{full} ({place})"
    return ""


EVALUATION_QUESTION = "Is the model evaluated elsewhere, or seldom enough that training hardly waits for it?"


@check(
    number="6.7",
    needs=("program",),
    uses=("source",),
    threshold=f"validation in fit estimated at ≥ {percent(WARN_VALIDATION)} of an epoch warns",
    question=EVALUATION_QUESTION,
)
def evaluation_elsewhere(evidence: Evidence) -> Outcome:
    """Evaluation during training

    What it looks at
    validation_data, validation_split, validation_steps and validation_freq of fit, and whether a task of its
    own evaluates. The share of the time is an estimate from the number of samples, a forward pass taken as a
    third of a training step.

    Why it matters
    All devices stop training while the model is evaluated, though evaluating could be done by a cheaper
    machine from the checkpoints.

    How to fix
    fit(…, validation_freq=5) or validation_steps=…, or a tf.keras.utils.SidecarEvaluator in a process of its
    own that reads the checkpoints.
    """
    program = evidence.program
    assert program is not None
    if program.cluster.has_evaluator:
        return passed("A task of its own evaluates (TF_CONFIG).")
    for full, place in evidence.source.uses.items():
        if is_of(full, {"SidecarEvaluator"}):
            return passed(f"{full} evaluates in a process of its own ({place}).")
    if program.validation is None:
        if not program.has_fit:
            return manual(f"The target has no call of fit. {EVALUATION_QUESTION}")
        return passed("Training does not stop for an evaluation: fit is given no validation data.")
    share = validation_share(program)
    facts = {
        "training_batches": program.training.batches,
        "validation_batches": program.validation.batches,
        "every_so_many_epochs": program.fit_arguments.get("validation_freq", "1"),
        "validation_estimated_fraction": share,
    }
    if share is None:
        return unknown("How much data an epoch trains on, or evaluates, is not known beforehand.", **facts)
    summary = f"Validation takes {percent(share)} of an epoch (an estimate)."
    if share < WARN_VALIDATION:
        return passed(summary, **facts)
    return warned(summary, fix=_seldom(share, program), **facts)


def validation_share(program: Program) -> float | None:
    """The estimated share of the time that validation takes; None where the amount of data is not known."""
    training, validation = program.training, program.validation
    every = program.fit_arguments.get("validation_freq", "1")
    if validation is None or not training.batches or validation.batches is None or not every.isdecimal():
        return None
    # Where only one of the batch sizes is known, batches are taken to be alike.
    ratio = validation.batches / training.batches
    if training.batch_size and validation.batch_size:
        ratio *= validation.batch_size / training.batch_size
    evaluating = FORWARD_SHARE * ratio / max(1, int(every))
    return evaluating / (1 + evaluating)


def _seldom(share: float, program: Program) -> str:
    """How seldom to evaluate so that the share falls below the threshold."""
    odds, allowed = share / (1 - share), WARN_VALIDATION / (1 - WARN_VALIDATION)
    times = int(odds / allowed + 1e-9) + 1
    every = times * int(program.fit_arguments.get("validation_freq", "1"))
    return f"model.fit(…, validation_freq={every})"
