"""The machine's counters and gauges around a block, with psutil and NVML faked: what they refuse costs its
own field and nothing else."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tfaudit import sampling
from tfaudit.records import DeviceUsage, Usage, read, write
from tfaudit.sampling import Sampler

CHILD, WORKER = 100, 101


def refuses(*arguments: object, **options: object) -> Any:
    raise PermissionError("not for you")


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class Machine:
    """What psutil tells of a machine with four cores, a child and its worker."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.cores = [
            dict.fromkeys(("user", "system", "steal", "idle", "iowait", "guest"), 0.0) for _ in "1234"
        ]
        self.disk: Any = SimpleNamespace(read_bytes=0, write_bytes=0)
        self.cards = {name: SimpleNamespace(bytes_sent=0, bytes_recv=0) for name in ("lo", "eth0", "eth1")}
        self.cpu = {CHILD: [0.0] * 4, WORKER: [0.0] * 4}
        self.rss = {CHILD: 1000, WORKER: 10}

    def namespace(self) -> Any:
        """It in the place of psutil."""
        return SimpleNamespace(
            Process=lambda pid: Process(self, pid),
            cpu_times=lambda percpu: [SimpleNamespace(**core) for core in self.cores],
            disk_io_counters=lambda: self.disk,
            net_io_counters=lambda pernic: self.cards,
            virtual_memory=lambda: SimpleNamespace(available=5000),
        )


class Process:
    def __init__(self, machine: Machine, pid: int) -> None:
        if pid not in machine.cpu:
            raise ProcessLookupError(pid)
        self.machine, self.pid = machine, pid

    def children(self, recursive: bool) -> list[Process]:
        return [Process(self.machine, pid) for pid in self.machine.cpu if pid > self.pid]

    def cpu_times(self) -> Any:
        names = ("user", "system", "children_user", "children_system")
        return SimpleNamespace(**dict(zip(names, self.machine.cpu[self.pid], strict=True)))

    def memory_info(self) -> Any:
        return SimpleNamespace(rss=self.machine.rss[self.pid])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(sampling, "time", clock)
    return clock


