"""A model with named inputs, sample weights and a last batch that is smaller than the others.

Defect: none in the pipeline; the program shows inputs of this form being audited. Like any script
that takes no care of it, it reports no throughput, never stops early and records no experiment.
Fix: as in plain_script.py.

    tfaudit run sample_models/dict_inputs.py

expect: 1.1 warn
expect: 7.1 warn
expect: 7.4 warn
"""

import keras
import numpy as np
import tensorflow as tf

TRIPS = 5000
PLACES = 50
BATCH_SIZE = 64  # 78 full batches and one of 8


def make_trips(seed):
    """Trips by named inputs, how long each took, and how much its record is trusted."""
    rng = np.random.default_rng(seed)
    inputs = {
        "place": rng.integers(0, PLACES, size=TRIPS, dtype="int32"),
        "hour": rng.uniform(0.0, 24.0, size=(TRIPS, 1)).astype("float32"),
        "distance": rng.gamma(2.0, 3.0, size=(TRIPS, 1)).astype("float32"),
    }
    rush = np.exp(-0.5 * (inputs["hour"][:, 0] - 17.0) ** 2)
    minutes = 2.0 * inputs["distance"][:, 0] * (1.0 + rush) + 0.1 * inputs["place"]
    trust = rng.choice([0.5, 1.0], size=TRIPS, p=[0.2, 0.8])
    return inputs, minutes.astype("float32"), trust.astype("float32")


keras.utils.set_random_seed(1)

dataset = (
    tf.data.Dataset.from_tensor_slices(make_trips(seed=1))
    .shuffle(TRIPS)
    .batch(BATCH_SIZE)
    .prefetch(tf.data.AUTOTUNE)
)

place = keras.Input((), dtype="int32", name="place")
hour = keras.Input((1,), name="hour")
distance = keras.Input((1,), name="distance")
joined = keras.layers.Concatenate()(
    [keras.layers.Embedding(PLACES, 8)(place), keras.layers.Rescaling(1 / 24)(hour), distance]
)
hidden = keras.layers.Dense(512, activation="relu")(joined)
hidden = keras.layers.Dense(512, activation="relu")(hidden)
hidden = keras.layers.Dense(512, activation="relu")(hidden)
minutes = keras.layers.Dense(1)(hidden)

model = keras.Model({"place": place, "hour": hour, "distance": distance}, minutes)
model.compile(optimizer="adam", loss="mean_squared_error", weighted_metrics=["mean_absolute_error"])
model.fit(dataset, epochs=3, verbose=2)
