"""Storage to CPU.

Section 3 of the checklist: reading the data.
"""

from __future__ import annotations

from pathlib import PurePath

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
from ..program.compression import RECORDS
from ..records import Channel, Compression, Files, Program
from ..report import numbers
from ..stalls import reads_by_python
from .performance import ENOUGH_HEADROOM, FAIL_GAIN, GAIN_RULE, WARN_GAIN

#: Input slower than the model on cached input starves it however well the two overlap.
WARN_HEADROOM = 1.0

#: Up to 50 to 100 GB, SageMaker's own advice is to try File mode first: its copy takes some five minutes
#: (docs.aws.amazon.com/sagemaker/latest/dg/model-access-training-data-best-practices.html).
FILE_MODE_BYTES = 50 * 10**9

#: "At least 10 MB+ and ideally 100 MB+", and "at least 10 times as many files as there will be hosts reading
#: data", says tensorflow.org/tutorials/load_data/tfrecord; the checklist adds the upper end.
TINY_BYTES, GOOD_BYTES, HUGE_BYTES = 10 * 10**6, 100 * 10**6, 500 * 10**6
FILES_PER_HOST = 10

#: Object storage takes 100 to 200 ms to a file's first byte
#: (docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html): one after another, a thousand
#: files cost minutes in every epoch. Less data than fills one good file is soon read however it lies.
MANY_FILES = 1000
WORTH_PACKING = GOOD_BYTES

#: What shrinks to more than this share is as good as compressed already: JPEG photographs to 0.99.
WORTH_SHRINKING = 0.8

#: A sample of less says nothing: opening the file takes as long as reading it.
FEWEST_SAMPLE_BYTES = 10**6

#: Files whose format compresses.
COMPRESSED_FORMATS = (".gif", ".jpeg", ".jpg", ".mp3", ".mp4", ".png", ".webp")

SIZE_QUESTION = "Are the files around 100 MB each, rather than many tiny or few huge ones?"

COMPRESSION_QUESTION = "Was it measured whether unpacking the files costs more than their smaller size saves?"

STREAMING_QUESTION = (
    "Are the data streamed, with FastFile or Pipe mode or from a file system, rather than copied?"
)


@check(
    number="3.1",
    needs=("program",),
    threshold=(
        f"{MANY_FILES:,} files or more with a median below {TINY_BYTES / 1e6:.0f} MB and"
        f" {WORTH_PACKING / 1e6:.0f} MB in all warn, as do fewer than {FILES_PER_HOST} per machine of which"
        f" the median, or one with most of the data, exceeds {HUGE_BYTES / 1e6:.0f} MB"
    ),
    question=SIZE_QUESTION,
)
def file_sizes(evidence: Evidence) -> Outcome:
    """File sizes

    What it looks at
    The sizes of the files that the pipeline's sources read, whose names its graph tells; up to 10,000 of
    them, none of which is opened for it.

    Why it matters
    Every file that is opened costs a request, on object storage a tenth of a second; a file that is one of
    few can be neither read in parallel nor shuffled nor dealt to several machines.

    How to fix
    Write the samples into TFRecord files of about 100 MB, at least ten for each machine that reads.
    """
    program = evidence.program
    assert program is not None
    if outcome := _without_files(program):
        return outcome
    files = program.files
    assert files is not None
    facts = {
        "readers": " and ".join(files.readers),
        "example": files.example,
        "files": files.count if files.is_complete else f"more than {files.count:,}",
        "median_bytes": files.median_bytes if files.sized else None,
        "smallest_bytes": files.smallest_bytes if files.sized else None,
        "largest_bytes": files.largest_bytes if files.sized else None,
        "all_together_bytes": round(files.total_bytes) if files.is_complete and files.sized else None,
        "note": files.problem or None,
    }
    if not files.sized:
        return unknown(f"No size of the {files.count:,} files could be told.", **facts)
    how_many = _count(files)
    if _are_tiny(files):
        summary = (
            f"{how_many} of {numbers.size(files.median_bytes)}, in the median, are opened in every epoch."
        )
        return warned(summary, fix=_packing(files), **facts)
    if _are_huge(files, program.cluster.instances or 1):
        largest = numbers.size(files.largest_bytes)
        summary = f"{how_many} of up to {largest}: too few to be read in parallel."
        return warned(summary, fix=_packing(files), **facts)
    usual = numbers.size(files.median_bytes)
    return passed(
        f"One file of {usual}." if files.count == 1 else f"{how_many} of {usual}, in the median.", **facts
    )


