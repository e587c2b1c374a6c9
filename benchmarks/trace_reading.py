"""How fast, and in how much memory, tfaudit reads a trace, beside XProf and a plain protobuf loop.

    python benchmarks/trace_reading.py [--events 100000 1000000 5000000] [--timeout-s 120]

Writes synthetic traces of a training job on one GPU to a temporary folder (kernels with the
statistics that TensorFlow writes, copies, launch calls, executor events, allocations, steps) and
reads each in processes of their own: `tfaudit.trace.summarise`, its decoder alone, a loop over the
message classes of the installed TensorFlow, and XProf's overview page. Prints the time after
imports, events per second of processor time (one core), and the growth of the process's peak
memory over the size of the file.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

EVENTS = (100_000, 1_000_000, 5_000_000)
LAYERS = 60
KERNELS = (
    "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn",
    "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<half>>>",
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>",
    "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
)
STEP_EVENTS = 2_000  # events between two step markers


# --------------------------------------------------------------------------------------------------
# A minimal writer of the wire format: the traces must not depend on what reads them


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


class PlaneWriter:
    """Collects one plane; names are numbered as they are first used."""

    def __init__(self, name: str) -> None:
        self.head = message(2, name.encode())
        self.lines: list[bytes] = []
        self.names: dict[str, int] = {}
        self.stats: dict[str, int] = {}

    def name(self, text: str) -> int:
        return self.names.setdefault(text, len(self.names) + 1)

    def stat(self, name: str, value: int | str, inline: bool = False) -> bytes:
        key = self.stats.setdefault(name, len(self.stats) + 1)
        if isinstance(value, int):
            return message(4, number(1, key) + number(4, value))
        if inline:
            return message(4, number(1, key) + message(5, value.encode()))
        return message(4, number(1, key) + number(7, self.stats.setdefault(value, len(self.stats) + 1)))

    def event(self, name: str, start_ps: int, duration_ps: int, stats: bytes = b"") -> bytes:
        body = number(1, self.name(name)) + number(2, start_ps) + number(3, duration_ps) + stats
        return message(4, body)

    def line(self, number_: int, name: str, events: Iterable[bytes]) -> None:
        head = number(1, number_) + message(2, name.encode()) + number(3, 250_000)
        self.lines.append(head + b"".join(events))

    def parts(self) -> Iterator[bytes]:
        yield self.head
        for line in self.lines:
            yield message(3, line)
        for field, texts in ((4, self.names), (5, self.stats)):
            for text, key in texts.items():
                meta = number(1, key) + message(2, text.encode())
                yield message(field, number(1, key) + message(2, meta))


def synthetic(path: Path, events: int) -> int:
    """Write a trace of about ``events`` events: per kernel a launch call, an op and bookkeeping.

    Returns the number of events written.
    """
    generator = random.Random(0)
    device, host = PlaneWriter("/device:GPU:0"), PlaneWriter("/host:CPU")
    kernels, copies, executor, steps = [], [], [], []
    clock = 0
    kernel_count = events // 4
    for i in range(kernel_count):
        duration = generator.randrange(2_000, 400_000) * 1000
        clock += duration + generator.randrange(1_000, 30_000) * 1000
        layer = f"model/block_{i % LAYERS}/conv2d/Conv2D"
        stats = (
            device.stat("correlation_id", i + 1)
            + device.stat("kernel_details", f"regs:64 shm:{i % 32} grid:512,1,1 block:256,1,1")
            + device.stat("tf_op", f"{layer}:Conv2D")
            + device.stat("group_id", i // STEP_EVENTS)
            + device.stat("context_id", "$$1", inline=True)
        )
        kernels.append(device.event(KERNELS[i % len(KERNELS)], clock, duration, stats))
        if i % 50 == 0:
            details = "kind_src:pageable kind_dst:device size:1048576 dest:0 async:1"
            stats = device.stat("correlation_id", kernel_count + i) + device.stat(
                "memcpy_details", details, inline=True
            )
            copies.append(device.event("MemcpyH2D", clock, 90_000_000, stats))
        launched = clock - 30_000_000
        executor.append(host.event("cuLaunchKernel", launched, 5_000_000, host.stat("correlation_id", i + 1)))
        executor.append(host.event(f"{layer}:Conv2D", launched - 9_000_000, 15_000_000))
        memory = b"".join(
            host.stat(name, generator.randrange(1 << 34))
            for name in ("bytes_reserved", "bytes_allocated", "bytes_available", "addr")
        )
        executor.append(host.event("MemoryAllocation", launched - 8_000_000, 0, memory))
        if i % STEP_EVENTS == 0:
            marker = host.stat("step_num", i // STEP_EVENTS) + host.stat("_r", 1)
            steps.append(host.event("train", clock, STEP_EVENTS * 200_000_000, marker))
    device.line(13, "Stream #13(Compute)", kernels)
    device.line(14, "Stream #14(MemcpyH2D)", copies)
    host.line(1, "tf_gpu_private/1", executor)
    host.line(2, "python", steps)
    with path.open("wb") as file:
        for plane in (device, host):
            body = list(plane.parts())
            file.write(varint(1 << 3 | 2) + varint(sum(map(len, body))))
            file.writelines(body)
        file.write(message(4, b"synthetic"))
    return len(kernels) + len(copies) + len(executor) + len(steps)


# --------------------------------------------------------------------------------------------------
# The readers, each run in a process of its own

MEASURE = """
import json, re, sys, time

