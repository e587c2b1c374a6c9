"""An image classifier that waits for its input: every image is decoded and augmented one by one.

Defect: both `map` calls run one image after another, and without `prefetch` the model stands still
while they make the next batch. They also change colours and add grain at full size, where most of
the pixels are about to be thrown away.
Fix: `num_parallel_calls=tf.data.AUTOTUNE` on the maps and `.prefetch(tf.data.AUTOTUNE)` at the end;
then resize first and keep the small images with `.cache()`, as well_fed_images.py does.

    tfaudit run sample_models/input_bound_images.py

expect: 1.8 fail
expect: 4.1 warn or fail
expect: 4.2 warn
"""

import keras
import photos
import tensorflow as tf

IMAGE_SIDE = 64
BATCH_SIZE = 16


def parse(record):
    """A TFRecord of photos.py as an image and its label."""
    features = tf.io.parse_single_example(
        record,
        {
            "image": tf.io.FixedLenFeature([], tf.string),
            "label": tf.io.FixedLenFeature([], tf.int64),
        },
    )
    image = tf.io.decode_jpeg(features["image"], channels=3)
    image = tf.ensure_shape(image, [photos.CROP_SIDE, photos.CROP_SIDE, 3])
    return tf.image.convert_image_dtype(image, tf.float32), features["label"]


def augment(image, label):
    """Vary colours, side, position and grain, then shrink to what the model takes."""
    image = tf.image.random_brightness(image, 0.2)
    image = tf.image.random_contrast(image, 0.8, 1.2)
    image = tf.image.random_saturation(image, 0.8, 1.2)
    image = tf.image.random_hue(image, 0.05)
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_crop(image, [320, 320, 3])
    image += tf.random.normal(tf.shape(image), stddev=0.02)
    image = tf.image.resize(image, [IMAGE_SIDE, IMAGE_SIDE], antialias=True)
    return tf.clip_by_value(image, 0.0, 1.0) * 255.0, label


keras.utils.set_random_seed(1)

dataset = (
    tf.data.TFRecordDataset([str(shard) for shard in photos.shards(photos.folder())])
    .shuffle(512)
    .map(parse)
    .map(augment)
    .batch(BATCH_SIZE, drop_remainder=True)
)

model = keras.Sequential(
    [
        keras.Input((IMAGE_SIDE, IMAGE_SIDE, 3)),
        keras.layers.Rescaling(1 / 255),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        keras.layers.Conv2D(64, 3, strides=2, padding="same", activation="relu"),
        keras.layers.Conv2D(128, 3, strides=2, padding="same", activation="relu"),
        keras.layers.Conv2D(128, 3, strides=2, padding="same", activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(len(photos.CLASSES), activation="softmax"),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(),
    metrics=["accuracy"],
)
model.fit(dataset, epochs=2, verbose=2)