def _without_files(program: Program) -> Outcome | None:
    """What to say of a job of which no file is known; None of others."""
    files = program.files
    if program.data_kind == "arrays":
        return not_applicable("The data is in memory.")
    if program.data_kind != "tf.data":
        return unknown(
            f"What its {program.data_kind} reads is up to Python code, which TensorFlow cannot tell."
        )
    if files is None:
        return unknown("The job ended before its files were looked for.")
    if files.count:
        return None
    if files.is_cached and not files.readers:
        return not_applicable(
            "The pipeline caches what it reads (cache()): files are read in the first epoch only."
        )
    if files.problem:
        return unknown(files.problem)
    return not_applicable("The pipeline reads no files: its data is in memory.")


def _are_tiny(files: Files) -> bool:
    is_worth_it = files.total_bytes >= WORTH_PACKING
    return files.median_bytes < TINY_BYTES and files.count >= MANY_FILES and is_worth_it


def _are_huge(files: Files, machines: int) -> bool:
    usual = max(HUGE_BYTES, files.total_bytes / 2)
    is_huge = files.median_bytes > HUGE_BYTES or files.largest_bytes > usual
    return files.is_complete and files.count < FILES_PER_HOST * machines and is_huge


def _count(files: Files) -> str:
    if not files.is_complete:
        return f"More than {files.count:,} files"
    return f"{files.count:,} file{'s' if files.count > 1 else ''}"


