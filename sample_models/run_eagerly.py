"""A small image model that still runs eagerly, a leftover from a debugging session.

Defect: `run_eagerly=True` in `compile` makes Python start every single operation of every step,
where otherwise one graph would run; TensorFlow cannot fuse, reorder or compile anything.
Fix: remove `run_eagerly=True`.

    tfaudit run sample_models/run_eagerly.py

expect: 5.4 fail
"""

import keras
import numpy as np
import tensorflow as tf

IMAGES = 2048
SIDE = 28
CLASSES = 10
BATCH_SIZE = 32


def make_images(seed):
    """Grey images with one bright bar each, labelled by where the bar is."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, size=IMAGES)
    images = rng.normal(0.2, 0.2, size=(IMAGES, SIDE, SIDE, 1)).astype("float32")
    for image, label in zip(images, labels, strict=True):
        image[2 * label + 4] += 0.8
    return images, labels


keras.utils.set_random_seed(1)

dataset = (
    tf.data.Dataset.from_tensor_slices(make_images(seed=1))
    .shuffle(IMAGES)
    .batch(BATCH_SIZE, drop_remainder=True)
    .prefetch(tf.data.AUTOTUNE)
)

model = keras.Sequential(
    [
        keras.Input((SIDE, SIDE, 1)),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(CLASSES, activation="softmax"),
    ]
)
model.compile(
    optimizer="adam",
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
    run_eagerly=True,  # TODO: remove after debugging
)
model.fit(dataset, epochs=1, verbose=2)