@pytest.fixture
def machine(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(clock)
    monkeypatch.setattr(sampling, "psutil", machine.namespace())
    monkeypatch.setattr(sampling.machine, "psutil", sampling.psutil)
    monkeypatch.setattr(sampling.machine, "CGROUP_MEMORY", ())
    monkeypatch.setattr(sampling, "allowed_cores", lambda: ())
    monkeypatch.setattr(sampling, "core_quota", lambda: None)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    return machine


def sampled(machine: Machine, meanwhile: Callable[[], None] = lambda: None) -> Usage:
    """A block of two seconds in which that happens."""
    sampler = Sampler()
    sampler.begin(CHILD)
    meanwhile()
    machine.clock.now += 2.0
    usage = sampler.end()
    sampler.close()
    return usage


# Counters -------------------------------------------------------------------------------------------


def test_counters_are_told_as_what_they_grew_by(machine: Machine) -> None:
    machine.cores[0]["user"] = machine.cpu[CHILD][0] = 50.0  # before the block
    machine.disk.read_bytes = machine.cards["eth0"].bytes_sent = 7

    def work() -> None:
        machine.cores[0].update(user=51.0, system=0.5, steal=0.25, idle=9.0, iowait=0.1, guest=1.0)
        machine.cores[3].update(iowait=0.15)
        machine.disk.read_bytes, machine.disk.write_bytes = 107, 30
        machine.cards["lo"].bytes_sent = machine.cards["lo"].bytes_recv = 1_000_000
        machine.cards["eth0"].bytes_sent, machine.cards["eth1"].bytes_recv = 12, 40
        machine.cpu[CHILD] = [50.5, 0.25, 0.0, 0.0]
        machine.cpu[WORKER] = [0.125, 0.0, 0.0, 0.0]

    assert sampled(machine, work) == Usage(
        duration_s=2.0,
        busy_core_s=(1.75, 0.0, 0.0, 0.0),  # neither idle nor iowait; guests are in the user's time
        iowait_core_s=0.25,
        core_limit=4.0,
        job_cpu_s=0.875,
        job_memory_bytes=1010,
        available_memory_bytes=5000,
        disk_read_bytes=100,
        disk_written_bytes=30,
        network_sent_bytes=5,
        network_received_bytes=40,
    )


def test_only_the_cores_that_the_job_may_use_count(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "allowed_cores", lambda: {1, 3})

    def work() -> None:
        for number, core in enumerate(machine.cores):
            core.update(user=float(number), iowait=0.5)

    usage = sampled(machine, work)
    assert (usage.busy_core_s, usage.iowait_core_s, usage.core_limit) == ((1.0, 3.0), 1.0, 2.0)


def test_cores_that_cannot_be_told_apart_all_count(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where some are offline, a core's number is not its place in the list."""
    monkeypatch.setattr(sampling, "allowed_cores", lambda: {0, 6})
    assert len(sampled(machine).busy_core_s) == 4


def test_a_quota_below_the_cores_is_their_limit(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "core_quota", lambda: 1.5)
    assert sampled(machine).core_limit == 1.5
    monkeypatch.setattr(sampling, "core_quota", lambda: 16.0)
    assert sampled(machine).core_limit == 4.0


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4.0),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
    ],
    ids=["version 2", "version 2, unlimited", "version 1", "version 1, unlimited", "none"],
)
def test_the_quota_of_a_container(files: dict[str, str], quota: float | None, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert sampling.core_quota(tmp_path) == quota


def test_a_worker_that_ends_takes_nothing_from_the_sum(machine: Machine) -> None:
    """What it used is its parent's then, under another name."""
    machine.cpu[WORKER] = [3.0, 0.0, 0.0, 0.0]

    def end_worker() -> None:
        del machine.cpu[WORKER]
        machine.cpu[CHILD] = [0.5, 0.0, 3.25, 0.0]

    assert sampled(machine, end_worker).job_cpu_s == 0.75


def test_a_counter_that_was_reset_is_not_negative(machine: Machine) -> None:
    machine.disk.read_bytes, machine.cores[0]["user"] = 100, 5.0

    def reset() -> None:
        machine.disk.read_bytes, machine.cores[0]["user"] = 0, 0.0

    usage = sampled(machine, reset)
    assert (usage.disk_read_bytes, usage.busy_core_s[0]) == (0, 0.0)


def test_a_child_that_is_gone_costs_what_is_its_own(machine: Machine) -> None:
    usage = sampled(machine, machine.cpu.clear)
    assert (usage.job_cpu_s, usage.job_memory_bytes) == (None, None)
    assert usage.available_memory_bytes == 5000


def test_a_child_that_never_was_is_no_error(machine: Machine) -> None:
    machine.cpu.clear()
    assert sampled(machine).job_cpu_s is None


def test_a_container_without_disks(machine: Machine) -> None:
    machine.disk = None
    usage = sampled(machine)
    assert (usage.disk_read_bytes, usage.disk_written_bytes, usage.network_sent_bytes) == (None, None, 0)


def test_a_system_without_iowait(machine: Machine) -> None:
    for core in machine.cores:
        del core["iowait"]
    usage = sampled(machine)
    assert (usage.iowait_core_s, len(usage.busy_core_s)) == (None, 4)


@pytest.mark.parametrize(
    ("source", "lost"),
    [
        ("cpu_times", {"busy_core_s": (), "iowait_core_s": None, "core_limit": None}),
        ("disk_io_counters", {"disk_read_bytes": None, "disk_written_bytes": None}),
        ("net_io_counters", {"network_sent_bytes": None, "network_received_bytes": None}),
        ("virtual_memory", {"available_memory_bytes": None}),
        ("Process", {"job_cpu_s": None, "job_memory_bytes": None}),
    ],
)
def test_a_source_that_refuses_costs_its_own_fields(
    source: str, lost: dict[str, object], machine: Machine
) -> None:
    whole = sampled(machine)
    setattr(sampling.psutil, source, refuses)
    left = sampled(machine)
    for field in Usage.__struct_fields__:
        assert getattr(left, field) == lost.get(field, getattr(whole, field)), field


def test_memory_that_is_not_told_leaves_the_time(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Process, "memory_info", refuses)
    usage = sampled(machine)
    assert (usage.job_cpu_s, usage.job_memory_bytes) == (0.0, None)


def test_this_machine_can_be_sampled(tmp_path: Path) -> None:
    """With the real psutil: whatever it tells can be written and read again."""
    sampler = Sampler()
    sampler.begin(os.getpid())
    usage = sampler.end()
    sampler.close()
    assert usage.duration_s > 0 and usage.job_memory_bytes and usage.available_memory_bytes
    assert len(usage.busy_core_s) == len(os.sched_getaffinity(0))
    write(tmp_path / "usage.json", usage)
    assert read(tmp_path / "usage.json", Usage) == usage


# GPUs -----------------------------------------------------------------------------------------------


class Nvml:
    """In the place of pynvml: two GPUs, in GiB and milliwatts. ``refused`` names what is not supported."""

    def __init__(self) -> None:
        self.busy = {"A": 90, "B": 10}
        self.reasons = 0x1  # without work
        self.refused: set[str] = set()
        self.calls = 0
        self.open = False

    def nvmlInit(self) -> None:
        self.open = True

    def nvmlShutdown(self) -> None:
        self.open = False

    def nvmlDeviceGetCount(self) -> int:
        return len(self.busy)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return list(self.busy)[index]

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return f"GPU-{handle}-1234"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid != "MIG-A-1":
            raise LookupError(uuid)
        return "A"

    def __getattr__(self, name: str) -> Callable[..., Any]:
        query = name.removeprefix("nvmlDeviceGet")
        if query in self.refused or "everything" in self.refused:
            return refuses
        return lambda handle, *arguments: self.ask(query, handle)

    def ask(self, query: str, handle: str) -> Any:
        self.calls += 1
        return {
            "Name": f"GPU {handle}",
            "UtilizationRates": SimpleNamespace(gpu=self.busy[handle]),
            "MemoryInfo": SimpleNamespace(used=3, total=8),
            "PowerUsage": 250_000,
            "Temperature": 61,
            "CurrentClocksThrottleReasons": self.reasons,
        }[query]


@pytest.fixture
def nvml(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nvml]:
    nvml = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    yield nvml
    assert [thread.name for thread in threading.enumerate() if "gpus" in thread.name] == []


def test_each_gpu_is_read(machine: Machine, nvml: Nvml) -> None:
    assert sampled(machine).devices == (
        DeviceUsage("GPU A", 0.9, 3, 8, 250.0, 61),
        DeviceUsage("GPU B", 0.1, 3, 8, 250.0, 61),
    )
    assert not nvml.open


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ("0", ["A"]),
        ("1,0", ["B", "A"]),
        (" 1 , 0", ["B", "A"]),
        ("", []),
        ("-1", []),
        ("1,-1,0", ["B"]),
        ("7", []),
        ("GPU-B-1234", ["B"]),
        ("GPU-A", ["A"]),
        ("GPU-", []),
        ("GPU-C,0", []),
        ("MIG-A-1", ["A"]),
        ("NoDevFiles", []),
    ],
)
def test_only_the_gpus_that_the_job_sees_are_read(
    chosen: str, names: list[str], machine: Machine, nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As CUDA reads the variable: the first device that there is not hides those behind it."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert [device.name for device in sampled(machine).devices] == [f"GPU {name}" for name in names]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("UtilizationRates", "utilisation_fraction"),
        ("PowerUsage", "power_w"),
        ("Temperature", "temperature_c"),
    ],
)
def test_a_query_that_is_not_supported_costs_its_own_field(
    query: str, field: str, machine: Machine, nvml: Nvml
) -> None:
    nvml.refused = {query}
    device, _ = sampled(machine).devices
    missing = [name for name in DeviceUsage.__struct_fields__ if getattr(device, name) is None]
    assert missing == [field]


