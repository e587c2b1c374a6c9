"""Where a step's time goes, from variants that each leave one part of it out.

The differences between their times per sample are what that part costs where it is not hidden behind
another. The method is that of Mohan, Phanishayee, Raniwala and Chidambaram, "Analyzing and Mitigating Data
Stalls in DNN Training" (VLDB 2021), with the copy to the device told apart as well.
"""

from __future__ import annotations

from .evidence import Evidence, timed_blocks
from .records import Interval, Program
from .statistics import time_shares

#: Variants from the least work to all of it, and the part that each adds to the one before.
PARTS = {
    "constant-batch": "computing",
    "cached-input": "copying",
    "source-cached": "preprocessing",
    "baseline": "fetching",
}


def reads_by_python(program: Program | None) -> bool:
    """Whether elements come from a Python generator, so that its code cannot be told from fetching."""
    return program is not None and any(stage.op == "from_generator" for stage in program.pipeline)


def stalls(evidence: Evidence) -> dict[str, Interval]:
    """Each part's share of the baseline's time per sample.

    Parts that no variant tells apart are one: ``preprocessing and fetching``. A share below 0 is noise, or a
    part whose absence slows the rest. Without an accelerator nothing is copied to one; where the source is
    the program's own Python, to hold what it gives leaves out more than fetching. Empty unless the
    baseline took turns with another.
    """
    turns, names, merged = [], [], list[str]()
    without = set() if evidence.accelerators else {"constant-batch"}
    if reads_by_python(evidence.program):
        without.add("source-cached")
    for identifier, part in PARTS.items():
        if part != "copying" or evidence.accelerators:
            merged.append(part)
        result = evidence.variant(identifier) if identifier not in without else None
        if result is not None and not result.alone and not evidence.why_missing(identifier):
            turns.append(timed_blocks(result.blocks))
            names.append(" and ".join(merged))
            merged.clear()
    if len(names) < 2 or merged:
        return {}
    return dict(zip(names, time_shares(turns), strict=False))


def as_facts(shares: dict[str, Interval]) -> dict[str, Interval]:
    """Shares by the names that a check's facts have."""
    return {f"{part.replace(' ', '_')}_fraction": share for part, share in shares.items()}
