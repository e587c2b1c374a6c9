"""Storage to CPU.

Section 3 of the checklist: reading the data.
"""

from __future__ import annotations

from ..checking import (
    Outcome,
    check,
    failed,
    manual,
    not_applicable,
    passed,
    planned,
    unknown,
    warned,
)
from ..evidence import Evidence
from ..records import Channel
from ..report import numbers
from .performance import ENOUGH_HEADROOM, FAIL_GAIN, GAIN_RULE, WARN_GAIN

#: Input slower than the model on cached input starves it however well the two overlap.
WARN_HEADROOM = 1.0

#: Up to 50 to 100 GB, SageMaker's own advice is to try File mode first: its copy takes some five minutes
#: (docs.aws.amazon.com/sagemaker/latest/dg/model-access-training-data-best-practices.html).
FILE_MODE_BYTES = 50 * 10**9

STREAMING_QUESTION = (
    "Are the data streamed, with FastFile or Pipe mode or from a file system, rather than copied?"
)


@check(
    number="3.2",
    needs=("program",),
    threshold=f"File mode warns from {FILE_MODE_BYTES / 1e9:.0f} GB in all, or where the size is not known",
    question=STREAMING_QUESTION,
)
def sagemaker_input_mode(evidence: Evidence) -> Outcome:
    """SageMaker input mode

    What it looks at
    The channels of the training job, from SM_CHANNELS and inputdataconfig.json, and how each is mounted:
    there "File" is written for FastFile, EFS and FSx, too. Of a channel in File mode, its size.

    Why it matters
    In File mode all data are copied before the first step, while the instance is paid for. FastFile and
    Pipe mode stream them, so that training starts at once.

    How to fix
    TrainingInput("s3://…", input_mode="FastFile") for the channel: the program reads the same folder as
    before. It suits files of 50 MB and more (3.1) that are read in order.
    """
    program = evidence.program
    assert program is not None
    channels = program.channels
    if channels is None:
        return not_applicable("This is no SageMaker training job.")
    if not channels:
        return manual(f"The training job has no input channel. {STREAMING_QUESTION}")
    facts = {"channel": {channel.name: _mode(channel) for channel in channels}}
    copied = [channel for channel in channels if channel.mode == "File"]
    names = ", ".join(channel.name for channel in copied)
    size = sum(channel.bytes or 0 for channel in copied)
    is_known = all(channel.bytes is not None for channel in copied)
    if copied and (size >= FILE_MODE_BYTES or not is_known):
        what = numbers.size(size) if is_known else "how many bytes was not counted"
        fix = "\n".join(f'"{each.name}": TrainingInput("s3://…", input_mode="FastFile")' for each in copied)
        return warned(f"File mode copies {names} before training starts: {what}.", fix=fix, **facts)
    if unsaid := [channel.name for channel in channels if not channel.mode]:
        return unknown(f"The input configuration does not tell the mode of {', '.join(unsaid)}.", **facts)
    if copied:
        return passed(f"File mode copies {names} first, but that is only {numbers.size(size)}.", **facts)
    return passed("No channel is copied before training starts.", **facts)


def _mode(channel: Channel) -> str:
    size = f", {numbers.size(channel.bytes)}" if channel.bytes is not None else ""
    return f"{channel.mode or 'not told'}{size}"


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
        "3.5": ("compression", "Compression"),
    },
)
