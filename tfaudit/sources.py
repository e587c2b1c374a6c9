"""Where a ``tf.data`` pipeline reads from storage, told from its graph alone."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .datasetgraph import IS_DATASET, DatasetGraph, producer
from .program.pipeline import PYTHON_OPS, method_name

#: Ops that read records; those of tensorflow-io begin with ``IO>``.
_READS_RECORDS = re.compile(
    r"(TFRecord|TextLine|FixedLengthRecord|CSV|Sql|LMDB|Generator|Load|Snapshot|DataService)Dataset(V\d)?$"
    r"|^IO>\w*(Dataset|Readable)"
)

#: What some of them do besides reading.
_BUSY_READERS = {
    "GeneratorDataset": "the generator's Python code",
    "CSVDataset": "parsing the text",
    "CSVDatasetV2": "parsing the text",
}

#: Datasets that hand elements on and do no work on any of them.
_IDLE = re.compile(
    r"(Tensor|TensorSlice|Range|FlatMap|Interleave|Prefetch|Options|Concatenate|Take|Skip|Shard|Repeat|Zip)"
    r"Dataset(V\d)?$"
)


#: Ops whose first input names files, with the number of the input that names their compression.
_OPENS_FILES = {
    "TFRecordDataset": 1,
    "TFRecordDatasetV2": 1,
    "TextLineDataset": 1,
    "FixedLengthRecordDatasetV2": 5,
    "CSVDataset": 1,
    "CSVDatasetV2": 1,
}


@dataclass(frozen=True)
class Sources:
    """Names of stages in a `DatasetGraph`.

    ``records`` read records: their output can be held. ``files`` have functions that read whole files, those
    nearest the end first; ``paths`` feed the first of these. What is above one of ``records`` or above a
    ``cache`` is in none of them. ``cached`` says that such a cache holds what was read, ``python`` that
    Python code in the pipeline may read, too. ``notes`` are sentences about what was found.
    """

    records: tuple[str, ...]
    files: tuple[str, ...]
    paths: tuple[str, ...]
    notes: tuple[str, ...]
    cached: bool = False
    python: bool = False


@dataclass(frozen=True)
class Reader:
    """A stage that opens files. ``name`` is what a user calls that which reads them.

    ``compression`` is what it is told to undo: ``GZIP``, ``ZLIB`` or nothing; None where the graph does not
    say. ``opens_names`` says that it is given names of files at all.
    """

    stage: str
    name: str
    compression: str | None = None
    opens_names: bool = True


def find(graph: DatasetGraph) -> Sources:
    """Follow the pipeline up from its end, on each path to the first stage that reads records."""
    records: list[str] = []
    files: list[str] = []
    notes: list[str] = []
    python = cached = False
    stages = [graph.output]
    for stage in stages:
        ops = graph.ops(stage)
        if graph.nodes[stage].op.startswith("CacheDataset"):
            above = (op for source in graph.upstream(stage) for op in graph.ops(source))
            cached = cached or any(op == "ReadFile" or _READS_RECORDS.search(op) for op in above)
            continue
        if any(map(_READS_RECORDS.search, ops)):
            records.append(stage)
            if besides := _besides(ops):
                notes.append(
                    f"What is held of {reader(graph, stage)} contains {' and '.join(besides)}: storage costs"
                    " at most the difference."
                )
            continue
        if "ReadFile" in ops:
            files.append(stage)
        python = python or not PYTHON_OPS.isdisjoint(ops)
        stages += [source for source in graph.inputs(stage) if source not in stages]
    if cached:
        notes.append(
            "The pipeline caches what it reads (cache()): its source is read in the first epoch only."
        )
    if python:
        notes.append("Python code in the pipeline may read from storage, which TensorFlow cannot tell.")
    first = [stage for stage in files if not set(files) & set(graph.upstream(stage))]
    paths = dict.fromkeys(source for stage in first for source in graph.inputs(stage)[:1])
    return Sources(tuple(records), tuple(files), tuple(paths), tuple(notes), cached, python)


def readers(graph: DatasetGraph, found: Sources) -> tuple[Reader, ...]:
    """All that reads in a pipeline: what reads records, and functions that read whole files."""
    return (
        *(_record_reader(graph, stage) for stage in found.records),
        *(Reader(stage, "read_file", "") for stage in found.files),
    )


def _record_reader(graph: DatasetGraph, stage: str) -> Reader:
    opening = [(node, others) for node, others in graph.reached(stage) if node.op in _OPENS_FILES]
    told = set()
    for node, others in opening:
        constant = others.get(producer(node.input[_OPENS_FILES[node.op]]))
        values = constant.attr["value"].tensor.string_val if constant is not None else ()
        told.add(values[0].decode() if values else None)
    compression = told.pop() if len(told) == 1 else None
    return Reader(stage, reader(graph, stage), compression, bool(opening))


def reader(graph: DatasetGraph, stage: str) -> str:
    """What a user calls that which reads records in a stage: ``TFRecordDataset``, ``from_generator``."""
    ops = sorted(filter(_READS_RECORDS.search, graph.ops(stage)))
    return " and ".join(dict.fromkeys(map(method_name, ops)))


def _besides(ops: frozenset[str]) -> list[str]:
    """What a stage that reads records does besides: it cannot be told apart from reading."""
    busy = {_BUSY_READERS[op] for op in ops if op in _BUSY_READERS}
    at_work = {op for op in ops if IS_DATASET.search(op) and not _IDLE.search(op)}
    return sorted(busy | {method_name(op) for op in at_work if not _READS_RECORDS.search(op)})
