"""A tone classifier whose spectrograms are computed by NumPy inside the tf.data pipeline.

Defect: `tf.numpy_function` leaves TensorFlow for the Python interpreter once per clip. Its lock
lets one call run at a time, so that `num_parallel_calls` does next to nothing, and neither graph
optimisation nor the tf.data service nor an accelerator can take the work over.
Fix: the same spectrogram from TensorFlow's own ops in the same `map`:
`tf.math.log1p(tf.abs(tf.signal.stft(clip, FRAME, HOP)))`.

    tfaudit run sample_models/py_function_pipeline.py

expect: 1.8 fail
expect: 5.5 fail
"""

import keras
import numpy as np
import tensorflow as tf

RATE = 8000  # samples per second
CLIP = 8000  # samples, one second
FRAME = 256
HOP = 128
FRAMES = 1 + (CLIP - FRAME) // HOP
BINS = FRAME // 2 + 1
CLIPS = 1024
CLASSES = 4
BATCH_SIZE = 32


def make_clips(seed):
    """Noisy tones of one second, one of four pitches each."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, size=CLIPS)
    pitches = 300.0 * (labels + 1) + rng.uniform(-40.0, 40.0, size=CLIPS)
    seconds = np.arange(CLIP) / RATE
    clips = np.sin(2 * np.pi * pitches[:, None] * seconds)
    clips += rng.normal(size=clips.shape)
    return clips.astype("float32"), labels


def spectrogram(clip):
    """Loudness of a clip by time and frequency, frame after frame in NumPy."""
    frames = []
    for start in range(0, CLIP - FRAME + 1, HOP):
        frame = clip[start : start + FRAME] * np.hanning(FRAME)
        frames.append(np.log1p(np.abs(np.fft.rfft(frame))))
    return np.asarray(frames, dtype="float32")


def to_spectrogram(clip, label):
    """What the pipeline maps: the spectrogram with its shape, which NumPy's result lacks."""
    image = tf.numpy_function(spectrogram, [clip], tf.float32)
    return tf.ensure_shape(image, [FRAMES, BINS]), label


keras.utils.set_random_seed(1)

dataset = (
    tf.data.Dataset.from_tensor_slices(make_clips(seed=1))
    .shuffle(CLIPS)
    .map(to_spectrogram, num_parallel_calls=tf.data.AUTOTUNE)
    .batch(BATCH_SIZE, drop_remainder=True)
    .prefetch(tf.data.AUTOTUNE)
)

model = keras.Sequential(
    [
        keras.Input((FRAMES, BINS)),
        keras.layers.Conv1D(32, 5, activation="relu"),
        keras.layers.Conv1D(32, 5, activation="relu"),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(CLASSES, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(dataset, epochs=2, verbose=2)
