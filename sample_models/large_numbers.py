"""A regression of house prices in dollars, as they are.

Defect: the targets lie around a million, beyond the 65504 that float16 holds. It trains in float32, but in
mixed precision the loss is no number from the first step on.
Fix: scale the targets (`keras.layers.Normalization`, thousands of dollars, or their logarithm) and keep
the last layer in float32 (`Dense(1, dtype="float32")`).

    tfaudit run sample_models/large_numbers.py

expect: 8.6 warn
"""

import keras
import numpy as np

HOUSES = 4096
FEATURES = 64
BATCH_SIZE = 64

keras.utils.set_random_seed(1)

rng = np.random.default_rng(1)
houses = rng.normal(size=(HOUSES, FEATURES)).astype("float32")
price = 1e6 + 2e5 * houses[:, 0] + 1e5 * houses[:, 1] * houses[:, 2]

model = keras.Sequential(
    [
        keras.Input((FEATURES,)),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(1, bias_initializer=keras.initializers.Constant(1e6)),
    ]
)
model.compile(optimizer="adam", loss="mean_squared_error")
model.fit(houses, price, batch_size=BATCH_SIZE, epochs=3, verbose=2)
