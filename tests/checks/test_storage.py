"""Section 3: one line on each side of each threshold."""

from __future__ import annotations

import pytest
from checks.builders import evidence, failed, judged, measured, program

from tfaudit.evidence import Evidence
from tfaudit.records import Channel, Cluster, Compression, Files, Stage, Status

CASES = {
    "clearly faster": (evidence(input_only=200.0, cached_input=100.0), Status.PASS),
    "26 % faster": (evidence(input_only=126.0, cached_input=100.0), Status.PASS),
    "24 % faster": (evidence(input_only=124.0, cached_input=100.0), Status.WARN),
    "1 % faster": (evidence(input_only=101.0, cached_input=100.0), Status.WARN),
    "1 % slower": (evidence(input_only=99.0, cached_input=100.0), Status.FAIL),
    "the lower end must pass": (evidence(input_only=[120.0, 140.0] * 3, cached_input=100.0), Status.WARN),
    "the upper end must fail": (evidence(input_only=[80.0, 110.0] * 3, cached_input=100.0), Status.WARN),
    "no cached input": (evidence(input_only=200.0), Status.UNKNOWN),
    "no input alone": (evidence(cached_input=200.0), Status.UNKNOWN),
    "input alone failed": (evidence(failed("input-only", "raised"), cached_input=100.0), Status.UNKNOWN),
    "nothing was timed": (evidence(measured("input-only", []), cached_input=100.0), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", CASES)
def test_input_headroom(case: str) -> None:
    """3.3: input alone ÷ cached input."""
    given, status = CASES[case]
    assert judged("3.3", given).status == status


HELD = {
    "26 % faster": (evidence(baseline=100.0, source_cached=126.0), Status.FAIL),
    "24 % faster": (evidence(baseline=100.0, source_cached=124.0), Status.WARN),
    "6 % faster": (evidence(baseline=100.0, source_cached=106.0), Status.WARN),
    "4 % faster": (evidence(baseline=100.0, source_cached=104.0), Status.PASS),
    "slower": (evidence(baseline=100.0, source_cached=90.0), Status.PASS),
    "the lower end decides": (evidence(baseline=100.0, source_cached=[110.0, 150.0] * 3), Status.WARN),
    "nothing is read": (
        evidence(failed("source-cached", "unsupported"), baseline=100.0),
        Status.NOT_APPLICABLE,
    ),
    "a Python generator": (
        evidence(
            program=program(pipeline=(Stage(op="from_generator"),)), baseline=100.0, source_cached=300.0
        ),
        Status.NOT_APPLICABLE,
    ),
    "it failed": (evidence(failed("source-cached", "raised"), baseline=100.0), Status.UNKNOWN),
    "it was not run": (evidence(baseline=100.0), Status.UNKNOWN),
    "no baseline": (evidence(source_cached=100.0), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", HELD)
def test_storage_cost(case: str) -> None:
    """3.4: source cached ÷ baseline."""
    given, status = HELD[case]
    assert judged("3.4", given).status == status


def test_what_is_held_and_what_that_bounds_is_noted() -> None:
    held = measured("source-cached", 130.0, notes=("32 of 1,280 elements are held in memory.",))
    result = judged("3.4", evidence(held, baseline=100.0))
    assert ("note", "32 of 1,280 elements are held in memory.") in [(f.name, f.value) for f in result.facts]
    assert result.gain is not None and result.gain_is_bound


def test_the_ratio_is_stated() -> None:
    result = judged("3.3", evidence(input_only=200.0, cached_input=100.0))
    assert result.summary == "The pipeline alone delivers 2.00× what the model can take."


# 3.2 ------------------------------------------------------------------------------------------------


def on_sagemaker(*channels: Channel) -> Evidence:
    return evidence(program=program(channels=channels))


GB = 10**9

INPUT_MODES = {
    "elsewhere": (evidence(program=program()), Status.NOT_APPLICABLE),
    "no channel": (on_sagemaker(), Status.MANUAL),
    "FastFile": (on_sagemaker(Channel("train", "FastFile")), Status.PASS),
    "Pipe": (on_sagemaker(Channel("train", "Pipe")), Status.PASS),
    "a file system": (on_sagemaker(Channel("train", "file system")), Status.PASS),
    "File, 49 GB": (on_sagemaker(Channel("train", "File", 49 * GB)), Status.PASS),
    "File, 50 GB": (on_sagemaker(Channel("train", "File", 50 * GB)), Status.WARN),
    "File, 50 GB in two": (
        on_sagemaker(Channel("train", "File", 30 * GB), Channel("test", "File", 20 * GB)),
        Status.WARN,
    ),
    "File, not counted": (on_sagemaker(Channel("train", "File")), Status.WARN),
    "File besides FastFile": (
        on_sagemaker(Channel("train", "FastFile"), Channel("test", "File", 60 * GB)),
        Status.WARN,
    ),
    "not told": (on_sagemaker(Channel("train")), Status.UNKNOWN),
    "the job is not known": (evidence(failed("baseline", "raised", "load")), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", INPUT_MODES)
def test_sagemaker_input_mode(case: str) -> None:
    """3.2"""
    given, status = INPUT_MODES[case]
    assert judged("3.2", given).status == status


def test_the_channels_that_are_copied_are_named() -> None:
    result = judged("3.2", on_sagemaker(Channel("train", "File", 64 * 2**30), Channel("test", "Pipe")))
    assert result.summary == "File mode copies train before training starts: 64.0 GiB."
    assert result.fix == '"train": TrainingInput("s3://…", input_mode="FastFile")'
    assert [(fact.name, fact.value) for fact in result.facts] == [
        ("channel: train", "File, 64.0 GiB"),
        ("channel: test", "Pipe"),
    ]


# 3.1 ------------------------------------------------------------------------------------------------


MB = 10**6


def reading(count: int, each: float, largest: float | None = None, **fields: object) -> Files:
    """So many files of so many MB each, one of which may be larger."""
    rest = largest if largest is not None else each
    total = (count - 1) * each + rest
    return Files(
        **{
            "readers": ("TFRecordDataset",),
            "compressions": ("",),
            "count": count,
            "sized": count,
            "sized_bytes": round(total * MB),
            "smallest_bytes": round(each * MB),
            "median_bytes": round(each * MB),
            "largest_bytes": round(rest * MB),
            "example": "/data/a.tfrecord",
            **fields,
        }
    )


def of(files: Files | None, **fields: object) -> Evidence:
    return evidence(program=program(files=files, **fields))


UNTOLD = "Python code in the pipeline may read files, which TensorFlow cannot tell."

SIZES = {
    "around 100 MB": (of(reading(40, 100)), Status.PASS),
    "exactly 10 MB": (of(reading(5000, 10)), Status.PASS),
    "many of 9.9 MB": (of(reading(5000, 9.9)), Status.WARN),
    "a thousand": (of(reading(1000, 0.2)), Status.WARN),
    "fewer than a thousand": (of(reading(999, 0.2)), Status.PASS),
    "a thousand, 100 MB in all": (of(reading(1000, 0.1)), Status.WARN),
    "a thousand, 99 MB in all": (of(reading(1000, 0.099)), Status.PASS),
    "more than were counted": (of(reading(10_000, 0.1, is_complete=False)), Status.WARN),
    "more than were sized": (
        of(reading(10_000, 0.1, sized=100, sized_bytes=10 * MB)),
        Status.WARN,
    ),
    "the demo's": (of(reading(8, 7)), Status.PASS),
    "one of 5 MB": (of(reading(1, 5)), Status.PASS),
    "one of 500 MB": (of(reading(1, 500)), Status.PASS),
    "one of 501 MB": (of(reading(1, 501)), Status.WARN),
    "nine of 501 MB": (of(reading(9, 501)), Status.WARN),
    "ten of 501 MB": (of(reading(10, 501)), Status.PASS),
    "ten of 501 MB for two machines": (of(reading(10, 501), cluster=Cluster(2, 2)), Status.WARN),
    "one large beside small ones": (of(reading(5, 1, largest=501)), Status.WARN),
    "one large among its like": (of(reading(9, 400, largest=501)), Status.PASS),
    "some besides Python": (of(reading(40, 100, problem=UNTOLD)), Status.PASS),
    "none can be sized": (of(Files(readers=("CsvDataset",), count=2, example="a")), Status.UNKNOWN),
    "Python": (of(Files(problem=UNTOLD)), Status.UNKNOWN),
    "a cache": (of(Files(is_cached=True)), Status.NOT_APPLICABLE),
    "a cache before Python": (of(Files(is_cached=True, problem=UNTOLD)), Status.NOT_APPLICABLE),
    "a dataset in memory": (of(Files()), Status.NOT_APPLICABLE),
    "arrays": (of(None, data_kind="arrays"), Status.NOT_APPLICABLE),
    "a generator": (of(None, data_kind="generator"), Status.UNKNOWN),
    "not looked for": (of(None), Status.UNKNOWN),
    "the job is not known": (evidence(failed("baseline", "raised", "load")), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", SIZES)
def test_file_sizes(case: str) -> None:
    """3.1"""
    given, status = SIZES[case]
    assert judged("3.1", given).status == status


ADVICE = {
    "images": (reading(20_000, 0.01, readers=("read_file",)), "for path, label in samples[shard::SHARDS]:"),
    "records": (reading(20_000, 0.01), "samples = tf.data.TFRecordDataset(paths)\n"),
    "packed": (
        reading(20_000, 0.01, compressions=("GZIP",)),
        'samples = tf.data.TFRecordDataset(paths, compression_type="GZIP")\n',
    ),
    "text": (reading(20_000, 0.01, readers=("CsvDataset",)), "samples = tf.data.TextLineDataset(paths)\n"),
}


@pytest.mark.parametrize("case", ADVICE)
def test_the_advice_is_a_program(case: str) -> None:
    """It writes as many shards as make about 100 MB each."""
    files, line = ADVICE[case]
    result = judged("3.1", of(files))
    compile(result.fix, "fix", "exec")
    assert line in result.fix and result.fix.startswith("SHARDS = 2  # of about 100 MB\n")


def test_the_files_are_summed_up() -> None:
    result = judged("3.1", of(reading(20_000, 0.01)))
    assert result.summary == "20,000 files of 9.77 KiB, in the median, are opened in every epoch."
    facts = {fact.name: fact.value for fact in result.facts}
    assert facts["all together"] == 200 * MB and facts["example"] == "/data/a.tfrecord"
    part = judged("3.1", of(reading(10_000, 0.01, is_complete=False)))
    assert part.summary.startswith("More than 10,000 files of")
    assert judged("3.1", of(reading(1, 5))).summary == "One file of 4.77 MiB."


# 3.5 ------------------------------------------------------------------------------------------------


def tried(
    used: str = "GZIP", *, cost: float = 3.0, saving: float = 1.0, ratio: float = 0.5, **fields: object
) -> Compression:
    """10 MB of records; the costs and savings are in seconds per GB."""
    return Compression(
        **{
            "reader": "TFRecordDataset",
            "used": used,
            "packed_with": used or "GZIP",
            "records": 100,
            "plain_bytes": 10 * MB,
            "packed_bytes": round(ratio * 10 * MB),
            "plain_read_s": 0.01,
            "packed_read_s": 0.01 + cost / 100,
            "plain_cpu_s": 0.01,
            "packed_cpu_s": 0.01 + cost / 100,
            "storage_bytes": GB,
            "storage_s": saving / (1 - ratio),
            **fields,
        }
    )


def weighed(
    compression: Compression | None, held: float | None = None, files: Files | None = None
) -> Evidence:
    """What was tried, and the rate with the source in memory, where the job's own is 100."""
    placement = measured("placement", [], compression=compression)
    rates = {} if held is None else {"source_cached": held}
    told = program(files=files or reading(8, 7))
    return evidence(placement, program=told, baseline=100.0, **rates)


COMPRESSIONS = {
    "GZIP costs more": (weighed(tried(cost=3, saving=2.9)), Status.WARN),
    "GZIP saves more": (weighed(tried(cost=3, saving=3.1)), Status.PASS),
    "ZLIB costs more": (weighed(tried("ZLIB", cost=3, saving=2.9)), Status.WARN),
    "GZIP costs more, reading 6 %": (weighed(tried(cost=3, saving=2.9), 106.0), Status.WARN),
    "GZIP costs more, reading 4 %": (weighed(tried(cost=3, saving=2.9), 104.0), Status.PASS),
    "plain, GZIP would save": (weighed(tried("", cost=1, saving=3), 106.0), Status.WARN),
    "plain, GZIP would cost": (weighed(tried("", cost=3, saving=1), 106.0), Status.PASS),
    "plain, reading costs 4 %": (weighed(tried("", cost=1, saving=3), 104.0), Status.PASS),
    "plain, reading not measured": (weighed(tried("", cost=1, saving=3)), Status.PASS),
    "plain, 80 %": (weighed(tried("", cost=1, saving=3, ratio=0.8), 106.0), Status.WARN),
    "plain, 81 %": (weighed(tried("", cost=1, saving=3, ratio=0.81), 106.0), Status.PASS),
    "a sample of 1 MB": (weighed(tried(plain_bytes=MB, packed_bytes=MB // 2)), Status.WARN),
    "a smaller sample": (weighed(tried(plain_bytes=MB - 1, packed_bytes=MB // 2)), Status.UNKNOWN),
    "less than that in all": (
        weighed(tried(plain_bytes=MB - 1, packed_bytes=MB // 2), files=reading(9, 0.1)),
        Status.PASS,
    ),
    "JPEG files": (
        weighed(None, files=reading(9, 1, readers=("read_file",), example="/a.JPG")),
        Status.PASS,
    ),
    "could not be tried": (weighed(Compression(problem="No.")), Status.UNKNOWN),
    "was not tried": (weighed(None), Status.UNKNOWN),
    "nothing is read": (weighed(None, files=Files()), Status.NOT_APPLICABLE),
    "a cache": (weighed(tried(), files=Files(is_cached=True)), Status.NOT_APPLICABLE),
    "Python": (weighed(None, files=Files(problem=UNTOLD)), Status.UNKNOWN),
    "placement was not run": (of(reading(8, 7)), Status.UNKNOWN),
}


@pytest.mark.parametrize("case", COMPRESSIONS)
def test_compression(case: str) -> None:
    """3.5"""
    given, status = COMPRESSIONS[case]
    assert judged("3.5", given).status == status


def test_what_unpacking_costs_and_saves_is_stated() -> None:
    result = judged("3.5", weighed(tried(cost=3, saving=1)))
    assert result.summary == "Unpacking GZIP costs 3.00 s of CPU time per GB, and saves 1.00 s of reading."
    assert 'for record in tf.data.TFRecordDataset(old, compression_type="GZIP"):' in result.fix
    assert "TFRecordWriter(new) as" in result.fix
    facts = {fact.name: fact.value for fact in result.facts}
    assert facts["reading: plain"] == "1,000 MB/s" and facts["reading: the files as they are"] == "500 MB/s"


def test_how_to_compress_is_said() -> None:
    result = judged("3.5", weighed(tried("", cost=1, saving=3), 130.0))
    compile(result.fix, "fix", "exec")
    assert 'TFRecordWriter(new, "GZIP")' in result.fix
    lines = judged("3.5", weighed(tried("", cost=1, saving=3, reader="TextLineDataset"), 130.0))
    assert lines.fix.splitlines()[-1] == 'tf.data.TextLineDataset(files, compression_type="GZIP")'
