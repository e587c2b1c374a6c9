"""`tfaudit trace`: figures of built traces as text, JSON and HTML, and one sentence for what is no trace."""

from __future__ import annotations

import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from checks.builders import evidence, measured, run_folder
from click.testing import CliRunner, Result
from xspaces import PlaneBuilder, gpu, host, write

from tfaudit import folder as folders
from tfaudit.cli import cli
from tfaudit.trace import xprof

MIB = 2**20


def tell(*arguments: object, xprof: bool = False) -> Result:
    command = ["trace", *map(str, arguments), *([] if xprof else ["--no-xprof"])]
    return CliRunner().invoke(cli, command, env={"COLUMNS": "100"}, prog_name="tfaudit")


def job(kernel: str = "gemm") -> tuple[PlaneBuilder, PlaneBuilder]:
    """Four steps of 10 ms: 4 ms waiting for input, a copy of 2 ms, 3 ms of a kernel."""
    plane, cpu = gpu(compute_cap_major=8, compute_cap_minor=0), host()
    for i in range(4):
        at = i * 10_000
        cpu.event("python", "train", at, 10_000, step_num=i, _r=1)
        cpu.event("w", "IteratorGetNextOp::DoCompute", at, 4_000)
        details = f"kind_src:pageable kind_dst:device size:{100 * MIB} dest:0 async:1"
        plane.event("Stream #1", "MemcpyH2D", at + 4_000, 2_000, memcpy_details=details)
        plane.event("Stream #2", kernel, at + 6_000, 3_000)
    return plane, cpu


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path, *job())


def test_the_figures_of_devices_and_steps_are_printed(path: Path) -> None:
    result = tell(path)
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    for line in (
        "Of a step's time, 40 % goes to waiting for input (HIGHLY input-bound).",
        "busy 20.0 ms of 35.0 ms, kernels 12.0 ms, 8 events",
        "15.0 ms waiting for input (3 gaps)",
        "top ops 60.0 % 12.0 ms 4× gemm",
        "all 4 40.0 ms 40 % 20 % 30 % 10 %",
        "✗ fail 1.10 Input wait in the trace",
    ):
        assert line in lines, result.stdout
    assert "4 (1 per step), 400 MiB, 52.4 GB/s" in result.stdout


def test_the_checks_that_read_a_trace_follow_in_order(path: Path) -> None:
    found = [line.split()[2] for line in tell(path).stdout.splitlines() if line[:1] in "✗▲✓?–" and line[:1]]
    assert [number for number in found if number[0].isdigit()] == [
        "1.9",
        "1.10",
        "1.11",
        "1.12",
        "5.3",
        "8.3",
    ]
    assert "– not applicable 6.5" in tell(path).stdout


def test_json_is_the_summary_and_nothing_else(path: Path) -> None:
    result = tell(path, "--json")
    told = json.loads(result.stdout)
    assert {"hosts", "devices", "steps", "health"} <= told.keys()
    (device,) = told["devices"]
    assert {"plane", "events", "span_ms", "busy_ms", "kernel_busy_ms", "idle_fraction", "longest_gap_ms",
            "gaps", "copies", "top_ops", "collectives", "precision"} <= device.keys()  # fmt: skip
    assert device["gaps"][0].keys() == {"start_ms", "duration_ms", "step", "cause"}
    h2d = device["copies"]["h2d"]
    assert (h2d["count"], h2d["bytes"], h2d["pageable_count"]) == (4, 400 * MIB, 4)
    assert (h2d["busy_ms"], h2d["exposed_ms"]) == (pytest.approx(8.0), pytest.approx(8.0))
    for step in told["steps"]:
        parts = ("input_wait_ms", "copy_ms", "launch_ms", "compute_ms", "communication_ms", "other_ms")
        assert sum(step[part] for part in parts) == pytest.approx(step["duration_ms"])


def test_only_the_step_and_the_device_asked_for_are_told(path: Path) -> None:
    told = json.loads(tell(path, "--json", "--step", 2, "--device", 0).stdout)
    assert ([step["step"] for step in told["steps"]], len(told["devices"])) == ([2], 1)


@pytest.mark.parametrize(("option", "says"), [("--step", "no step 9"), ("--device", "no device 9")])
def test_what_the_trace_does_not_have_is_one_sentence(path: Path, option: str, says: str) -> None:
    result = tell(path, option, 9)
    assert (result.exit_code, result.stdout) == (3, "")
    assert says in result.stderr


def nothing(folder: Path) -> Path:
    return folder / "nothing.xplane.pb"


def truncated(folder: Path) -> Path:
    whole = write(folder, *job())
    whole.write_bytes(whole.read_bytes()[:-20])
    return whole


def corrupt(folder: Path) -> Path:
    whole = write(folder, *job())
    whole.write_bytes(whole.read_bytes().decode("latin-1").encode("ascii", "replace"))
    return whole


def empty(folder: Path) -> Path:
    (folder / "empty.xplane.pb").touch()
    return folder / "empty.xplane.pb"


def host_alone(folder: Path) -> Path:
    return write(folder, host().event("python", "something", 0, 10))


def device_alone(folder: Path) -> Path:
    return write(folder, gpu())


def no_trace(folder: Path) -> Path:
    (folder / "notes.txt").write_text("shopping list\n")
    return folder / "notes.txt"


def empty_folder(folder: Path) -> Path:
    return folder


MAKERS = (nothing, truncated, corrupt, empty, host_alone, device_alone, no_trace, empty_folder)


@pytest.mark.parametrize("make", MAKERS)
def test_what_cannot_be_told_is_one_sentence_and_exit_code_3(tmp_path: Path, make: Any) -> None:
    result = tell(make(tmp_path))
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("Error: ") and result.stderr.count("\n") == 1
    assert result.stderr.rstrip().endswith(".")