def test_a_driver_that_refuses_everything_leaves_a_gpu_without_figures(machine: Machine, nvml: Nvml) -> None:
    nvml.refused = {"everything"}
    assert sampled(machine).devices == (DeviceUsage("GPU"), DeviceUsage("GPU"))


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetCount"])
def test_without_a_driver_there_is_no_thread(
    call: str, machine: Machine, nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Nvml, call, refuses)
    monkeypatch.setattr(sampling, "Poll", refuses)
    assert sampled(machine).devices == ()


def test_a_machine_without_gpus_has_no_thread(
    machine: Machine, nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.busy = {}
    monkeypatch.setattr(sampling, "Poll", refuses)
    assert sampled(machine).devices == ()


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        (0x000, ()),
        (0x001, ()),  # no work
        (0x112, ()),  # settings, synchronisation and displays
        (0x004, ("power cap",)),
        (0x060, ("heat",)),
        (0x08C, ("power cap", "hardware slowdown", "power brake")),
    ],
)
def test_reasons_for_slow_clocks_in_words(
    reasons: int, words: tuple[str, ...], machine: Machine, nvml: Nvml
) -> None:
    nvml.reasons = reasons
    assert sampled(machine).devices[0].throttled == words


class Rounds:
    """In the place of an Event: waits by moving the clock, and is set after so many waits."""

    def __init__(self, clock: Clock, waits: int) -> None:
        self._clock, self._left = clock, waits

    def wait(self, timeout: float) -> bool:
        self._clock.now += timeout
        self._left -= 1
        return self._left < 0