def peak():  # not ru_maxrss, which a child inherits from its parent
    return int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) * 1024

path = sys.argv[1]
{setup}
idle, begin, used = peak(), time.perf_counter(), time.process_time()
{read}
seconds, used = time.perf_counter() - begin, time.process_time() - used
print(json.dumps([seconds, used, peak() - idle]))
"""

PROTOBUF_LOOP = """
space = xplane_pb2.XSpace()
space.ParseFromString(open(path, "rb").read())
rows = []
for plane in space.planes:
    for line in plane.lines:
        for event in line.events:
            stats = {plane.stat_metadata[stat.metadata_id].name for stat in event.stats}
            start_ps = line.timestamp_ns * 1000 + event.offset_ps
            name = plane.event_metadata[event.metadata_id].name
            rows.append((name, start_ps, event.duration_ps, len(stats)))
"""

READERS = {
    "tfaudit summarise": (
        "from pathlib import Path; from tfaudit.trace import assemble",
        "assemble.summarise(Path(path))",
    ),
    "tfaudit decoding alone": (
        "from pathlib import Path; from tfaudit.trace import reading, xspace",
        "reading.read_trace(Path(path))",
    ),
    "protobuf loop": (
        "from tensorflow.tsl.profiler.protobuf import xplane_pb2",
        PROTOBUF_LOOP,
    ),
    "XProf overview": (
        "from xprof.convert import raw_to_tool_data",
        "raw_to_tool_data.xspace_to_tool_data([path], 'overview_page', {})",
    ),
}


def run(reader: str, path: Path, timeout_s: float) -> tuple[float, float, int] | str:
    """Return wall seconds, processor seconds and peak bytes; or why there are none."""
    setup, read = READERS[reader]
    program = MEASURE.format(setup=setup, read=read)
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        return f"not done in {timeout_s:g} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:80]
    seconds, used, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, used, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--events", type=int, nargs="+", default=EVENTS)
    parser.add_argument("--timeout-s", type=float, default=120.0)
    options = parser.parse_args()
    print(
        f"{'events':>9}  {'MB':>6}  {'reader':24}{'wall s':>8}{'cpu s':>8}{'events/s':>12}{'peak/file':>11}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for events in options.events:
            path = Path(folder) / f"{events}.xplane.pb"
            written = synthetic(path, events)
            size = path.stat().st_size
            for reader in READERS:
                copy = path.with_name(f"copy_{path.name}")  # XProf leaves caches beside its input
                copy.write_bytes(path.read_bytes())
                found = run(reader, copy, options.timeout_s)
                row = f"{written:>9}  {size / 1e6:>6.1f}  {reader:24}"
                if isinstance(found, str):
                    print(f"{row}{found}", flush=True)
                    continue
                seconds, used, peak = found
                rate = f"{written / used:>12,.0f}"
                print(f"{row}{seconds:>8.2f}{used:>8.2f}{rate}{peak / size:>10.1f}x", flush=True)


if __name__ == "__main__":
    main()