def _packing(files: Files) -> str:
    """Code that writes the same samples as shards of a good size."""
    shards = max(1, -(-round(files.total_bytes) // GOOD_BYTES))
    if "read_file" in files.readers:
        each = """\
        for path, label in samples[shard::SHARDS]:
            feature = {
                "file": tf.train.Feature(bytes_list=tf.train.BytesList(value=[open(path, "rb").read()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())"""
        samples = "samples = list(zip(paths, labels))\nrandom.Random(0).shuffle(samples)"
    else:
        reader = next((name for name in files.readers if reads_lines(name)), "TFRecordDataset")
        told = next(filter(None, files.compressions), "")
        undone = f', compression_type="{told}"' if told else ""
        samples = f"samples = tf.data.{RECORDS.get(reader, reader)}(paths{undone})"
        each = """\
        for record in samples.shard(SHARDS, shard):
            writer.write(record.numpy())"""
    return f"""\
SHARDS = {shards}  # of about {GOOD_BYTES / 1e6:.0f} MB
{samples}
for shard in range(SHARDS):
    with tf.io.TFRecordWriter(f"data-{{shard:05}}-of-{{SHARDS:05}}.tfrecord") as writer:
{each}

dataset = tf.data.Dataset.list_files("data-*.tfrecord").interleave(
    tf.data.TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False
)"""


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
    uses=("source-cached", "source-cached-input-only", "input-only", "program"),
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
    if reads_by_python(evidence.program):
        return not_applicable(
            "The elements come from the program's own Python (from_generator), not from storage: see 5.5."
        )
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


@check(
    number="3.5",
    needs=("program", "placement"),
    uses=("source-cached", "baseline"),
    threshold=(
        "seconds per GB: unpacking that costs more than it saves in reading warns where files are compressed,"
        " saves more than it costs where they are not; neither where holding the source in memory gains less"
        f" than {WARN_GAIN:g}×"
    ),
    question=COMPRESSION_QUESTION,
)
def compression(evidence: Evidence) -> Outcome:
    """Compression

    What it looks at
    A sample of the records (16 MB at most), written as they are and compressed into the temporary folder:
    how much smaller they become, the CPU time of reading either, and how fast the files themselves are read.

    Why it matters
    One core unpacks some 250 MB/s of GZIP, time that other preprocessing may need; from a slow disk or over a
    network smaller files are worth that.

    How to fix
    Write TFRecord files with or without TFRecordOptions(compression_type="GZIP"), whichever costs less.
    """
    program, held = evidence.program, evidence.variant("placement")
    assert program is not None
    if outcome := _without_files(program):
        return outcome
    files = program.files
    assert files is not None
    if PurePath(files.example).suffix.lower() in COMPRESSED_FORMATS:
        return passed("The files' own format compresses them.", example=files.example)
    tried = held.compression if held else None
    if tried is None:
        return unknown("No sample of the files was tried.")
    if tried.problem:
        return unknown(tried.problem, reader=tried.reader or None)
    if tried.plain_bytes < FEWEST_SAMPLE_BYTES:
        size = numbers.size(tried.plain_bytes)
        if files.total_bytes < FEWEST_SAMPLE_BYTES:
            return passed(f"There is too little to read for compression to matter: {size}.")
        return unknown(f"A sample of {size} is too little to measure.", reader=tried.reader)
    gain = evidence.ratio("source-cached", to="baseline")
    facts = {**_weighed(tried), "source_cached_over_baseline_ratio": gain}
    is_spared = gain is not None and gain.low < WARN_GAIN
    costs, saves = tried.cost_s_per_gb, tried.saving_s_per_gb
    both = f"{numbers.seconds(costs)} of CPU time per GB, and saves {numbers.seconds(saves)} of reading"
    if tried.used:
        summary = f"Unpacking {tried.used} costs {both}."
        if costs <= saves:
            return passed(summary, **facts)
        if is_spared:
            return passed(f"{summary} What is read costs the job nothing that was measured.", **facts)
        return warned(summary, fix=_rewriting(tried, ""), **facts)
    if tried.size_ratio > WORTH_SHRINKING:
        return passed(
            f"{tried.packed_with} would leave {percent(tried.size_ratio)} of the bytes: not worth unpacking.",
            **facts,
        )
    summary = f"The files are not compressed; unpacking {tried.packed_with} would cost {both}."
    if costs < saves and gain is not None and not is_spared:
        return warned(summary, fix=_rewriting(tried, tried.packed_with), **facts)
    return passed(summary.replace("saves", "save"), **facts)


def _weighed(tried: Compression) -> dict[str, object]:
    rates = {
        "plain": tried.plain_bytes / tried.plain_read_s,
        f"{tried.packed_with}, as unpacked": tried.plain_bytes / tried.packed_read_s,
        "the files as they are": tried.storage_bytes / tried.storage_s,
    }
    return {
        "reader": tried.reader,
        "compression": tried.used or "none",
        "records_tried": tried.records,
        "plain_bytes": tried.plain_bytes,
        f"{tried.packed_with}_bytes": tried.packed_bytes,
        "reading": {name: f"{numbers.number(rate / 1e6)} MB/s" for name, rate in rates.items()},
        "plain_CPU_time_per_GB_s": tried.plain_cpu_s / tried.plain_bytes * 1e9,
        f"{tried.packed_with}_CPU_time_per_GB_s": tried.packed_cpu_s / tried.plain_bytes * 1e9,
    }


def reads_lines(reader: str) -> bool:
    """Whether what opens the files takes them for text, line by line."""
    return RECORDS.get(reader) == "TextLineDataset"


def _rewriting(tried: Compression, compression: str) -> str:
    """Code that writes a file again with another compression, and reads it."""
    undone = f', compression_type="{tried.used}"' if tried.used else ""
    written = f', "{compression}"' if compression else ""
    told = f', compression_type="{compression}"' if compression else ""
    if reads_lines(tried.reader):
        command = "gzip --keep" if compression else "gunzip --keep"
        return f"# {command} FILE, then\ntf.data.TextLineDataset(files{told})"
    return f"""\
with tf.io.TFRecordWriter(new{written}) as writer:
    for record in tf.data.TFRecordDataset(old{undone}):
        writer.write(record.numpy())
dataset = tf.data.TFRecordDataset(new{told})"""
