"""Storage to CPU.

Section 3 of the checklist: reading the data.
"""

from __future__ import annotations

from ..checking import Outcome, check, failed, passed, planned, unknown, warned
from ..evidence import Evidence
from .performance import ENOUGH_HEADROOM

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


planned(
    __name__,
    {
        "3.1": ("file_sizes", "File sizes"),
        "3.2": ("sagemaker_input_mode", "SageMaker input mode"),
        "3.4": ("storage_cost", "Cost of storage"),
        "3.5": ("compression", "Compression"),
    },
)
