"""A classifier of sounds stored as compressed records.

Defect: the TFRecord files are compressed with GZIP, which takes noise badly, so that they are hardly
smaller; unpacking them takes one core more time in every epoch than the model needs to train.
Fix: write them again without `TFRecordOptions(compression_type="GZIP")`, or `.cache()` what fits.

    tfaudit run sample_models/gzip_records.py

expect: 3.4 fail
expect: 3.5 warn
"""

import keras
import records
import tensorflow as tf

CLIPS = 4000
LENGTH = 4096  # samples of sound
BATCH_SIZE = 64


def write(folder):
    """Two files, each clip a record: its label in the first byte, then the sound."""
    for shard in range(2):
        with tf.io.TFRecordWriter(str(folder / f"{shard}.tfrecord"), "GZIP") as writer:
            for number in range(shard, CLIPS, 2):
                sound, label = records.clip(number, LENGTH)
                writer.write(bytes([label]) + sound.tobytes())


def parse(record):
    """The sound in a record, between -1 and 1, thinned out, and its label."""
    label = tf.io.decode_raw(tf.strings.substr(record, 0, 1), tf.uint8)[0]
    sound = tf.io.decode_raw(tf.strings.substr(record, 1, -1), tf.int16)
    sound = tf.ensure_shape(sound, [LENGTH])[::16]
    return tf.cast(sound, tf.float32) / 32768.0, label


keras.utils.set_random_seed(1)

files = sorted(map(str, records.clips("gzip", write).glob("*.tfrecord")))
dataset = (
    tf.data.TFRecordDataset(files, compression_type="GZIP")
    .map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    .batch(BATCH_SIZE, drop_remainder=True)
    .prefetch(tf.data.AUTOTUNE)
)

model = keras.Sequential(
    [
        keras.Input((LENGTH // 16,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(records.CLASSES),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=3, verbose=2)
