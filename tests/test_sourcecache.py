"""Sources held in memory: what is read again, what stays as it was, and what cannot be held."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfaudit.feeding import NotTransformable
from tfaudit.sourcecache import LONG, CachedSources, cache_sources

pytestmark = pytest.mark.tensorflow

Dataset = tf.data.Dataset
Records = tf.data.TFRecordDataset
Lines = tf.data.TextLineDataset


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Records 0 to 4 and 10 to 14 in two files, lines 0,1 to 3,1, six images, and what tf.data saves."""
    for shard in range(2):
        with tf.io.TFRecordWriter(str(tmp_path / f"{shard}.tfrecord")) as writer:
            for number in range(5):
                writer.write(b"%d" % (10 * shard + number))
    (tmp_path / "lines.csv").write_text("0,1\n1,1\n2,1\n3,1\n")
    (tmp_path / "bytes.bin").write_bytes(bytes(range(8)))
    for number in range(6):
        image = np.full((4 + number, 4, 3), number, np.uint8)
        path = tmp_path / "images" / "ab"[number % 2] / f"{number}.png"
        tf.io.write_file(str(path), tf.io.encode_png(image))
    images = sorted(map(str, tmp_path.glob("images/*/*.png")))
    (tmp_path / "labels.csv").write_text("".join(f"{image},{len(image)}\n" for image in images))
    numbered = Dataset.range(5).map(lambda number: {"a": number, "b": tf.strings.as_string(number)})
    numbered.save(str(tmp_path / "saved"))
    list(Dataset.range(5).snapshot(str(tmp_path / "snapshot")))
    return tmp_path


def destroy(folder: Path) -> None:
    """Empty every file but those in which tf.data describes what it saved."""
    for path in folder.rglob("*.*"):
        if path.is_file() and path.name not in ("dataset_spec.pb", "snapshot.metadata"):
            path.write_bytes(b"")


def held(dataset: Any, **limits: Any) -> CachedSources:
    return cache_sources(dataset, **{"elements": 100, "bytes_limit": 10**6, "seconds_limit": 20.0, **limits})


def values(dataset: Any) -> list[Any]:
    """Its batches as nested lists."""
    flat = [tf.nest.flatten(batch, expand_composites=True) for batch in dataset]
    return [[tensor.numpy().tolist() for tensor in batch] for batch in flat]


def shards(folder: Path) -> list[str]:
    return [str(folder / "0.tfrecord"), str(folder / "1.tfrecord")]


def number(text: Any) -> Any:
    return tf.strings.to_number(text)


def image(path: Any) -> Any:
    return tf.image.resize(tf.io.decode_png(tf.io.read_file(path), channels=3), (2, 2))


def generator(folder: Path, spec: Any, *elements: Any) -> Any:
    def read() -> Any:
        if (folder / "bytes.bin").stat().st_size:
            yield from elements

    return Dataset.from_generator(read, output_signature=spec)


def with_table(folder: Path) -> Any:
    pairs = tf.lookup.KeyValueTensorInitializer(["1", "3"], [7, 8])
    table, factor = tf.lookup.StaticHashTable(pairs, 0), tf.Variable(2)
    return Records(shards(folder)).map(lambda text: table.lookup(text) * factor).batch(2)


def with_python(folder: Path) -> Any:
    numbers = Records(shards(folder)).map(
        lambda text: tf.py_function(lambda t: int(t.numpy()), [text], tf.int64)
    )
    return numbers.map(lambda value: tf.numpy_function(lambda v: v + 1, [value], tf.int64)).batch(2)


def captured(folder: Path) -> Any:
    lines = Lines(str(folder / "lines.csv"))
    return Dataset.range(2).flat_map(lambda _: lines).batch(3)


