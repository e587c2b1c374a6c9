"""Several devices.

Section 6 of the checklist; it does not apply to a single device.
"""

from __future__ import annotations

from ..checking import Outcome, check, failed, not_applicable, passed, percent, planned, warned
from ..evidence import Evidence
from ..trace.summary import Device, TraceSummary
from ..trace.verdicts import Part, split, used

#: Communication that nothing hides, as a share of the step: a device that waits for others is idle,
#: and 1.11's bands for idleness hold.
WARN_EXPOSED, FAIL_EXPOSED = 0.05, 0.20

#: Spread evenly over the backward pass, two thirds of a step, 38 % of the communication would be in
#: the step's last quarter; from twice that on it is bunched there.
BUNCHED = 0.75


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


planned(
    __name__,
    {
        "6.1": ("scaling_efficiency", "Scaling over devices"),
        "6.2": ("one_large_instance", "One instance or many"),
        "6.3": ("fast_network", "Network between nodes"),
        "6.4": ("gradient_sharing", "Sharing of gradients"),
        "6.6": ("gradient_compression", "Gradient compression"),
        "6.7": ("evaluation_elsewhere", "Evaluation during training"),
    },
)