def polled(machine: Machine, monkeypatch: pytest.MonkeyPatch, waits: int) -> DeviceUsage:
    """What a poll tells that is ended in its wait after so many."""
    gpus = sampling.open_gpus()
    assert gpus is not None
    monkeypatch.setattr(sampling, "threading", SimpleNamespace(Event=lambda: Rounds(machine.clock, waits)))
    poll = sampling.Poll(gpus)
    poll.run()
    return poll.usage()[0]


def test_gauges_are_read_ten_times_a_second_and_at_the_end(
    machine: Machine, nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    polled(machine, monkeypatch, waits=9)
    assert machine.clock.now == pytest.approx(1.0)
    assert nvml.calls == 10 * 2 * 6  # readings, GPUs, queries


def test_readings_soon_after_the_thaw_are_of_whoever_ran_before(
    machine: Machine, nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Means over the last sixth of a second at least; memory, temperature and clocks are of the moment."""
    by_time = {0.1: 0, 0.2: 40, 0.3: 60}
    monkeypatch.setattr(
        Nvml,
        "nvmlDeviceGetUtilizationRates",
        lambda self, handle: SimpleNamespace(gpu=by_time[round(machine.clock.now, 1)]),
        raising=False,
    )
    found = polled(machine, monkeypatch, waits=2)
    assert (found.utilisation_fraction, found.memory_used_bytes, found.temperature_c) == (0.5, 3, 61)


def test_a_block_too_short_for_the_driver_has_no_utilisation(
    machine: Machine, nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = polled(machine, monkeypatch, waits=0)
    assert (found.utilisation_fraction, found.power_w, found.memory_used_bytes) == (None, None, 3)


def test_the_thread_ends_with_the_block(machine: Machine, nvml: Nvml) -> None:
    sampler = Sampler()
    for _ in range(3):
        sampler.begin(CHILD)
        assert sum("gpus" in thread.name for thread in threading.enumerate()) == 1
        sampler.end()
        assert not any("gpus" in thread.name for thread in threading.enumerate())


@pytest.mark.parametrize("then", ["begin", "close"])
def test_a_block_that_is_never_ended_leaves_no_thread(then: str, machine: Machine, nvml: Nvml) -> None:
    """An interrupt comes between the two."""
    sampler = Sampler()
    sampler.begin(CHILD)
    if then == "begin":
        sampler.begin(CHILD)
        sampler.end()
    sampler.close()


def test_a_driver_that_hangs_is_asked_no_more(
    machine: Machine, nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "LONGEST_READING_S", 0.0)
    answer = threading.Event()
    monkeypatch.setattr(
        Nvml, "nvmlDeviceGetName", lambda self, handle: answer.wait() and "GPU", raising=False
    )
    sampler = Sampler()
    sampler.begin(CHILD)
    assert sampler.end().devices == ()
    (hanging,) = (thread for thread in threading.enumerate() if "gpus" in thread.name)
    sampler.begin(CHILD)
    assert sum("gpus" in thread.name for thread in threading.enumerate()) == 1
    sampler.end()
    sampler.close()
    answer.set()
    hanging.join()