PIPELINES: dict[str, Callable[[Path], Any]] = {
    "records": lambda f: Records(shards(f), num_parallel_reads=2).map(number).batch(3),
    "lines, shuffled": lambda f: (
        Lines(str(f / "lines.csv")).shuffle(3, seed=1).repeat(2).batch(3).prefetch(2)
    ),
    "bytes": lambda f: tf.data.FixedLengthRecordDataset(str(f / "bytes.bin"), 2).batch(
        3, drop_remainder=True
    ),
    "CsvDataset": lambda f: tf.data.experimental.CsvDataset(str(f / "lines.csv"), [tf.int32, 0]).batch(2),
    "make_csv_dataset": lambda f: tf.data.experimental.make_csv_dataset(
        str(f / "lines.csv"), 2, column_names=["a", "b"], label_name="b", num_epochs=1, shuffle_seed=1
    ),
    "listed files": lambda f: (
        Dataset.list_files(str(f / "*.tfrecord"), seed=3)
        .interleave(Records, num_parallel_calls=2)
        .shuffle(4, seed=3)
        .map(number, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(3)
        .prefetch(tf.data.AUTOTUNE)
    ),
    "a generator of dicts": lambda f: generator(
        f,
        {"text": tf.TensorSpec((), tf.string), "row": tf.TensorSpec((None,), tf.int64)},
        {"text": "a", "row": [1]},
        {"text": "b", "row": [1, 2, 3]},
    ).padded_batch(2),
    "a generator of batches": lambda f: generator(
        f, {"rows": tf.TensorSpec((None, 2), tf.int32)}, {"rows": [[1, 2]]}, {"rows": [[3, 4], [5, 6]]}
    ),
    "a ragged generator": lambda f: generator(
        f, tf.RaggedTensorSpec((None, None), tf.int32), tf.ragged.constant([[1], [2, 3]])
    ).batch(1),
    "a sparse generator": lambda f: generator(
        f, tf.SparseTensorSpec((1, 2), tf.int32), tf.sparse.from_dense([[0, 5]])
    ).batch(1),
    "saved": lambda f: Dataset.load(str(f / "saved")).map(lambda element: element["b"]).batch(2),
    "a snapshot": lambda f: Dataset.range(5).snapshot(str(f / "snapshot")).batch(2),
    "zipped": lambda f: Dataset.zip(
        (Lines(str(f / "lines.csv")), Records(shards(f)), Dataset.range(9))
    ).batch(2),
    "sampled": lambda f: Dataset.sample_from_datasets(
        [Lines(str(f / "lines.csv")), Records(shards(f))], [0.5, 0.5], seed=1
    ).batch(2),
    "a captured dataset": captured,
    "a table and a variable": with_table,
    "Python functions": with_python,
    "a layer": lambda f: Records(shards(f)).map(keras.layers.StringLookup(vocabulary=["1", "2"])).batch(2),
    "buckets": lambda f: (
        Records(shards(f)).bucket_by_sequence_length(tf.strings.length, [2], [2, 2]).prefetch(1)
    ),
    "unbatched and scanned": lambda f: (
        Records(shards(f)).map(number).batch(3).unbatch().scan(0.0, lambda s, x: (s + x, s + x)).batch(4)
    ),
    "random": lambda f: (
        Records(shards(f)).map(lambda x: number(x) + tf.random.stateless_uniform((), (1, 2))).batch(2)
    ),
    "images": lambda f: (
        Dataset.list_files(str(f / "images/*/*.png"), seed=1).map(image, num_parallel_calls=2).batch(4)
    ),
    "images in folders": lambda f: keras.utils.image_dataset_from_directory(
        str(f / "images"), image_size=(2, 2), batch_size=2, seed=1, verbose=False
    ),
    "images named in a file": lambda f: (
        Lines(str(f / "labels.csv"))
        .map(lambda line: tf.strings.split(line, ","))
        .map(
            lambda part: (
                tf.cond(tf.strings.length(part[1]) > 0, lambda: image(part[0]), lambda: 0.0),
                part[1],
            )
        )
        .batch(4)
    ),
    "pairs of images": lambda f: (
        Dataset.list_files(str(f / "images/a/*.png"), shuffle=False)
        .map(lambda path: (path, image(path)))
        .map(lambda path, first: (first, image(tf.strings.regex_replace(path, r"a/(\d)", r"a/4"))))
        .batch(2)
    ),
    "folders of images": lambda f: (
        Dataset.from_tensor_slices([str(f / "images/a/*"), str(f / "images/b/*")])
        .interleave(lambda glob: Dataset.list_files(glob, shuffle=False).take(2).map(tf.io.read_file))
        .batch(2)
    ),
}


@pytest.mark.parametrize("kind", PIPELINES)
def test_the_batches_are_the_same_and_nothing_is_read_for_them(kind: str, folder: Path) -> None:
    make = PIPELINES[kind]
    expected, original = values(make(folder)), make(folder)
    cached = held(original).dataset
    spec, cardinality, kept_last = original.element_spec, int(original.cardinality()), type(original)
    del original
    gc.collect()  # nobody else keeps the user's Python functions
    destroy(folder)
    with contextlib.suppress(tf.errors.OpError, ValueError, RuntimeError):
        assert values(make(folder)) != expected
    assert values(cached) == expected != []
    assert len(values(cached)) == len(expected)
    assert cached.element_spec == spec
    assert int(cached.cardinality()) == cardinality
    assert ("Prefetch" in type(cached).__name__) == ("Prefetch" in kept_last.__name__)


@pytest.mark.parametrize(
    ("limits", "count"), [({"elements": 3}, 3), ({"bytes_limit": 4}, 4), ({"seconds_limit": 0.0}, 1)]
)
def test_what_has_no_room_is_repeated(limits: dict[str, Any], count: int, folder: Path) -> None:
    """Records 0 to 4 have a byte each; how many there are in all is not known."""
    cached = held(Records(shards(folder)).batch(2).prefetch(1), **limits)
    assert (cached.elements, cached.bytes) == (count, count)
    assert int(cached.dataset.cardinality()) == LONG / 2
    destroy(folder)
    first = [int(text) for (batch,) in values(cached.dataset.take(6)) for text in batch]
    assert first == [i % count for i in range(12)]
    assert cached.notes == (
        f"The first {count} elements of TFRecordDataset are held in memory (0.0 MB) and repeated: losses do"
        " not compare.",
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda f: Dataset.load(str(f / "saved")).map(lambda element: element["a"]),
        lambda f: (
            Records(str(f / "0.tfrecord")).map(number).apply(tf.data.experimental.assert_cardinality(5))
        ),
        lambda f: Dataset.list_files(str(f / "images/*/[01234].png"), seed=1).map(tf.io.read_file),
    ],
    ids=["the source's", "asserted", "the files'"],
)
def test_an_epoch_stays_as_long_as_it_was(make: Callable[[Path], Any], folder: Path) -> None:
    cached = held(make(folder).batch(2), elements=3)
    destroy(folder)
    assert cached.elements == 3
    assert [len(batch[0]) for batch in values(cached.dataset)] == [2, 2, 1]
    assert int(cached.dataset.cardinality()) == 3


