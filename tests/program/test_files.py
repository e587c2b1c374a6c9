"""The files of real pipelines over tiny files, and what compressing these gives."""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfaudit.job import VariedJob
from tfaudit.program import compression, files
from tfaudit.program.job import describe
from tfaudit.records import Files

pytestmark = pytest.mark.tensorflow

Dataset = tf.data.Dataset
Records = tf.data.TFRecordDataset
Lines = tf.data.TextLineDataset

#: One record of zeros: long enough that reading it can be timed, and soon packed.
RECORD = bytes(2_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two TFRecord files of each compression, text, and two folders of images."""
    made = tmp_path_factory.mktemp("data")
    for kind, number in itertools.product(("", "GZIP", "ZLIB"), range(2)):
        path = made / f"{kind or 'plain'}-{number}.tfrecord"
        with tf.io.TFRecordWriter(str(path), kind) as writer:
            for _ in range(20 + number):
                writer.write(RECORD)
    (made / "empty.txt").touch()
    os.mkfifo(made / "pipe")
    (made / "lines.csv").write_text("0,1\n2,3\n")
    for number in range(6):
        path = made / "images" / "ab"[number % 2] / f"{number}.png"
        tf.io.write_file(str(path), tf.io.encode_png(np.zeros((4, 4, 3), np.uint8)))
    return made


def shards(folder: Path, kind: str = "plain") -> list[str]:
    return [str(folder / f"{kind}-{number}.tfrecord") for number in range(2)]


def labelled(folder: Path) -> Any:
    """Pairs of names: only the second names a file."""
    names = sorted(map(str, folder.glob("images/*/*.png")))
    return Dataset.from_tensor_slices(([Path(name).stem for name in names], names))


def decoded(path: Any) -> Any:
    return tf.io.decode_png(tf.io.read_file(path))


READ: dict[str, tuple[Callable[[Path], Any], str, str, int]] = {
    "records": (lambda f: Records(shards(f)).batch(2), "TFRecordDataset", "", 2),
    "records of GZIP": (
        lambda f: Records(shards(f, "GZIP"), "GZIP", num_parallel_reads=2).shuffle(3).batch(2).prefetch(1),
        "TFRecordDataset",
        "GZIP",
        2,
    ),
    "listed files of ZLIB": (
        lambda f: Dataset.list_files(str(f / "ZLIB*")).interleave(lambda name: Records(name, "ZLIB")),
        "TFRecordDataset",
        "ZLIB",
        2,
    ),
    "lines": (lambda f: Lines(str(f / "lines.csv")).repeat().batch(2), "TextLineDataset", "", 1),
    "CsvDataset": (
        lambda f: tf.data.experimental.CsvDataset(str(f / "lines.csv"), [0, 0]),
        "CsvDataset",
        "",
        1,
    ),
    "make_csv_dataset": (
        lambda f: tf.data.experimental.make_csv_dataset(str(f / "lines.csv"), 2, column_names=["a", "b"]),
        "CsvDataset",
        "",
        1,
    ),
    "bytes": (
        lambda f: tf.data.FixedLengthRecordDataset(shards(f), 2),
        "FixedLengthRecordDataset",
        "",
        2,
    ),
    "a folder of images": (
        lambda f: Dataset.list_files(str(f / "images/*/*")).repeat().shuffle(9).map(decoded).batch(2),
        "read_file",
        "",
        6,
    ),
    "names beside names": (
        lambda f: labelled(f).map(lambda stem, name: (stem, decoded(name))),
        "read_file",
        "",
        6,
    ),
    "image_dataset_from_directory": (
        lambda f: keras.utils.image_dataset_from_directory(
            f / "images", image_size=(4, 4), batch_size=2, verbose=False
        ),
        "read_file",
        "",
        6,
    ),
}


@pytest.mark.parametrize("kind", READ)
def test_the_files_of_a_pipeline(kind: str, folder: Path) -> None:
    build, reader, told, count = READ[kind]
    found = files.read(build(folder))
    assert (found.readers, found.compressions) == ((reader,), (told,))
    assert (found.count, found.sized, found.is_complete, found.problem) == (count, count, True, "")
    assert found.example.startswith(str(folder))
    assert 0 < found.smallest_bytes <= found.median_bytes <= found.largest_bytes
    assert found.total_bytes == found.sized_bytes


def test_sizes_are_summed_up(folder: Path) -> None:
    sizes = [Path(name).stat().st_size for name in shards(folder)]
    found = files.read(Records(shards(folder)))
    assert [found.smallest_bytes, found.largest_bytes] == sizes
    assert (found.median_bytes, found.sized_bytes) == (sizes[1], sum(sizes))


def generated(folder: Path) -> Any:
    return Dataset.from_generator(lambda: iter(shards(folder)), output_signature=tf.TensorSpec((), tf.string))


NOT_READ: dict[str, tuple[Callable[[Path], Any], Files]] = {
    "arrays": (lambda f: Dataset.from_tensor_slices(np.ones((4, 4))).batch(2), Files()),
    "a cache": (lambda f: Records(shards(f)).cache().shuffle(2), Files(is_cached=True)),
    "a generator": (
        generated,
        Files(
            readers=("from_generator",),
            problem="Which files from_generator reads cannot be told from the pipeline's graph.",
        ),
    ),
    "Python": (
        lambda f: Dataset.range(3).map(lambda x: tf.py_function(lambda y: y, [x], tf.int64)),
        Files(problem="Python code in the pipeline may read files, which TensorFlow cannot tell."),
    ),
    "names made in the function": (
        lambda f: Dataset.from_tensor_slices(["0", "2"]).map(
            lambda name: decoded(tf.strings.join([str(f), "/images/a/", name, ".png"]))
        ),
        Files(
            readers=("read_file",),
            problem="Which files read_file reads cannot be told from the pipeline's graph.",
        ),
    ),
}


@pytest.mark.parametrize("kind", NOT_READ)
def test_a_pipeline_whose_files_are_not_told(kind: str, folder: Path) -> None:
    build, told = NOT_READ[kind]
    assert files.read(build(folder)) == told


def test_names_that_python_makes_are_not_asked_for(folder: Path) -> None:
    """The user's code runs when the job does, and then only."""
    asked: list[str] = []

    def names() -> Any:
        for name in shards(folder):
            asked.append(name)
            yield name

    dataset = Dataset.from_generator(names, output_signature=tf.TensorSpec((), tf.string))
    found = files.read(dataset.flat_map(Records))
    assert (found.count, asked) == (0, []) and found.problem


def test_more_names_than_are_looked_at(folder: Path) -> None:
    found = files.read(labelled(folder).map(lambda stem, name: decoded(name)), most=4)
    assert (found.count, found.sized, found.is_complete) == (4, 4, False)


def test_when_time_runs_out_the_total_is_estimated(folder: Path) -> None:
    found = files.read(Records(shards(folder)), longest_s=-1.0)
    assert (found.count, found.sized, found.is_complete) == (2, 1, False)
    assert found.total_bytes == 2 * found.sized_bytes


def test_a_file_that_is_gone_has_no_size(folder: Path) -> None:
    found = files.read(tf.data.experimental.CsvDataset(str(folder / "gone.csv"), [0, 0]))
    assert (found.count, found.sized, found.total_bytes) == (1, 0, 0.0)


def test_files_in_memory_are_sized() -> None:
    tf.io.write_file("ram://tfaudit-test/a.txt", "four")
    assert files.size("ram://tfaudit-test/a.txt") == 4
    assert files.size("ram://tfaudit-test/b.txt") is files.size("nowhere://a") is files.size("/") is None


def test_the_job_is_told_with_its_files_only_where_asked(folder: Path) -> None:
    job = VariedJob(keras.Sequential(), Records(shards(folder)))
    assert describe(job, []).files is None
    told = describe(job, [], with_files=True).files
    assert told is not None and told.count == 2
    assert describe(VariedJob(keras.Sequential(), np.ones(3)), [], with_files=True).files is None


# Compression --------------------------------------------------------------------------------------


WEIGHED: dict[str, tuple[Callable[[Path], Any], str, str, str, int]] = {
    "plain": (lambda f: Records(shards(f)), "TFRecordDataset", "", "GZIP", 41),
    "GZIP": (lambda f: Records(shards(f, "GZIP"), "GZIP"), "TFRecordDataset", "GZIP", "GZIP", 41),
    "ZLIB": (lambda f: Records(shards(f, "ZLIB"), "ZLIB"), "TFRecordDataset", "ZLIB", "ZLIB", 41),
    "lines": (lambda f: Lines(str(f / "lines.csv")), "TextLineDataset", "", "GZIP", 2),
    "CsvDataset": (
        lambda f: tf.data.experimental.CsvDataset(str(f / "lines.csv"), [0, 0]),
        "CsvDataset",
        "",
        "GZIP",
        2,
    ),
}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A temporary folder, and little time for reading."""
    monkeypatch.setattr(compression, "READING_S", 0.0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("kind", WEIGHED)
def test_a_sample_is_written_both_ways_and_read(kind: str, folder: Path, quick: Path) -> None:
    build, reader, used, packed_with, records = WEIGHED[kind]
    before = {path: path.stat() for path in folder.rglob("*")}
    found = compression.weigh(build(folder))
    assert (found.problem, found.reader, found.used) == ("", reader, used)
    assert (found.packed_with, found.records) == (packed_with, records)
    assert found.plain_bytes == ((len(RECORD) + 16) * 41 if reader == "TFRecordDataset" else 8)
    assert (found.size_ratio < 0.1) == (reader == "TFRecordDataset")
    assert min(found.plain_read_s, found.packed_read_s, found.storage_s, found.storage_bytes) > 0
    after = {path: path.stat() for path in folder.rglob("*")}
    assert {p: s.st_mtime_ns for p, s in after.items()} == {p: s.st_mtime_ns for p, s in before.items()}
    assert list(quick.iterdir()) == []


def test_a_sample_ends_when_it_is_large_or_late(
    folder: Path, quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "SAMPLE_BYTES", 3 * len(RECORD))
    assert compression.weigh(Records(shards(folder))).records == 3
    monkeypatch.setattr(compression, "LONGEST_WRITING_S", -1.0)
    assert compression.weigh(Records(shards(folder))).records == 1


NOT_WEIGHED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "images": (
        lambda f: Dataset.list_files(str(f / "images/*/*")).map(decoded),
        "The pipeline reads no TFRecord and no text files.",
    ),
    "a generator": (generated, "Which files from_generator reads cannot be told"),
    "not what it says": (lambda f: Records(shards(f), "GZIP"), "A sample of the files could not be tried: "),
    "nothing in it": (lambda f: Lines([str(f / "empty.txt")]), "The files are empty, or cannot be read"),
    "a pipe": (
        lambda f: tf.data.experimental.CsvDataset([str(f / "pipe")], [0, 0]),
        "The files are empty, or cannot be read again.",
    ),
}


@pytest.mark.parametrize("kind", NOT_WEIGHED)
def test_what_is_not_tried_says_why(kind: str, folder: Path, quick: Path) -> None:
    build, problem = NOT_WEIGHED[kind]
    assert compression.weigh(build(folder)).problem.startswith(problem)
    assert list(quick.iterdir()) == []


def test_listing_obeys_its_deadline(folder: Path) -> None:
    listing = files.listed(Records(shards(folder)), time.monotonic() - 1)
    assert not listing.opened[0].is_complete


def test_a_name_list_that_is_shuffled_for_ever_is_read_once(folder: Path) -> None:
    """A shuffle would fill its buffer, a repeat hide that there are no more names."""
    names = labelled(folder).repeat().shuffle(10**9, seed=1)
    began = time.monotonic()
    found = files.read(names.map(lambda stem, name: decoded(name)))
    assert (found.count, found.is_complete) == (6, True)
    assert time.monotonic() - began < 1.0
