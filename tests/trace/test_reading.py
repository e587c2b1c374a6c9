"""Which files are read, and how each way to fail is told."""

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from xspaces import gpu, host, space, write

from tfaudit.errors import TraceError
from tfaudit.trace import reading, summarise

CONTENT = space(gpu().event("Stream #1(Compute)", "kernel", 0, 10), host().event("a", "x:X", 0, 1))


def session(folder: Path, date: str, *hosts: str) -> None:
    place = folder / "plugins" / "profile" / date
    place.mkdir(parents=True)
    for name in hosts:
        (place / f"{name}.xplane.pb").write_bytes(CONTENT.replace(b"worker", name.encode()))


def test_a_log_folder_stands_for_its_newest_session_with_all_hosts(tmp_path: Path) -> None:
    session(tmp_path, "2024_01_02_00_00_00", "newhst", "other1")
    session(tmp_path, "2023_12_31_23_59_59", "oldhst")
    result = summarise(tmp_path)
    assert [each.host for each in result.hosts] == ["newhst", "other1"]
    assert [each.host for each in result.devices] == ["newhst", "other1"]


def test_sessions_below_the_log_folder_are_found(tmp_path: Path) -> None:
    session(tmp_path / "logs" / "train", "2024_01_02_00_00_00", "worker")
    assert len(summarise(tmp_path).sources) == 1


def test_a_folder_may_hold_the_files_itself(tmp_path: Path) -> None:
    session(tmp_path, "2024_01_02_00_00_00", "worker")
    assert len(summarise(tmp_path / "plugins/profile/2024_01_02_00_00_00").sources) == 1


def test_a_damaged_host_does_not_hide_the_others(tmp_path: Path) -> None:
    session(tmp_path, "2024_01_02_00_00_00", "worker")
    (tmp_path / "plugins/profile/2024_01_02_00_00_00/broken.xplane.pb").touch()
    result = summarise(tmp_path)
    assert len(result.hosts) == 1
    assert "unreadable-file" in {remark.kind for remark in result.health}


def test_a_packed_trace_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.xplane.pb.gz"
    path.write_bytes(gzip.compress(CONTENT))
    assert len(summarise(path).devices) == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(CONTENT[:-30], "is truncated", id="truncated"),
        pytest.param(CONTENT[:60], "is truncated", id="truncated early"),
        pytest.param(CONTENT.replace(b"\x22", b"\x27"), "is corrupt", id="corrupt"),
        pytest.param(b"import tensorflow as tf\n", "not a profiler trace", id="a program"),
        pytest.param(bytes(range(256)) * 20, "not a profiler trace", id="binary"),
        pytest.param(b"\x22\x06worker", "without any host or device", id="no plane"),
        pytest.param(gzip.compress(CONTENT)[:-20], "is truncated", id="half a gzip"),
        pytest.param(b"\x1f\x8bnonsense", "damaged", id="no gzip"),
        pytest.param(gzip.compress(b""), "is empty", id="nothing packed"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=says) as error:
        summarise(path)
    text = str(error.value)
    assert text.startswith(str(path)) and text.endswith(".") and "\n" not in text


def test_a_file_that_went_through_a_text_tool_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(CONTENT[:200] + b"\xef\xbf\xbd" * 50 + CONTENT[200:])
    with pytest.raises(TraceError, match="text tool"):
        summarise(path)


def test_a_missing_file_and_a_folder_without_trace_say_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="does not exist"):
        summarise(tmp_path / "nothing")
    with pytest.raises(TraceError, match="holds no trace"):
        summarise(tmp_path)


def test_a_file_larger_than_memory_is_refused_before_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, gpu().event("Stream #1", "k", 0, 1))
    monkeypatch.setattr(reading, "_limit_bytes", lambda: 100)
    with pytest.raises(TraceError, match="too large"):
        summarise(path)


def test_a_small_file_that_unpacks_to_more_than_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.trace.json.gz"
    path.write_bytes(gzip.compress(bytes(60 << 20)))
    monkeypatch.setattr(reading, "_limit_bytes", lambda: 100 << 20)
    with pytest.raises(TraceError, match="too large"):
        summarise(path)


IMPORTED = """
import json, sys
import tfaudit.trace
before = sorted(name for name in ("pandas", "numpy", "tensorflow") if name in sys.modules)
from pathlib import Path
tfaudit.trace.summarise(Path(sys.argv[1]))
print(json.dumps([before, "tensorflow" in sys.modules, "xprof" in sys.modules]))
"""


def test_importing_is_cheap_and_reading_needs_no_tensorflow(tmp_path: Path) -> None:
    path = write(tmp_path, gpu().event("Stream #1", "k", 0, 1))
    command = [sys.executable, "-c", IMPORTED, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [[], False, False]


def test_memory_and_time_stay_bounded_for_a_plane_of_nothing_but_names(tmp_path: Path) -> None:
    """A hundred thousand names and no event: read in seconds."""
    plane = host().event("a", "x:X", 0, 1)
    for i in range(100_000):
        plane.names[f"void kernel<{i}, float>::run(cudaStream_t)"] = i + 2
    path = write(tmp_path, plane)
    begin = time.process_time()
    summarise(path)
    assert time.process_time() - begin < 10
