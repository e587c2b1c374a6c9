"""The timeline of one step, and the export."""

import json
from pathlib import Path

import pytest
from xspaces import gpu, host, write

from tfaudit.errors import TraceError
from tfaudit.trace import timeline, to_perfetto


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Steps 4, 5 and 6 of 1, 3 and 2 ms; two devices, the second busier."""
    planes = [gpu(0), gpu(1)]
    cpu = host()
    for step, start, length in ((4, 0, 1000), (5, 1000, 3000), (6, 4000, 2000)):
        cpu.event("python", "train", start, length, step_num=step, _r=1)
        cpu.event("w", "IteratorGetNextOp::DoCompute", start, 400)
        for i, plane in enumerate(planes):
            plane.event("Stream #1", "gemm", start + 400, 200 + 100 * i)
            plane.event("Stream #2", "MemcpyH2D", start + 400, 50)
    return write(tmp_path, *planes, cpu)


def test_the_median_step_of_the_busiest_device_is_shown(path: Path) -> None:
    shown = timeline(path)
    assert (shown.step, shown.device) == (6, "/device:GPU:1")
    assert (shown.start_ms, shown.duration_ms) == (pytest.approx(4.0), pytest.approx(2.0))


def test_lanes_say_what_ran_and_why_the_device_idled(path: Path) -> None:
    lanes = {lane.name: lane.intervals for lane in timeline(path, step=4, device=0).lanes}
    (compute,) = lanes["compute"]
    assert (compute.name, compute.start_ms, compute.duration_ms) == (
        "gemm",
        pytest.approx(0.4),
        pytest.approx(0.2),
    )
    (first,) = lanes["idle: waiting for input"]
    assert first.duration_ms == pytest.approx(0.4)
    (last,) = lanes["idle: Python or other"]
    assert (last.start_ms, last.duration_ms) == (pytest.approx(0.6), pytest.approx(0.4))
    assert len(lanes["copies h2d"]) == len(lanes["host: waiting for input"]) == 1


def test_what_lies_within_a_pixel_is_one_mark(tmp_path: Path) -> None:
    plane = gpu()
    for i in range(5000):
        plane.event("Stream #1", f"k{i % 3}", i * 10, 9)
    shown = timeline(write(tmp_path, plane))
    (mark,) = next(lane for lane in shown.lanes if lane.name == "compute").intervals
    assert mark.count == 5000


def test_what_is_merged_keeps_its_exact_time(tmp_path: Path) -> None:
    plane = gpu()
    for i in range(5000):
        plane.event("Stream #1", "k", i * 10, 9)
    lanes = {lane.name: lane.busy_ms for lane in timeline(write(tmp_path, plane)).lanes}
    assert lanes["compute"] == pytest.approx(45.0)
    assert lanes["idle: unknown: no host events"] == pytest.approx(5.0, abs=0.01)


def test_a_step_of_another_device_is_not_shown(tmp_path: Path) -> None:
    """Devices that did the same step at different times: the window is the shown device's own."""
    first, second = gpu(0), gpu(1)
    first.event("Steps", "0", 0, 100).event("Stream #1", "k", 10, 80)
    second.event("Steps", "0", 500, 100).event("Stream #1", "k", 510, 90)
    shown = timeline(write(tmp_path, first, second))
    assert (shown.device, shown.start_ms) == ("/device:GPU:1", pytest.approx(0.5))


def test_a_step_or_device_that_is_not_there_is_one_sentence(path: Path) -> None:
    with pytest.raises(TraceError, match="no step 9: its steps are 4 to 6"):
        timeline(path, step=9)
    with pytest.raises(TraceError, match="no device 3"):
        timeline(path, device=3)


def test_the_export_has_every_event_of_every_line(path: Path) -> None:
    events = json.loads(to_perfetto(path))["traceEvents"]
    drawn = [event for event in events if event["ph"] == "X"]
    assert sum(event["name"] == "gemm" for event in drawn) == 6
    assert sum(event["name"] == "IteratorGetNextOp::DoCompute" for event in drawn) == 3
    titles = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert titles == {"worker /host:CPU", "worker /device:GPU:0", "worker /device:GPU:1"}
    first = min(drawn, key=lambda event: event["ts"])
    assert (first["ts"], first["dur"]) == (0, pytest.approx(1000))
