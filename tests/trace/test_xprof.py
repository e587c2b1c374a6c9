"""XProf's verdict beside ours: it costs its own line and nothing else."""

import importlib.util
from pathlib import Path

import pytest
from xspaces import gpu, host, write

from tfaudit.trace import xprof, xprof_verdict

NEEDS_XPROF = pytest.mark.skipif(
    importlib.util.find_spec("xprof") is None, reason="tensorboard-plugin-profile is not installed"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    cpu = host().line("python", 1)
    for i in range(6):
        cpu.event("python", "tfaudit step", i * 1000, 900, step_num=i, _r=1)
    return write(tmp_path, cpu)


def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    script = tmp_path / "child.py"
    script.write_text(program)
    monkeypatch.setattr(xprof, "CHILD", script)


@NEEDS_XPROF
def test_no_cache_file_is_left_beside_the_input(path: Path) -> None:
    verdict = xprof_verdict(path, 60)
    assert (verdict.error, verdict.steps) == (None, 0)
    assert verdict.version
    assert [item.name for item in path.parent.iterdir()] == [path.name]


@NEEDS_XPROF
def test_the_verdict_on_a_recorded_trace(traces: Path) -> None:
    """XProf counts its idle time as "others" and finds no input; tfaudit names the wait."""
    verdict = xprof_verdict(traces / "tf23_bert_8xV100.xplane.pb", 60)
    assert (verdict.steps, verdict.classification) == (1, "POTENTIALLY input-bound")
    assert verdict.input_fraction == 0.0
    assert verdict.other_fraction == pytest.approx(0.302, abs=0.001)
    assert verdict.compute_16bit_fraction == pytest.approx(0.305)
    assert "POTENTIALLY input-bound" in verdict.recommendation


def test_a_child_that_hangs_is_killed(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child(tmp_path, monkeypatch, "import time; time.sleep(60)")
    assert xprof_verdict(path, 0.3).error == "XProf did not finish within 0.3 s."


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "signal 11"),
        ("raise ValueError('CORRUPT_TRACE')", "CORRUPT_TRACE"),
        ("import xprof.not_there_at_all", "not installed|exit code 1"),
        ("pass", "exit code 0"),
        ("import sys; open(sys.argv[1], 'w').write('{}')", "could not be used"),
        ("import sys; open(sys.argv[1], 'w').write('no json')", "could not be used"),
    ],
)
def test_a_crash_or_a_strange_answer_is_told_in_the_verdict(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, says: str
) -> None:
    child(tmp_path, monkeypatch, program)
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(xprof_verdict(path, 30).error)


def test_other_formats_and_missing_files_are_told_too(tmp_path: Path) -> None:
    timeline = tmp_path / "timeline.json"
    timeline.write_text("{}")
    assert "only .xplane.pb" in str(xprof_verdict(timeline, 5).error)
    assert "does not exist" in str(xprof_verdict(tmp_path / "nothing", 5).error)


def test_a_device_trace_gives_a_verdict_or_a_reason(tmp_path: Path) -> None:
    path = write(tmp_path, gpu().event("Stream #1(Compute)", "k", 0, 10))
    verdict = xprof_verdict(path, 60)
    assert verdict.error or verdict.steps == 0
