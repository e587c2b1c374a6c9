"""Ties to one machine: one line on each side of each rule."""

from __future__ import annotations

import ast
import textwrap

import pytest

from tfaudit.program.names import walk
from tfaudit.program.ties import ties


def found(text: str) -> list[tuple[str, str]]:
    """The kinds and texts of all ties in a file that imports what programs do."""
    heading = (
        "import os, subprocess\nimport keras\nimport tensorflow as tf\nfrom tensorflow import device as d\n"
    )
    tree = ast.parse(heading + textwrap.dedent(text))
    return [tie for node, setting in walk(tree, lambda name: False, True) for tie in ties(node, setting)]


def kinds(text: str) -> list[str]:
    return [kind for kind, _ in found(text)]


DEVICES = [
    'with tf.device("/GPU:0"):\n    train()',
    'with tf.device("gpu:0"):\n    train()',
    'with tf.device("/cpu:0"):\n    train()',
    'with tf.device("/device:TPU:0"):\n    train()',
    'with tf.device("/job:worker/task:0"):\n    train()',
    'with tf.device(device_name="/GPU:0"):\n    train()',
    'with d("/GPU:0"):\n    train()',
    'with keras.device("gpu:0"):\n    train()',
    'with tf.compat.v1.device("/GPU:0"):\n    train()',
    'GPU = "/GPU:0"\nwith tf.device(GPU):\n    train()',
    'with scope(), tf.device("/GPU:0"):\n    train()',
    'def main():\n    with tf.device("/GPU:1"):\n        train()',
    'tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])',
    'tf.distribute.MirroredStrategy(devices=("GPU:0",))',
    'tf.distribute.OneDeviceStrategy("/gpu:0")',
    'os.environ["CUDA_VISIBLE_DEVICES"] = "0"',
    'os.environ["CUDA_VISIBLE_DEVICES"] = ""',
    'os.environ.update(CUDA_VISIBLE_DEVICES="1")',
    'os.putenv("HIP_VISIBLE_DEVICES", "0")',
    'tf.config.set_visible_devices(tf.config.list_physical_devices("GPU")[0], "GPU")',
    'tf.config.set_visible_devices([], "GPU")',
    "tf.config.experimental.set_memory_growth(gpus[0], True)",
]

NO_DEVICES = [
    "with tf.device(args.device):\n    train()",
    "with tf.device(pick()):\n    train()",
    "with tf.device(None):\n    train()",
    'with tf.device(f"/GPU:{number}"):\n    train()',
    'if tf.config.list_physical_devices("GPU"):\n    with tf.device("/GPU:0"):\n        train()',
    'gpus = tf.config.list_physical_devices("GPU")\n'
    'with tf.device("/GPU:0" if gpus else "/CPU:0"):\n    train()',
    'where = "/CPU:0"\nif gpus:\n    where = "/GPU:0"\nwith tf.device(where):\n    train()',
    'with tf.device("/cpu:0"):\n    data = tf.data.Dataset.range(3)',
    'with tf.device("/cpu:0"):\n    data = data.map(f).prefetch(1)',
    'with device("/GPU:0"):\n    train()',
    'with model.device("/GPU:0"):\n    train()',
    '"""with tf.device("/GPU:0"): train()"""',
    '# with tf.device("/GPU:0"):\nprint("/GPU:0")',
    'gpu = "/GPU:0"',
    "tf.distribute.MirroredStrategy()",
    "tf.distribute.MirroredStrategy(devices=None)",
    'tf.distribute.MirroredStrategy([f"/gpu:{i}" for i in range(n)])',
    'os.environ["CUDA_VISIBLE_DEVICES"] = str(hvd.local_rank())',
    'os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")',
    'os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"',
    'print(os.environ["CUDA_VISIBLE_DEVICES"])',
    "tf.config.set_visible_devices(gpus, 'GPU')",
    "tf.config.set_logical_device_configuration(cpus[0], two)",
    "tf.config.set_visible_devices(tf.config.list_physical_devices('CPU')[0])",
    "for gpu in gpus:\n    tf.config.experimental.set_memory_growth(gpu, True)",
    "tf.config.set_visible_devices(gpus[hvd.local_rank()], 'GPU')",
    "if gpus:\n    tf.config.set_visible_devices(gpus[0], 'GPU')",
    "try:\n    tf.config.set_visible_devices(gpus[0], 'GPU')\nexcept IndexError:\n    pass",
]


@pytest.mark.parametrize("text", DEVICES)
def test_a_device_that_is_named(text: str) -> None:
    assert kinds(text) == ["device"]


@pytest.mark.parametrize("text", NO_DEVICES)
def test_no_device_that_is_named(text: str) -> None:
    assert kinds(text) == []


