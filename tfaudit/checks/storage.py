"""Storage to CPU.

Section 3 of the checklist: reading the data.
"""

from __future__ import annotations

from ..checking import Outcome, check, failed, not_applicable, passed, planned, unknown, warned
from ..evidence import Evidence
from .performance import ENOUGH_HEADROOM, FAIL_GAIN, GAIN_RULE, WARN_GAIN

#: Input slower than the model on cached input starves it however well the two overlap.
WARN_HEADROOM = 1.0


@check(
    number="3.3",
    needs=("input-only", "cached-input"),
    uses=("price",),
    threshold=f"input alone ÷ cached input: ≥ {ENOUGH_HEADROOM:g}× passes, ≥ {WARN_HEADROOM:g}× warns",
)
def input_headroom(evidence: Evidence) -> Outcome:
    """Speed of input alone

    What it looks at
    Samples per second of the input pipeline without training, against training without its input.

    Why it matters
    A pipeline slower than the model starves it however well the two overlap; one barely faster
    leaves nothing for the cores that training needs itself.

    How to fix
    Make the pipeline faster (4.1, 5.5) until it delivers clearly more than the model can take.
    """
    headroom = evidence.ratio("input-only", to="cached-input")
    if headroom is None:
        return unknown("No block of either variant was measured.")
    facts = {
        "input_only_over_cached_input_ratio": headroom,
        "input_only_samples_per_s": evidence.samples_per_s("input-only"),
        "cached_input_samples_per_s": evidence.samples_per_s("cached-input"),
        "input_only_samples_per_usd": evidence.samples_per_usd("input-only"),
    }
    summary = f"The pipeline alone delivers {headroom.median:.2f}× what the model can take."
    if headroom.high < WARN_HEADROOM:
        return failed(summary, **facts)
    if headroom.low < ENOUGH_HEADROOM:
        return warned(summary, **facts)
    return passed(summary, **facts)


@check(
    number="3.4",
    needs=("baseline",),
    uses=("source-cached", "source-cached-input-only", "input-only"),
    threshold=f"source cached ÷ baseline: {GAIN_RULE}",
)
def storage_cost(evidence: Evidence) -> Outcome:
    """Cost of storage

    What it looks at
    Samples per second when what the sources read is held in memory and all that follows is done as before,
    with training and without.

    Why it matters
    What is gained there is what fetching the data costs: the disk, the network, opening files.

    How to fix
    Bring the data nearer (local disk, FastFile), into fewer and larger files (3.1), read several at a time,
    or cache() it where memory holds it.
    """
    held = evidence.variant("source-cached")
    reason = evidence.why_missing("source-cached")
    if held is not None and held.failure is not None and held.failure.kind == "unsupported":
        return not_applicable(reason)
    gain = evidence.ratio("source-cached", to="baseline")
    if reason or gain is None:
        return unknown(reason or "No block of either variant was measured.")
    facts = {
        "source_cached_over_baseline_ratio": gain,
        "source_cached_over_own_source_without_training_ratio": evidence.ratio(
            "source-cached-input-only", to="input-only"
        ),
        "note": held.notes if held else (),
    }
    summary = f"With its source in memory the job trains {gain.median:.2f}× as fast."
    if gain.low >= FAIL_GAIN:
        return failed(summary, at_most=gain, **facts)
    if gain.low >= WARN_GAIN:
        return warned(summary, at_most=gain, **facts)
    return passed(f"{summary} Storage costs nothing that was measured.", **facts)


planned(
    __name__,
    {
        "3.1": ("file_sizes", "File sizes"),
        "3.2": ("sagemaker_input_mode", "SageMaker input mode"),
        "3.5": ("compression", "Compression"),
    },
)
