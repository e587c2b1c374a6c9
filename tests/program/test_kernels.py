"""The kernels of a model, told of small models by both Keras versions."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import msgspec
import pytest

from tfaudit.records import Kernel

MODEL = """
import json, msgspec
import {keras} as keras
from tfaudit.program.kernels import kernels

layers = keras.layers
inner = keras.Sequential([layers.Dense(10, name="inner")])
model = keras.Sequential([
    keras.Input((8, 8, 3)),
    layers.Conv2D(16, 3, name="conv"),
    layers.DepthwiseConv2D(3),
    layers.SeparableConv2D(16, 3),
    layers.Conv2DTranspose(12, 2, name="transposed"),
    layers.Flatten(),
    inner,
])
lazy = keras.Sequential([layers.Dense(3)])
print(msgspec.json.encode([kernels(model), kernels(lazy), kernels(object())]).decode())
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize("keras", ["keras", "tf_keras"])
def test_kernels_are_those_of_dense_layers_and_whole_convolutions(keras: str) -> None:
    """Nested models included; of layers that are not built, and of other objects, nothing is told."""
    code = [sys.executable, "-c", textwrap.dedent(MODEL.format(keras=keras))]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    built, lazy, other = msgspec.convert(json.loads(done.stdout.splitlines()[-1]), list[tuple[Kernel, ...]])
    assert built == (
        Kernel("conv", "Conv2D", 3, 16, 432, "channels_last"),
        Kernel("transposed", "Conv2DTranspose", 16, 12, 768, "channels_last"),
        Kernel("inner", "Dense", 12 * 9, 10, 1080),
    )
    assert lazy == other == ()