COUNTS = [
    "train(num_gpus=4)",
    "train(num_devices=1)",
    "train(gpus=2)",
    "NUM_GPUS = 4",
    "n_devices = 2",
    "gpu_count = 8",
    "number_of_replicas = 8",
    "def main():\n    num_gpus: int = 4\n    train(num_gpus)",
]

NO_COUNTS = [
    "num_gpus = len(tf.config.list_physical_devices('GPU'))",
    "train(num_gpus=len(gpus))",
    "train(num_gpus=args.num_gpus)",
    "def train(num_gpus=4): ...",
    "parser.add_argument('--num-gpus', type=int, default=4)",
    "num_gpus = 1\nif gpus:\n    num_gpus = len(gpus)",
    "num_gpus = 1\nnum_gpus += 1",
    "num_gpus = 0",
    "gpu = 4",
    "gpus = 4",
    "gpu = True",
    "num_gpu_hours = 4",
    "num_classes = 4",
    "train(num_workers=4)",
    "train(num_gpus=0)",
    "train(num_gpus=True)",
    "class Config:\n    num_gpus: int = 4",
    "import ray\nray.init(num_gpus=4)",
    "import ray\n@ray.remote(num_gpus=1)\ndef f(): ...",
]


@pytest.mark.parametrize("text", COUNTS)
def test_a_number_of_devices(text: str) -> None:
    assert kinds(text) == ["count"]


@pytest.mark.parametrize("text", NO_COUNTS)
def test_no_number_of_devices(text: str) -> None:
    assert kinds(text) == []


CUDA = [
    "import cupy\ncupy.zeros(3)",
    "from numba import cuda\n@cuda.jit\ndef f(): ...",
    "import numba.cuda as nc\nnc.select_device(0)",
    "from nvidia.dali import pipeline_def\n@pipeline_def\ndef f(): ...",
    "import pynvml\npynvml.nvmlInit()",
    "tf.compat.v1.keras.layers.CuDNNLSTM(8)",
    "tf.raw_ops.CudnnRNNV3(input=x)",
    'subprocess.run(["nvidia-smi", "-L"])',
    'subprocess.check_output("nvidia-smi -L", shell=True)',
    'os.system("nvidia-smi")',
]

NO_CUDA = [
    "import cupy",
    "import numba\n@numba.njit\ndef f(): ...",
    "import cupynumeric\ncupynumeric.zeros(3)",
    "try:\n    import cupy\n    cupy.zeros(3)\nexcept ImportError:\n    pass",
    "if tf.test.is_built_with_cuda():\n    import cupy\n    cupy.zeros(3)",
    "tf.test.is_built_with_cuda()",
    "keras.layers.LSTM(8)",
    'subprocess.run(["git", "status"])',
    'print("nvidia-smi")',
    'if shutil.which("nvidia-smi"):\n    subprocess.run(["nvidia-smi"])',
]


@pytest.mark.parametrize("text", CUDA)
def test_what_needs_cuda(text: str) -> None:
    assert set(kinds(text)) == {"cuda"}


@pytest.mark.parametrize("text", NO_CUDA)
def test_what_does_not(text: str) -> None:
    assert kinds(text) == []


DTYPES = [
    'keras.backend.set_floatx("float16")',
    'keras.config.set_floatx("float64")',
    "tf.cast(x, tf.float16)",
    "tf.cast(x, dtype=tf.bfloat16)",
    'tf.cast(x, "float64")',
    "half = tf.float16\ntf.cast(x, half)",
    'keras.ops.cast(x, "bfloat16")',
    'keras.layers.Dense(3, dtype="float16")',
    "tf.keras.layers.Dense(3, dtype=tf.float64)",
    "tf.Variable(0.0, dtype=tf.float64)",
]

NO_DTYPES = [
    "tf.cast(x, tf.float32)",
    "tf.cast(x, tf.uint8)",
    "tf.cast(x, self.compute_dtype)",
    "tf.cast(x, keras.config.floatx())",
    'keras.layers.Dense(3, dtype="float32")',
    'keras.layers.Dense(3, dtype="mixed_bfloat16")',
    'keras.mixed_precision.set_global_policy("mixed_bfloat16")',
    'keras.backend.set_floatx("float32")',
    "np.zeros(3, dtype=np.float64)",
    'np.zeros(3, dtype="float64")',
    'cast(x, "float16")',
    "tf.zeros(3)",
    "if gpus:\n    tf.cast(x, tf.float16)",
]


@pytest.mark.parametrize("text", DTYPES)
def test_a_fixed_floating_type(text: str) -> None:
    assert kinds(text) == ["dtype"]


@pytest.mark.parametrize("text", NO_DTYPES)
def test_no_fixed_floating_type(text: str) -> None:
    assert kinds(text) == []


def test_the_text_is_as_written() -> None:
    assert found('with tf.device("/GPU:0"):\n    train()') == [("device", "with tf.device('/GPU:0')")]
