"""Damaged and random files: a summary or one sentence, never anything else."""

import tempfile
import time
import tracemalloc
import warnings
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xspaces import PlaneBuilder, Ref, Unsigned, gpu, host, message, number, space

from tfaudit.errors import TraceError
from tfaudit.records import to_json
from tfaudit.trace import summarise, timeline, to_perfetto

BOUNDED = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
# A file of a few kilobytes may take this much at most; a first call also imports.
SECONDS, MEMORY_BYTES = 5.0, 64 << 20


def survive(content: bytes) -> None:
    """Read the file in every way, within bounds."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        path = Path(folder) / "a.xplane.pb"
        path.write_bytes(content)
        begin = time.perf_counter()
        tracemalloc.start()
        try:
            to_json(summarise(path))
            timeline(path)
            to_perfetto(path)
        except TraceError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert time.perf_counter() - begin < SECONDS
        assert peak < MEMORY_BYTES


def typical() -> bytes:
    details = "kind_src:pageable kind_dst:device size:64 dest:0 async:1"
    device = gpu(0, core_count=80).line("Stream #1(Compute)", 1, 1000)
    device.event("Stream #1(Compute)", "gemm", 0, 10, correlation_id=1, tf_op=Ref("a/b:MatMul"))
    device.event("Stream #1(Compute)", "MemcpyH2D", 30, 10, memcpy_details=details)
    device.event("Stream #1(Compute)", "ncclAllReduce", 50, 10, cuda_graph_id=Unsigned(4))
    device.event("Steps", "0", 0, 70, group_id=0)
    cpu = host().line("tf_data_iterator_get_next/1", -5, 900)
    cpu.event("tf_data_iterator_get_next/1", "IteratorGetNextOp::DoCompute", 10, 15)
    cpu.event("python", "train", 0, 70, step_num=3, _r=1, group_id=0)
    cpu.event("worker", "cuLaunchKernel", 0, 2, correlation_id=1.0)
    return space(device, cpu)


TYPICAL = typical()


@BOUNDED
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["set", "insert", "delete", "cut"]),
            st.integers(0, len(TYPICAL) - 1),
            st.binary(min_size=1, max_size=12),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_mutated_files_survive(mutations: list[tuple[str, int, bytes]]) -> None:
    content = bytearray(TYPICAL)
    for kind, at, change in mutations:
        if kind == "set":
            content[at : at + len(change)] = change
        elif kind == "insert":
            content[at:at] = change
        elif kind == "delete":
            del content[at : at + len(change)]
        else:
            del content[at + 1 :]
    survive(bytes(content))


@BOUNDED
@given(st.binary(max_size=300))
def test_random_bytes_survive(content: bytes) -> None:
    survive(content)


numbers = st.one_of(
    st.integers(-3, 300), st.integers(-(2**63), 2**63 - 1), st.sampled_from([2**58, -(2**58), 2**62])
)
values = st.one_of(
    numbers,
    st.floats(),
    st.text(max_size=8),
    st.text(max_size=8).map(Ref),
    st.integers(0, 2**64 - 1).map(Unsigned),
)
stats = st.dictionaries(
    st.sampled_from(
        [
            "correlation_id",
            "group_id",
            "step_num",
            "step_name",
            "_r",
            "memcpy_details",
            "tf_op",
            "hlo_op",
            "cuda_graph_id",
            "other",
        ]
    ),
    values,
    max_size=4,
)
event_names = st.sampled_from(
    (
        "MemcpyH2D",
        "MemcpyD2H",
        "__amd_rocclr_copyBuffer.kd",
        "k",
        "",
        "ncclAllReduce",
        "train",
        "a:A",
        "1",
        "Iterator::Map",
        "IteratorGetNextOp::DoCompute",
        "cuLaunchKernel",
        "hipMemcpyHtoDAsync",
    )
)
lines = st.sampled_from(["Stream #1", "Stream #2", "XLA Ops", "Steps", "tf_data_x/1", "worker", ""])


@st.composite
def planes(draw: st.DrawFn) -> PlaneBuilder:
    name = draw(st.sampled_from(["/device:GPU:0", "/device:GPU:1", "/device:TPU:0", "/host:CPU", "x", ""]))
    plane = PlaneBuilder(name)
    for line in draw(st.lists(lines, max_size=3, unique=True)):
        plane.line(line, draw(numbers), draw(numbers))
        for _ in range(draw(st.integers(0, 6))):
            start, duration = draw(numbers) / 1e6, draw(numbers) / 1e6
            plane.event(line, draw(event_names), start, duration, **draw(stats))
    return plane


@BOUNDED
@given(st.lists(planes(), max_size=4))
def test_well_formed_files_with_any_values_survive(found: list[PlaneBuilder]) -> None:
    survive(space(*found))


def test_many_tiny_planes_lines_and_events_survive() -> None:
    survive(message(1, b"") * 50_000)
    plane = message(2, b"/device:GPU:0") + message(3, message(2, b"Stream #1")) * 500
    survive(message(1, plane))
    events = message(4, number(2, 1)) * 20_000
    plane = message(2, b"/device:GPU:0") + message(3, message(2, b"Stream #1") + events)
    survive(message(1, plane))


def test_deeply_nested_events_survive() -> None:
    cpu = host()
    for i in range(2_000):
        cpu.event("tf_Compute/1", "a:A", i, 4_000 - 2 * i)
    survive(space(cpu))


def test_events_with_thousands_of_fields_survive() -> None:
    event = number(1, 1) + number(2, 5) * 5_000
    plane = message(2, b"/device:GPU:0") + message(3, message(2, b"Stream #1") + message(4, event))
    survive(message(1, plane))
