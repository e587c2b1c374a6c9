"""The stages of a tf.data pipeline, by the names of the methods that a user wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tfaudit.program.pipeline import method_name, stages
from tfaudit.records import Stage

NAMES = [
    ("_MapDataset", "map"),
    ("_ParallelMapDataset", "map"),
    ("MapDataset", "map"),
    ("ParallelMapDatasetV2", "map"),
    ("_InterleaveDataset", "interleave"),
    ("_ParallelInterleaveDataset", "interleave"),
    ("ParallelInterleaveDatasetV4", "interleave"),
    ("_BatchDataset", "batch"),
    ("_ParallelBatchDataset", "batch"),
    ("BatchDatasetV2", "batch"),
    ("_PaddedBatchDataset", "padded_batch"),
    ("_PrefetchDataset", "prefetch"),
    ("_ShuffleDataset", "shuffle"),
    ("ShuffleDatasetV3", "shuffle"),
    ("CacheDataset", "cache"),
    ("_RepeatDataset", "repeat"),
    ("_TakeDataset", "take"),
    ("_FilterDataset", "filter"),
    ("_FlatMapDataset", "flat_map"),
    ("_GroupByWindowDataset", "group_by_window"),
    ("_OptionsDataset", "with_options"),
    ("_ZipDataset", "zip"),
    ("_DirectedInterleaveDataset", "sample_from_datasets"),
    ("_RangeDataset", "range"),
    ("_TensorSliceDataset", "from_tensor_slices"),
    ("_TensorDataset", "from_tensors"),
    ("TFRecordDatasetV2", "TFRecordDataset"),
    ("TextLineDatasetV2", "TextLineDataset"),
    ("FixedLengthRecordDatasetV2", "FixedLengthRecordDataset"),
    ("GeneratorDataset", "from_generator"),
]


@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_a_class_or_op_is_named_as_its_method(kind: str, name: str) -> None:
    assert method_name(kind) == name


def dataset(kind: str, *inputs: Any, **attributes: Any) -> Any:
    """Stands in for a tf.data.Dataset of that class."""
    made = type(kind, (), attributes)()
    made._inputs = lambda: list(inputs)
    return made


def test_stages_are_listed_from_the_source_to_the_end() -> None:
    source = dataset("_TensorSliceDataset")
    mapped = dataset("_ParallelMapDataset", source, _num_parallel_calls=-1)
    batched = dataset("_BatchDataset", mapped, _batch_size=32, _drop_remainder=True)
    assert stages(dataset("_PrefetchDataset", batched, _buffer_size=-1)) == (
        Stage(op="from_tensor_slices", before=("map", "batch", "prefetch")),
        Stage(op="map", num_parallel_calls=-1, after=("from_tensor_slices",), before=("batch", "prefetch")),
        Stage(
            op="batch",
            batch_size=32,
            drop_remainder=True,
            after=("from_tensor_slices", "map"),
            before=("prefetch",),
        ),
        Stage(op="prefetch", buffer_size=-1, after=("from_tensor_slices", "map", "batch")),
    )


def test_a_serial_stage_has_no_parallel_calls() -> None:
    (_, mapped) = stages(dataset("_MapDataset", dataset("_RangeDataset")))
    assert mapped == Stage(op="map", after=("range",))


def test_all_inputs_come_before_the_stage_that_joins_them() -> None:
    joined = dataset("_ZipDataset", dataset("_RangeDataset"), dataset("TFRecordDatasetV2"))
    assert [stage.op for stage in stages(joined)] == ["range", "TFRecordDataset", "zip"]


def test_what_cannot_be_read_is_left_out() -> None:
    """A size may be a symbolic tensor, of which there is no number."""
    assert stages(dataset("_BatchDataset", _batch_size=object())) == (Stage(op="batch"),)


TOLD = """
import json, tensorflow as tf
from tfaudit.program import pipeline
options = tf.data.Options()
options.deterministic = False
options.autotune.enabled = False
options.threading.private_threadpool_size = 2
data = tf.data.Dataset.range(4).map(lambda n: {"a": n}, num_parallel_calls=2, deterministic=True)
data = data.batch(2).with_options(options)
_, mapped, *others = pipeline.stages(data)
ours = [stage.is_own for stage in pipeline.stages(data.unbatch()) if stage.op == "map"]
given = [each.element for each in (mapped, *others)]
print(json.dumps([mapped.deterministic, others[0].deterministic, *given]))
print(json.dumps(pipeline.options(data)))
print(json.dumps(ours))
print(json.dumps(pipeline.options(tf.data.Dataset.range(4))))
"""


@pytest.mark.tensorflow
def test_what_a_stage_gives_and_the_options_that_are_set() -> None:
    done = subprocess.run([sys.executable, "-c", TOLD], capture_output=True, text=True, check=True)
    stages, given, ours, none = map(json.loads, done.stdout.splitlines())
    assert stages == [True, None, ["a: int64[]"], ["a: int64[?]"], ["a: int64[?]"]]
    assert given == {
        "autotune.enabled": "False",
        "deterministic": "False",
        "threading.private_threadpool_size": "2",
    }
    assert none == {}
    assert ours == [True, False], "unbatch maps by itself"