def test_epochs_without_end_stay_so(folder: Path) -> None:
    paths = Dataset.list_files(str(folder / "images/*/*.png"), seed=1).repeat()
    cached = held(paths.map(image, num_parallel_calls=2).batch(4), elements=20)
    assert int(cached.dataset.cardinality()) == tf.data.INFINITE_CARDINALITY
    destroy(folder)
    assert len(values(cached.dataset.take(10))) == 10


def test_sources_share_the_limits(folder: Path) -> None:
    both = Dataset.zip((Records(shards(folder)), Lines(str(folder / "lines.csv"))))
    assert held(both, bytes_limit=6).bytes == 3 + 3


def test_paths_are_shuffled_anew_in_every_epoch(folder: Path) -> None:
    """In the original's order: reading them beforehand has used up no epoch."""
    make = PIPELINES["images"]
    original, cached = make(folder), held(make(folder)).dataset
    epochs = [values(original) for _ in range(3)]
    assert [values(cached) for _ in range(3)] == epochs
    assert epochs[0] != epochs[1]


def test_options_stay_in_force(folder: Path) -> None:
    options = tf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = 3
    for dataset in (Records(shards(folder)).with_options(options).batch(2), Records(shards(folder)).batch(2)):
        for whole in (dataset, dataset.prefetch(1), dataset.prefetch(1).with_options(options)):
            assert held(whole).dataset.options() == whole.options()


