"""Where a program ties itself to one machine, told from single nodes of its source.

What stands under a condition on the machine is no tie: the program asks before it relies on what it names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .names import FRAMEWORKS, Setting, is_of

#: Strategies that take the devices they are to use.
STRATEGIES = frozenset({"CentralStorageStrategy", "MirroredStrategy", "OneDeviceStrategy"})
DEVICE_ARGUMENTS = frozenset({"device", "devices", "compute_devices"})

#: ``tf.config`` functions that take one or several of the devices found.
PICKING = frozenset(
    {
        "set_logical_device_configuration",
        "set_memory_growth",
        "set_virtual_device_configuration",
        "set_visible_devices",
    }
)

#: Environment variables that choose devices.
VISIBLE = re.compile(r"(CUDA|HIP|ROCR|NVIDIA)_VISIBLE_DEVICES|TPU_VISIBLE_\w+")

#: ``num_gpus``, ``N_DEVICES``, ``gpu_count``, ``number_of_replicas``; and ``gpus`` where it is an argument.
COUNT = re.compile(
    r"(num(ber)?|n)_?(of_)?(gpu|tpu|device|accelerator|replica|tpu_core)s?"
    r"|(gpu|tpu|device|accelerator|replica)s?_?(count|num(ber)?)",
    re.I,
)
COUNT_ARGUMENT = re.compile(rf"{COUNT.pattern}|gpus", re.I)

#: Packages that are asked for so many devices, which is no count of those that are there.
SCHEDULERS = frozenset({"azure", "kfp", "ray", "sagemaker"})

#: What runs with CUDA only, as beginnings of full names.
CUDA_ONLY = (
    "cudf",
    "cuml",
    "cupy",
    "numba.cuda",
    "nvidia.dali",
    "pycuda",
    "pynvml",
    "tensorflow.experimental.tensorrt",
    "tensorflow.python.compiler.tensorrt",
    "tensorrt",
    "transformer_engine",
)
CUDNN = re.compile(r"(?i:cudnn)(LSTM|GRU|RNN)\w*")

#: Floating types that not every device computes in at full speed. A policy set for all layers
#: (``mixed_bfloat16``) is no tie, since a single line changes it; nor is float32, which runs everywhere.
DTYPES = frozenset({"bfloat16", "double", "float16", "float64", "half"})
TYPED_OPS = frozenset({"Variable", "cast", "constant", "ones", "saturate_cast", "zeros"})

#: Methods by which a block is known to hold the input pipeline, which runs on the host wherever it is put.
PIPELINE_METHODS = frozenset({"batch", "interleave", "padded_batch", "prefetch", "shuffle"})


def ties(node: ast.AST, setting: Setting) -> Iterator[tuple[str, str]]:
    """The kind of each tie in a node (``device``, ``count``, ``cuda`` or ``dtype``), and its text."""
    if setting.guarded:
        return
    if isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            if _pins(item.context_expr, node, setting):
                yield "device", f"with {_text(item.context_expr)}"
    elif isinstance(node, ast.Call):
        if kind := _of_call(node, setting):
            yield kind, _text(node)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        if kind := _of_assignment(node, setting):
            yield kind, _text(node)
    elif isinstance(node, (ast.Name, ast.Attribute)) and _needs_cuda(setting.full(node)):
        yield "cuda", _text(node)


def _pins(node: ast.expr, block: ast.With | ast.AsyncWith, setting: Setting) -> bool:
    """Whether a block is put on a device that a constant names, and is no input pipeline on the host."""
    if not isinstance(node, ast.Call) or not is_of(setting.full(node.func), {"device"}):
        return False
    device = setting.constant(_argument(node, "device_name"))
    if not isinstance(device, str) or not device:
        return False
    return "cpu" not in device.lower() or not _is_pipeline(block, setting)


def _is_pipeline(block: ast.With | ast.AsyncWith, setting: Setting) -> bool:
    for part in (inner for statement in block.body for inner in ast.walk(statement)):
        if isinstance(part, ast.Attribute) and part.attr in PIPELINE_METHODS:
            return True
        if setting.full(part).startswith("tensorflow.data"):
            return True
    return False


def _of_call(node: ast.Call, setting: Setting) -> str:
    full = setting.full(node.func)
    if is_of(full, STRATEGIES):
        listed = [*node.args[:1], *(each.value for each in node.keywords if each.arg in DEVICE_ARGUMENTS)]
        return "device" if any(_names_devices(value, setting) for value in listed) else ""
    if is_of(full, PICKING) and node.args and _picks(node.args[0]):
        return "device"
    if full == "os.putenv" and len(node.args) == 2:
        return "device" if _sets_visible(node.args[0], node.args[1], setting) else ""
    if full == "os.environ.update" and any(
        VISIBLE.fullmatch(each.arg or "") and isinstance(setting.constant(each.value), str)
        for each in node.keywords
    ):
        return "device"
    if _asks_for_nvidia(node, full, setting):
        return "cuda"
    if _is_fixed(_dtype(node, full), setting):
        return "dtype"
    is_request = full.partition(".")[0] in SCHEDULERS
    if not is_request and any(_counts(each.arg, each.value) for each in node.keywords):
        return "count"
    return ""


def _of_assignment(node: ast.Assign | ast.AnnAssign, setting: Setting) -> str:
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if isinstance(target, ast.Subscript) and setting.full(target.value) == "os.environ":
            return "device" if _sets_visible(target.slice, node.value, setting) else ""
        if isinstance(target, ast.Name) and COUNT.fullmatch(target.id):
            # Only where nothing else is ever assigned to it: a first value may be a mere beginning.
            return "count" if _is_count(setting.constant(target)) else ""
    return ""


def _sets_visible(name: ast.expr, value: ast.expr | None, setting: Setting) -> bool:
    variable = setting.constant(name)
    known = isinstance(variable, str) and VISIBLE.fullmatch(variable) is not None
    return known and isinstance(setting.constant(value), str)


def _counts(name: str | None, value: ast.expr) -> bool:
    literal = value.value if isinstance(value, ast.Constant) else None
    return bool(name and COUNT_ARGUMENT.fullmatch(name)) and _is_count(literal)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _names_devices(value: ast.expr, setting: Setting) -> bool:
    """Whether devices are listed as constants: ``"/gpu:0"`` or ``["GPU:0", "GPU:1"]``."""
    if isinstance(value, (ast.List, ast.Tuple)):
        return bool(value.elts) and all(_names_devices(each, setting) for each in value.elts)
    device = setting.constant(value)
    return isinstance(device, str) and bool(device)


def _picks(value: ast.expr) -> bool:
    """Whether a device is taken by its number, or none at all: ``gpus[0]``, ``[gpus[1]]``, ``[]``.

    A CPU is always there.
    """
    if isinstance(value, (ast.List, ast.Tuple)):
        return all(map(_picks, value.elts))
    is_one = isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant)
    return is_one and "cpu" not in _text(value).lower()


def _asks_for_nvidia(node: ast.Call, full: str, setting: Setting) -> bool:
    """``subprocess.run(["nvidia-smi", …])``, ``os.system("nvidia-smi …")``."""
    if full.partition(".")[0] != "subprocess" and full not in ("os.system", "os.popen"):
        return False
    first = node.args[0] if node.args else None
    if isinstance(first, (ast.List, ast.Tuple)):
        first = first.elts[0] if first.elts else None
    command = setting.constant(first)
    return isinstance(command, str) and command.lstrip().startswith("nvidia-smi")


def _needs_cuda(full: str) -> bool:
    if CUDNN.fullmatch(full.rpartition(".")[2]) and full.startswith(FRAMEWORKS):
        return True
    return any(full == name or full.startswith(f"{name}.") for name in CUDA_ONLY)


def _dtype(node: ast.Call, full: str) -> ast.expr | None:
    """The dtype that a call of TensorFlow or Keras is given."""
    if is_of(full, {"set_floatx"}):
        return _argument(node, "value")
    if is_of(full, TYPED_OPS):
        return _argument(node, "dtype", 1)
    return _argument(node, "dtype", None) if full.startswith(FRAMEWORKS) and ".layers." in full else None


def _is_fixed(value: ast.expr | None, setting: Setting) -> bool:
    """Whether a dtype is one of `DTYPES`: ``"float16"``, ``tf.float16``, or a name bound to it."""
    if value is None:
        return False
    literal = setting.constant(value)
    if isinstance(literal, str):
        return literal in DTYPES
    full = setting.full(value)
    return full.startswith("tensorflow.") and full.rpartition(".")[2] in DTYPES


def _argument(node: ast.Call, name: str, position: int | None = 0) -> ast.expr | None:
    """An argument by its keyword, or else by its position."""
    for each in node.keywords:
        if each.arg == name:
            return each.value
    return node.args[position] if position is not None and len(node.args) > position else None


def _text(node: ast.AST) -> str:
    try:
        return ast.unparse(node)[:100]
    except RecursionError:
        return "…"  # nested more deeply than anyone would read
