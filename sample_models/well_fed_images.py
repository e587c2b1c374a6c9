"""The classifier of input_bound_images.py, fed fast enough: the clean sample.

Images are decoded and shrunk in parallel, once, and stay in memory as bytes (15 MB); what is left
per step, flipping and brightening whole batches, happens in parallel and ahead of the model. Shapes
are static, training stops on a loss that is not a number, throughput is reported as it goes, and
runs are recorded with MLflow where a tracking server is configured.

    tfaudit run sample_models/well_fed_images.py

expect: none
"""

import os

import keras
import photos
import tensorflow as tf

import tfaudit

IMAGE_SIDE = 64
BATCH_SIZE = 32


def parse(record):
    """A TFRecord of photos.py as a small image of bytes and its label."""
    features = tf.io.parse_single_example(
        record,
        {
            "image": tf.io.FixedLenFeature([], tf.string),
            "label": tf.io.FixedLenFeature([], tf.int64),
        },
    )
    image = tf.io.decode_jpeg(features["image"], channels=3)
    image = tf.image.resize(image, [IMAGE_SIDE, IMAGE_SIDE], antialias=True)
    return tf.cast(tf.round(image), tf.uint8), features["label"]


def augment(images, labels):
    """Mirror and brighten the images of a batch, each its own way."""
    images = tf.image.random_flip_left_right(tf.cast(images, tf.float32))
    images += tf.random.uniform([BATCH_SIZE, 1, 1, 1], -32.0, 32.0)
    return tf.clip_by_value(images, 0.0, 255.0), labels


def tracking():
    """The experiment tracker's callback, where the environment names a tracking server."""
    if not os.environ.get("MLFLOW_TRACKING_URI"):
        return []
    import mlflow
    import mlflow.keras

    mlflow.set_experiment("photographs")
    mlflow.start_run()
    return [mlflow.keras.MlflowCallback()]


keras.utils.set_random_seed(1)

decoded = (
    tf.data.TFRecordDataset(
        [str(shard) for shard in photos.shards(photos.folder())],
        num_parallel_reads=tf.data.AUTOTUNE,
    )
    .map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    .cache()
)
# One pass fills the cache, so that the first epoch is as fast as the others.
examples = sum(1 for _ in decoded)

dataset = (
    decoded.shuffle(examples)
    .repeat()
    .batch(BATCH_SIZE, drop_remainder=True)
    .map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    .prefetch(tf.data.AUTOTUNE)
)

model = keras.applications.MobileNetV3Small(
    input_shape=(IMAGE_SIDE, IMAGE_SIDE, 3), weights=None, classes=len(photos.CLASSES)
)
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(),
    metrics=["accuracy"],
)
model.fit(
    dataset,
    epochs=2,
    steps_per_epoch=examples // BATCH_SIZE,
    callbacks=[keras.callbacks.TerminateOnNaN(), tfaudit.ThroughputCallback(), *tracking()],
    verbose=2,
)
