"""Chrome traces: the JSON of older TensorFlow and the timeline of TF 1."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tfaudit.errors import TraceError
from tfaudit.trace import summarise


def process(pid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}


def thread(pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}


def event(pid: int, tid: int, name: str, ts: float, dur: float, /, **args: str) -> dict[str, Any]:
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": dur, "args": args}


def write(folder: Path, *events: dict[str, Any], name: str = "vm.trace.json.gz") -> Path:
    path = folder / name
    content = json.dumps({"traceEvents": [*events, {}]}).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def test_a_trace_of_tensorflow_2_is_read_like_its_xplane(tmp_path: Path) -> None:
    details = "size:4096 dest:0 async:1"
    path = write(
        tmp_path,
        process(1, "/device:GPU:0"),
        thread(1, 1, "Stream #13(Compute,MemcpyH2D)"),
        thread(1, 2, "TensorFlow Ops"),
        process(2, "/host:CPU"),
        thread(2, 1, "tf_data_iterator_get_next"),
        event(1, 1, "MemcpyH2D", 1000.5, 10, memcpy_details=details, correlation_id="4"),
        event(1, 1, "gemm", 1100.5, 50, tf_op="dense/MatMul:MatMul"),
        event(1, 2, "dense/MatMul", 1100.5, 50),
        event(2, 1, "IteratorGetNextOp::DoCompute", 1012.0, 80),
        event(2, 2, "TraceContext", 1000.0, 200, step_num="3", group_id="0", step_name="train 3"),
    )
    result = summarise(path)
    (device,) = result.devices
    assert (device.plane, device.events) == ("/device:GPU:0", 2)
    assert device.busy_ms == pytest.approx(0.060)
    assert device.copies.h2d.bytes == 4096
    assert device.gaps[0].cause == "waiting for input"
    assert device.top_ops[0].op == "dense/MatMul:MatMul"
    assert [(step.step, step.name) for step in result.steps] == [(3, "train 3")]


def test_a_timeline_of_tf_1_repeats_events_that_count_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        process(1, "/job:localhost/replica:0/task:0/gpu:0 Compute"),
        process(2, "/gpu:0/stream:all Compute"),
        process(3, "/gpu:0/stream:12 Compute"),
        process(4, "/gpu:0/memcpy Compute"),
        process(5, "/gpu:0/stream:13 Compute"),
        process(6, "/gpu:0/stream:12 Tensors"),
        event(1, 0, "MatMul", 0, 30, op="MatMul", name="layer/MatMul"),
        event(2, 0, "MatMul", 40, 20, op="MatMul", name="layer/MatMul"),
        event(3, 0, "MatMul", 40, 20, op="MatMul", name="layer/MatMul"),
        event(4, 0, "MEMCPYHtoD", 10, 5, op="MEMCPYHtoD", name="edge_1"),
        event(5, 0, "MEMCPYHtoD", 10, 5, op="MEMCPYHtoD", name="edge_1"),
        event(6, 0, "MatMul", 40, 20),
        name="timeline.json",
    )
    result = summarise(path)
    (device,) = result.devices
    assert (device.events, device.copies.h2d.count) == (2, 1)
    assert device.busy_ms == pytest.approx(0.025)
    assert device.top_ops[0].op == "layer/MatMul"
    (step,) = result.steps
    assert (step.step, step.name) == (0, "session.run")


def test_without_numbered_streams_the_joint_lines_are_used(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        process(2, "/gpu:0/stream:all Compute"),
        process(4, "/gpu:0/memcpy Compute"),
        event(2, 0, "MatMul", 40, 20),
        event(4, 0, "MEMCPYDtoH", 70, 5),
        name="timeline.json",
    )
    (device,) = summarise(path).devices
    assert (device.events, device.copies.d2h.count) == (2, 1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{}", "no trace"),
        (b"[]", "no timed events"),
        (b'{"traceEvents": []}', "no timed events"),
        (b'{"traceEvents": 3}', "no trace"),
        (b'{"traceEvents": [3]}', "no trace"),
        (b'{"loss": [1, 2]}', "no trace"),
        (b'{"traceEvents": [{"ph":"X","ts":1,"dur":2,"pid":1}]}', "something else"),
        (b'{"traceEvents": [{"ph":"X","ts":"now","dur":-1}]}', "no timed events"),
        (b'{"traceEvents": [{"ph":"X"', "truncated"),
        (b'{"traceEvents": [}', "corrupt"),
        (b"[" * 5000, "no trace"),
        (b'{"traceEvents": [{"args": ' + b"[" * 100_000, "corrupt"),
    ],
)
def test_json_that_is_no_trace_is_one_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=says) as error:
        summarise(path)
    assert "\n" not in str(error.value)
