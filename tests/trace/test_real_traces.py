"""Recorded traces of real accelerators, read in place; skipped where the folder is absent."""

import json
from pathlib import Path
from typing import Any

import pytest

from tfaudit.errors import TraceError
from tfaudit.trace import summarise, timeline, to_perfetto

FILES = (
    "jax_conv_8xmi300x",
    "jax_gemm_mi300x",
    "jax_tpu_v6e_4chips",
    "no_host_plane",
    "tf23_bert_8xV100",
)
# ROCm copies with kernels, which the reference counts as kernels; we count them as copies. They are
# known by their name and, for the direction, by the host call with the same correlation id.
BLITS = {
    "jax_conv_8xmi300x": {"h2d": 0, "d2d": 33, "other": 2},
    "jax_gemm_mi300x": {"h2d": 12, "d2d": 12, "other": 0},
    "no_host_plane": {"h2d": 0, "d2d": 0, "other": 24},
}


def expected(traces: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((traces / "expected.json").read_text())
    return content


@pytest.mark.parametrize("name", FILES)
def test_figures_equal_the_naive_reference_to_a_thousandth(traces: Path, name: str) -> None:
    wanted = expected(traces)[f"{name}.xplane.pb"]
    devices = summarise(traces / f"{name}.xplane.pb").devices
    assert [device.plane for device in devices] == [each["plane"] for each in wanted]
    for device, each in zip(devices, wanted, strict=True):
        for figure in ("events", "span_ms", "busy_ms", "idle_fraction", "longest_gap_ms"):
            if figure in each:
                assert getattr(device, figure) == pytest.approx(each[figure], rel=1e-3), figure
        if name not in BLITS and "copies" in each:
            assert device.kernel_busy_ms == pytest.approx(each["kernel_busy_ms"], rel=1e-3)
            for direction, figures in each["copies"].items():
                copies = getattr(device.copies, direction)
                assert (copies.count, copies.bytes) == (figures["count"], figures["bytes"])
                assert copies.busy_ms == pytest.approx(figures["busy_ms"], rel=1e-3)


@pytest.mark.parametrize("name", BLITS)
def test_rocm_copy_kernels_are_copies_in_the_direction_of_their_call(traces: Path, name: str) -> None:
    device = summarise(traces / f"{name}.xplane.pb").devices[0]
    found = {way: getattr(device.copies, way).count for way in ("h2d", "d2d", "other")}
    assert found == BLITS[name]
    assert device.copies.d2h.count == 0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("corrupt_utf8_mangled", "corrupt: a text tool"),
        ("truncated_half", "truncated"),
        ("empty", "empty"),
    ],
)
def test_damaged_files_are_one_sentence(traces: Path, name: str, says: str) -> None:
    with pytest.raises(TraceError, match=says):
        summarise(traces / f"{name}.xplane.pb")


def test_a_cpu_trace_of_tf_2_2_has_its_six_steps(traces: Path) -> None:
    result = summarise(traces / "tf22_cpu_6steps.trace.json.gz")
    names = ["train 2", "train 3", "train 4", "test 0", "test 1", "train 0"]
    assert [step.name for step in result.steps] == names
    assert result.devices == ()
    # the DoCompute of the first step takes 85.8 us, the op that starts it 3.8 us more
    assert result.steps[0].input_wait_ms == pytest.approx(0.0896, rel=0.01)


def test_a_timeline_of_tf_1_counts_kernels_and_copies_once(traces: Path) -> None:
    (device,) = summarise(traces / "tf1_gpu_timeline.json").devices
    assert (device.copies.h2d.count, device.copies.d2h.count) == (20, 10)
    assert next(op for op in device.top_ops if op.name == "MatMul").count in (45, 46)


@pytest.mark.parametrize("name", FILES)
def test_parts_sum_to_the_step_and_causes_to_the_idle_time(traces: Path, name: str) -> None:
    result = summarise(traces / f"{name}.xplane.pb")
    for step in result.steps:
        parts = (
            step.input_wait_ms
            + step.copy_ms
            + step.launch_ms
            + step.compute_ms
            + step.communication_ms
            + step.other_ms
        )
        assert parts == pytest.approx(step.duration_ms, rel=1e-6)
        assert step.other_ms >= 0
    for device in result.devices:
        idle = sum(each.duration_ms for each in device.idle_causes)
        assert idle == pytest.approx(device.span_ms - device.busy_ms, abs=1e-6)


def test_matrix_products_in_bfloat16_are_16_bit_on_matrix_cores(traces: Path) -> None:
    precision = summarise(traces / "jax_gemm_mi300x.xplane.pb").devices[0].precision
    assert precision.sixteen_bit_fraction is not None and precision.sixteen_bit_fraction > 0.5
    assert precision.tensor_core_fraction is not None and precision.tensor_core_fraction > 0.5


def test_all_reduces_of_a_tpu_are_found(traces: Path) -> None:
    for device in summarise(traces / "jax_tpu_v6e_4chips.xplane.pb").devices:
        assert device.collectives.count == 3


@pytest.mark.parametrize("name", FILES)
def test_every_trace_can_be_drawn_and_exported(traces: Path, name: str) -> None:
    path = traces / f"{name}.xplane.pb"
    assert timeline(path).lanes
    assert json.loads(to_perfetto(path))["traceEvents"]
