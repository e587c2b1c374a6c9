"""TensorFlow's placement log, in the wording of 2.10 to 2.21."""

from __future__ import annotations

import pytest

from tfaudit.program.placement import parse
from tfaudit.records import Placement

PLACER = "I tensorflow/core/common_runtime/placer.cc:114]"
EAGER = "I tensorflow/core/common_runtime/eager/execute.cc:1679]"
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"

LINES = {
    "a graph op on a GPU": (
        f"2025-01-31 20:52:11.104882: {PLACER} sequential/dense/MatMul: (MatMul): {GPU}",
        {"GPU": {"MatMul": 1}},
    ),
    "a graph op on the CPU": (f"{PLACER} Where: (Where): {CPU}", {"CPU": {"Where": 1}}),
    "2.10, with the year alone": (f"2022-09-06 10:00:00.0: {PLACER} x: (_Arg): {CPU}", {"CPU": {"_Arg": 1}}),
    "2.16 and later, with the level in front": (
        f"I0000 00:00:1738356731.104882    4711 placer.cc:162] inputs: (_Arg): {CPU}",
        {"CPU": {"_Arg": 1}},
    ),
    "an eager op": (f"{EAGER} Executing op _EagerConst in device {CPU}", {"CPU": {"_EagerConst": 1}}),
    "an eager op, later wording": (
        f"I0000 00:00:1738356731.1 4711 execute.cc:1679] Executing op AssignVariableOp in device {GPU}",
        {"GPU": {"AssignVariableOp": 1}},
    ),
    "a function's node": (
        f"{PLACER} cond/then/_0/while/body/Adam/update/ResourceApplyAdam: (ResourceApplyAdam): {GPU}",
        {"GPU": {"ResourceApplyAdam": 1}},
    ),
    "the second GPU": (f"{PLACER} a: (Relu): {GPU[:-1]}1", {"GPU": {"Relu": 1}}),
    "an XLA device": (
        f"{PLACER} a: (Relu): /job:localhost/replica:0/task:0/device:XLA_GPU:0",
        {"XLA_GPU": {"Relu": 1}},
    ),
    "without job and task": (f"{PLACER} a: (Relu): /device:GPU:0", {"GPU": {"Relu": 1}}),
    "an op that is not placed": (f"{PLACER} a: (NoOp): ", {}),
    "another line of the log": (
        "I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow binary is optimized",
        {},
    ),
    "a device in another line": (
        f"I tensorflow/core/common_runtime/gpu/gpu_device.cc:1613] Created device {GPU} with 130000 MB",
        {},
    ),
    "nothing": ("", {}),
}


@pytest.mark.parametrize("case", LINES)
def test_a_line_of_the_log(case: str) -> None:
    line, ops = LINES[case]
    assert parse(line) == Placement(ops=ops)


def test_ops_are_counted_by_device_and_sorted_by_name() -> None:
    log = "\n".join(
        [
            f"{PLACER} b: (MatMul): {GPU}",
            f"{PLACER} a: (BiasAdd): {GPU}",
            "something the program printed",
            f"{PLACER} c: (MatMul): {GPU}",
            f"{EAGER} Executing op MatMul in device {GPU}",
            f"{PLACER} d: (Where): {CPU}",
        ]
    )
    found = parse(log).ops
    assert found == {"GPU": {"BiasAdd": 1, "MatMul": 3}, "CPU": {"Where": 1}}
    assert list(found["GPU"]) == ["BiasAdd", "MatMul"]


def test_an_op_that_is_not_placed_does_not_take_the_next_lines_device() -> None:
    log = f"{PLACER} a: (NoOp): \n{PLACER} b: (Relu): {GPU}"
    assert parse(log).ops == {"GPU": {"Relu": 1}}