@pytest.mark.parametrize(
    ("make", "note"),
    [
        (
            lambda f: Dataset.list_files(shards(f)).interleave(lambda path: Records(path).map(number)),
            "What is held of TFRecordDataset contains map: storage costs at most the difference.",
        ),
        (
            lambda f: generator(f, tf.TensorSpec((), tf.int32), 1, 2),
            "What is held of from_generator contains the generator's Python code: storage costs at most the"
            " difference.",
        ),
        (
            with_python,
            "Python code in the pipeline may read from storage, which TensorFlow cannot tell.",
        ),
        (
            lambda f: Dataset.zip((Records(shards(f)).cache(), Records(shards(f)))),
            "The pipeline caches what it reads (cache()): its source is read in the first epoch only.",
        ),
    ],
    ids=["more than reading", "a generator", "Python functions", "one branch cached"],
)
def test_what_else_the_difference_contains(make: Callable[[Path], Any], note: str, folder: Path) -> None:
    notes = held(make(folder)).notes
    assert notes[0].startswith("All ")
    assert notes[-1] == note


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda f: Dataset.range(3).batch(2), "The data is in memory already: nothing is read from storage."),
        (
            lambda f: Dataset.range(3).map(lambda x: tf.numpy_function(lambda y: y, [x], tf.int64)),
            "Python code in the pipeline may read from storage, which TensorFlow cannot tell.",
        ),
        (
            lambda f: Records(shards(f)).map(number).cache().shuffle(3).prefetch(1),
            "The pipeline caches what it reads (cache()): its source is read in the first epoch only.",
        ),
        (lambda f: Records([]).batch(2), "The sources of the pipeline gave no element."),
        (
            lambda f: np.zeros(3),
            "Only the sources of a tf.data.Dataset can be held in memory, not a ndarray's.",
        ),
        (
            lambda f: tf.distribute.MirroredStrategy(["CPU:0"]).experimental_distribute_dataset(
                Records(shards(f)).batch(2)
            ),
            "Only the sources of a tf.data.Dataset can be held in memory, not a DistributedDataset's.",
        ),
    ],
    ids=["arrays", "Python functions", "cached", "empty", "no dataset", "distributed"],
)
def test_what_cannot_be_held(make: Callable[[Path], Any], sentence: str, folder: Path) -> None:
    with pytest.raises(NotTransformable) as raised:
        held(make(folder))
    assert str(raised.value) == sentence


def test_what_cannot_be_read(folder: Path) -> None:
    with pytest.raises(NotTransformable, match=r"^What .* cannot be held in memory: NotFoundError: .*\.$"):
        held(Records(str(folder / "none")).batch(2))


def test_arrays_that_are_too_large_are_not_copied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfaudit.sourcecache.MOST_ARRAY_BYTES", 10_000_000)
    arrays = Dataset.from_tensor_slices(np.zeros((11, 10**6), np.uint8)).prefetch(1)
    with pytest.raises(NotTransformable, match=r"contains arrays of 11 MB, too much"):
        held(Dataset.zip((arrays, Records(shards(folder)))))


@pytest.mark.parametrize("eagerly", [False, True])
def test_keras_trains_on_it_within_a_strategy(eagerly: bool, folder: Path) -> None:
    rows = Records(shards(folder)).map(lambda text: (tf.reshape(number(text), (1,)), number(text)))
    tf.config.run_functions_eagerly(eagerly)
    try:
        with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
            model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
            model.compile("sgd", "mse")
            cached = held(rows.repeat().batch(2).prefetch(1))
            destroy(folder)
            history = model.fit(cached.dataset, steps_per_epoch=5, epochs=3, verbose=0)
    finally:
        tf.config.run_functions_eagerly(False)
    assert len(history.history["loss"]) == 3
