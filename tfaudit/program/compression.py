"""What compressing the data costs and saves, measured on a sample. Runs in the child, for some two seconds.

Records of the first files are written twice into the temporary folder, as they are and compressed, and both
copies are read, from memory, so that the difference is unpacking. What reading itself costs is measured on
bytes of the files as they are, which the system is asked to forget first.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..failures import describe
from ..records import Compression
from . import files

#: How much is written, and how long that may take.
SAMPLE_BYTES = 16_000_000
LONGEST_WRITING_S = 1.2

#: Each copy is read again and again for so long; the fastest pass counts.
READING_S = 0.3

#: How much of the files themselves is read, and how long at most.
STORAGE_BYTES = 32_000_000
LONGEST_STORAGE_S = 0.4
CHUNK = 1_000_000

#: For finding the files' names, of which a few are enough.
LONGEST_LISTING_S = 0.5
MOST_NAMES = 20

#: What files that are not compressed are compressed with.
USUAL = "GZIP"

#: Records that are taken at once.
BATCH = 256

#: What reads the files of a reader record by record; others are not tried.
RECORDS = {
    "TFRecordDataset": "TFRecordDataset",
    "TextLineDataset": "TextLineDataset",
    "CsvDataset": "TextLineDataset",
}


def weigh(dataset: Any) -> Compression:
    """Try compression on the first reader of records or lines that a ``tf.data.Dataset`` has.

    Temporary files are made where ``tempfile`` says, and are gone afterwards. Raises nothing.
    """
    listing = files.listed(dataset, time.monotonic() + LONGEST_LISTING_S, MOST_NAMES)
    opened = next((each for each in listing.opened if each.reader.name in RECORDS and each.names), None)
    if opened is None:
        return Compression(problem=listing.problem or "The pipeline reads no TFRecord and no text files.")
    name, used = opened.reader.name, opened.reader.compression
    if used is None:
        return Compression(
            reader=name, problem="Which compression the reader undoes is not written in the graph."
        )
    try:
        # A pipe, as in SageMaker's Pipe mode, has no size, and must not be read twice.
        names = tuple(each for each in opened.names if files.size(each))
        return _tried(name, used, names)
    except Exception as error:
        problem = f"A sample of the files could not be tried: {describe(error)}"
        return Compression(reader=name, used=used, problem=problem)


def _tried(name: str, used: str, names: tuple[str, ...]) -> Compression:
    reader = RECORDS[name]
    if not names:
        return Compression(reader=name, used=used, problem="The files are empty, or cannot be read again.")
    # From the end: what the job has begun with is the likelier to be in memory.
    storage_bytes, storage_s = _storage(names[::-1])
    packed_with = used if used and reader == "TFRecordDataset" else USUAL
    with tempfile.TemporaryDirectory(prefix="tfaudit-compression-") as folder:
        plain, packed = Path(folder, "plain"), Path(folder, "packed")
        with _writer(reader, plain, "") as write, _writer(reader, packed, packed_with) as pack:
            records = _copy(_reading(reader, list(names), used), write, pack)
        if not records:
            return Compression(reader=name, used=used, problem="The files hold no records.")
        plain_read_s, plain_cpu_s = _fastest(_reading(reader, str(plain), ""))
        packed_read_s, packed_cpu_s = _fastest(_reading(reader, str(packed), packed_with))
        return Compression(
            reader=name,
            used=used,
            packed_with=packed_with,
            records=records,
            plain_bytes=plain.stat().st_size,
            packed_bytes=packed.stat().st_size,
            plain_read_s=plain_read_s,
            packed_read_s=packed_read_s,
            plain_cpu_s=plain_cpu_s,
            packed_cpu_s=packed_cpu_s,
            storage_bytes=storage_bytes,
            storage_s=storage_s,
        )


def _reading(reader: str, names: Any, compression: str) -> Any:
    import tensorflow as tf

    return getattr(tf.data, reader)(names, compression_type=compression).batch(BATCH)


@contextlib.contextmanager
def _writer(reader: str, path: Path, compression: str) -> Iterator[Callable[[bytes], Any]]:
    """A function that writes one record, compressed as the writers that people use do it."""
    import tensorflow as tf

    if reader == "TFRecordDataset":
        with tf.io.TFRecordWriter(str(path), compression) as writer:
            yield writer.write
    else:
        with gzip.open(path, "wb", compresslevel=6) if compression else path.open("wb") as file:
            yield lambda line: file.write(line + b"\n")


def _copy(batches: Any, *writes: Callable[[bytes], Any]) -> int:
    """Write records every way until they are enough; how many."""
    deadline = time.monotonic() + LONGEST_WRITING_S
    records = size = 0
    for record in itertools.chain.from_iterable(batch.numpy() for batch in batches):
        for write in writes:
            write(record)
        records, size = records + 1, size + len(record)
        if size >= SAMPLE_BYTES or time.monotonic() > deadline:
            break
    return records


def _fastest(batches: Any) -> tuple[float, float]:
    """Seconds, and CPU seconds of all threads, of the fastest pass."""
    deadline = time.monotonic() + READING_S
    passes: list[tuple[float, float]] = []
    while not passes or time.monotonic() < deadline:
        began, cpu_began = time.perf_counter(), time.process_time()
        for _ in batches:
            pass
        passes.append((time.perf_counter() - began, time.process_time() - cpu_began))
    return min(passes)


def _storage(names: tuple[str, ...]) -> tuple[int, float]:
    """Bytes read of the files as they are, and the seconds that it took."""
    import tensorflow as tf

    size, began = 0, time.perf_counter()
    for name in names:
        _forget(name)
        with tf.io.gfile.GFile(name, "rb") as file:
            while chunk := file.read(CHUNK):
                size += len(chunk)
                if size >= STORAGE_BYTES or time.perf_counter() - began > LONGEST_STORAGE_S:
                    return size, time.perf_counter() - began
    return size, time.perf_counter() - began


def _forget(name: str) -> None:
    """Ask the system to drop what it holds of a file in memory, the beginning that is then read again."""
    with contextlib.suppress(
        OSError, AttributeError
    ):  # on other file systems, and where there is no such call
        descriptor = os.open(name, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, STORAGE_BYTES, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
