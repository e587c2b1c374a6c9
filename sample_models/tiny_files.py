"""A classifier of sounds that lie in one small file each.

Defect: every clip is a file of 64 KB. Opening a file costs as much as reading far more than that, and
where storage is across a network each of them is a request of its own.
Fix: write the clips once into TFRecord files of about 100 MB, and read those with
`tf.data.TFRecordDataset(files).interleave(…)`.

    tfaudit run sample_models/tiny_files.py

expect: 3.1 warn
"""

import keras
import records
import tensorflow as tf

CLIPS = 1600
LENGTH = 32_768  # samples of sound
BATCH_SIZE = 32


def write(folder):
    """A file per clip, named by number and label."""
    for number in range(CLIPS):
        sound, label = records.clip(number, LENGTH)
        (folder / f"{number:05}-{label}.raw").write_bytes(sound.tobytes())


def load(path):
    """The sound in a file, between -1 and 1, and the label in its name."""
    sound = tf.cast(tf.io.decode_raw(tf.io.read_file(path), tf.int16), tf.float32) / 32768.0
    label = tf.strings.to_number(tf.strings.substr(path, -5, 1), tf.int32)
    return tf.ensure_shape(sound, [LENGTH])[:, None], label


keras.utils.set_random_seed(1)

dataset = (
    tf.data.Dataset.list_files(str(records.clips("tiny", write) / "*.raw"), seed=1)
    .map(load, num_parallel_calls=tf.data.AUTOTUNE)
    .batch(BATCH_SIZE, drop_remainder=True)
    .prefetch(tf.data.AUTOTUNE)
)

model = keras.Sequential(
    [
        keras.Input((LENGTH, 1)),
        keras.layers.Conv1D(16, 32, strides=8, activation="relu"),
        keras.layers.Conv1D(32, 16, strides=8, activation="relu"),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(records.CLASSES),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=3, verbose=2)