def test_a_host_with_steps_and_a_device_without_host_are_told(tmp_path: Path) -> None:
    cpu = host()
    for i in range(3):
        cpu.event("python", "train", i * 100, 90, step_num=i, _r=1)
    steps = tell(write(tmp_path, cpu))
    assert (steps.exit_code, "✓ pass           1.9" in steps.stdout) == (0, True)
    alone = tell(write(tmp_path, gpu().event("Stream #1", "gemm", 0, 10), name="device.xplane.pb"))
    assert (alone.exit_code, "no host events" in alone.stdout) == (0, True)


HOSTILE = "\x1b[31mred\x1b[0m\x9b2J\u202e</script><img src=x onerror=alert(1)>{{ 7*7 }}{% raw %}"


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.append(tag)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_names_do_not_reach_the_terminal_as_they_are(tmp_path: Path, form: tuple[str, ...]) -> None:
    plane, cpu = job(HOSTILE)
    cpu.event(HOSTILE, HOSTILE, 0, 10)
    result = tell(write(tmp_path, plane, cpu), *form)
    assert result.exit_code == 0
    assert not set(result.stdout) & set("\x1b\x9b\u202e\x07\x08")
    assert "7*7" in result.stdout


def test_names_do_not_break_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert tell(write(tmp_path, *job(HOSTILE)), "--html", page).exit_code == 0
    text = page.read_text()
    tags = Elements(text).found
    assert (tags.count("script"), tags.count("img")) == (2, 0)
    assert "{{ 7*7 }}" in text and "\x1b" not in text and "\u202e" not in text


def test_the_page_draws_a_step_and_lists_what_is_in_it(path: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert tell(path, "--html", page, "--step", 1).exit_code == 0
    text = page.read_text()
    assert "Timeline of step 1" in text and "idle: waiting for input" in text
    for words in ("Where a step's time goes", "Longest gaps", "Longest copies", "100 MiB", "pageable"):
        assert words in text.replace("&#39;", "'"), words
    assert "https://" not in text.replace("http://www.w3.org", "")


def test_the_export_is_json_that_perfetto_reads(path: Path, tmp_path: Path) -> None:
    exported = tmp_path / "trace.json"
    assert tell(path, "--perfetto", exported).exit_code == 0
    assert json.loads(exported.read_bytes())["traceEvents"]


def test_a_file_that_cannot_be_written_is_one_sentence(path: Path, tmp_path: Path) -> None:
    result = tell(path, "--perfetto", tmp_path / "no" / "such" / "folder.json")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


def test_xprofs_crash_costs_its_own_line(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = tmp_path / "child.py"
    child.write_text("import os; os.abort()")
    monkeypatch.setattr(xprof, "CHILD", child)
    without, result = tell(path).stdout, tell(path, xprof=True).stdout
    told = "XProf gave no verdict: XProf was killed by signal 6."
    assert told in result
    assert [line for line in without.splitlines() if line not in result.splitlines()] == []


def test_a_run_keeps_summary_timeline_and_xprofs_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the report needs of a trace is in the evidence; XProf's hang or crash is one line of it."""
    child = tmp_path / "child.py"
    child.write_text("import os; os.abort()")
    monkeypatch.setattr(xprof, "CHILD", child)
    folder = run_folder(tmp_path / "run", evidence(measured("profiled", [])))
    place = folder / "variants" / "profiled" / "trace" / "plugins" / "profile" / "2025_01_31_10_00_00"
    place.mkdir(parents=True)
    size = write(place, *job()).stat().st_size
    found = folders.gather(folder).trace
    assert found is not None and found.summary is not None and found.timeline is not None
    assert (found.bytes, len(found.summary.steps), found.timeline.step) == (size, 4, 1)
    assert found.xprof is not None and found.xprof.error == "XProf was killed by signal 6."


@pytest.mark.parametrize(
    "name",
    ["jax_conv_8xmi300x", "jax_gemm_mi300x", "jax_tpu_v6e_4chips", "no_host_plane", "tf23_bert_8xV100"],
)
def test_recorded_traces_give_the_reference_figures(traces: Path, name: str) -> None:
    told = json.loads(tell(traces / f"{name}.xplane.pb", "--json").stdout)["devices"]
    wanted = json.loads((traces / "expected.json").read_text())[f"{name}.xplane.pb"]
    assert [device["plane"] for device in told] == [each["plane"] for each in wanted]
    for device, each in zip(told, wanted, strict=True):
        for figure in ("events", "span_ms", "busy_ms", "idle_fraction", "longest_gap_ms"):
            if figure in each:
                assert device[figure] == pytest.approx(each[figure], rel=1e-3), figure
        if name.startswith(("tf23", "jax_tpu")):  # ROCm's copy kernels are copies to us
            for way, copies in each.get("copies", {}).items():
                assert device["copies"][way]["count"] == copies["count"]
                assert device["copies"][way]["bytes"] == copies["bytes"]


@pytest.mark.parametrize("name", ["corrupt_utf8_mangled", "truncated_half", "empty"])
def test_recorded_damage_is_one_sentence(traces: Path, name: str) -> None:
    result = tell(traces / f"{name}.xplane.pb")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (3, "", 1)


def test_tensorflow_is_not_imported(path: Path) -> None:
    code = (
        "import sys; from tfaudit.cli import cli; from click.testing import CliRunner\n"
        f"done = CliRunner().invoke(cli, ['trace', {str(path)!r}, '--no-xprof'])\n"
        "assert done.exit_code == 0, done.output\n"
        "print({'tensorflow', 'keras', 'matplotlib', 'jinja2'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
