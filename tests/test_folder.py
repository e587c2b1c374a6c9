"""The run folder: when one may be made, and what a finished one gives back."""

from __future__ import annotations

import os
from datetime import date, datetime
from pathlib import Path

import pytest
from checks.builders import CPU, GPU, evidence, failed, measured, program, run_folder

from tfaudit import folder as folders
from tfaudit.errors import UsageError
from tfaudit.records import Answer, VariantEnvironment, write

not_as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


def refused(folder: Path, overwrite: bool = False) -> str:
    """The sentence with which a folder is refused."""
    with pytest.raises(UsageError) as raised:
        folders.prepare(folder, overwrite)
    assert raised.value.exit_code == 2
    return str(raised.value)


def test_a_new_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    folders.prepare(tmp_path / "a" / "b")
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["variants"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    folders.prepare(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["variants"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    assert refused(tmp_path / "out") == f"{tmp_path}/out is a file: --output names a folder."
    assert (tmp_path / "out").read_text() == "mine"


def test_a_folder_that_holds_a_run_is_kept(tmp_path: Path) -> None:
    run_folder(tmp_path / "out", evidence(baseline=100.0))
    assert refused(tmp_path / "out") == (
        f"{tmp_path}/out already holds a run: name another folder, or add --overwrite."
    )
    assert (tmp_path / "out" / "variants" / "baseline" / "result.json").exists()


def test_a_folder_that_holds_a_run_is_emptied_of_it_when_asked(tmp_path: Path) -> None:
    """What the user put beside the run stays."""
    folder = run_folder(tmp_path, evidence(baseline=100.0))
    for name in ("report.html", "report.json", "evidence.json", "notes.txt"):
        (folder / name).touch()
    folders.prepare(folder, overwrite=True)
    assert sorted(path.name for path in folder.iterdir()) == ["notes.txt", "variants"]
    assert list((folder / "variants").iterdir()) == []


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_that_holds_something_else_is_never_touched(overwrite: bool, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    assert refused(tmp_path, overwrite) == f"{tmp_path} is not empty and holds no run: name a new folder."
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refused(tmp_path / "file" / "out") == (
        f"{tmp_path}/file/out cannot be written (Not a directory): name another folder with --output."
    )


@not_as_root
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        assert refused(tmp_path) == (
            f"{tmp_path} cannot be written (Permission denied): name another folder with --output."
        )
    finally:
        tmp_path.chmod(0o755)


@not_as_root
def test_a_run_that_cannot_be_overwritten(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "out", evidence(baseline=100.0))
    folder.chmod(0o555)
    try:
        assert "cannot be written (Permission denied)" in refused(folder, overwrite=True)
    finally:
        folder.chmod(0o755)


def test_without_output_a_run_goes_beside_no_file_of_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    now = datetime(2025, 1, 31, 20, 52, 11)
    assert folders.default("src/train.py", now) == tmp_path / "tfaudit" / "train.py-20250131-205211"
    assert folders.default("package.module:make", now).name == "package.module-make-20250131-205211"
    assert folders.default("../", now).parent == tmp_path / "tfaudit"


# Reading back ---------------------------------------------------------------------------------------


def test_a_finished_run_gives_its_results_in_the_order_of_the_plan(tmp_path: Path) -> None:
    given = evidence(baseline=100.0, cached_input=140.0, xla=90.0)
    gathered = folders.gather(run_folder(tmp_path, given))
    assert gathered.plan == given.plan
    assert gathered.variants == given.variants
    assert gathered.trace is None


def test_a_result_that_is_missing_was_not_run(tmp_path: Path) -> None:
    """A run that was killed leaves the results that it had."""
    given = evidence(baseline=100.0, xla=100.0, no_xla=100.0)
    gathered = folders.gather(run_folder(tmp_path, given, without=["xla", "no-xla"]))
    assert [result.status for result in gathered.variants] == ["measured", "not-run", "not-run"]
    failure = gathered.variants[1].failure
    assert failure is not None
    assert (failure.kind, failure.message) == ("interrupted", "The audit ended before it.")


def test_a_run_with_missing_results_was_interrupted(tmp_path: Path) -> None:
    """A second Ctrl-C, one between two variants or a kill leaves no record that says so."""
    given = evidence(baseline=100.0, xla=100.0)
    assert folders.gather(run_folder(tmp_path, given, without=["xla"])).interrupted


def test_the_program_is_the_one_that_a_child_told(tmp_path: Path) -> None:
    told = program(model_class="Sequential")
    given = evidence(measured("baseline", program=told), xla=100.0)
    assert folders.gather(run_folder(tmp_path, given)).program == told


def test_the_program_is_not_known_when_no_child_told_it(tmp_path: Path) -> None:
    given = evidence(failed("baseline", "raised", "load"))
    assert folders.gather(run_folder(tmp_path, given)).program is None


def test_devices_and_versions_are_those_that_a_child_saw(tmp_path: Path) -> None:
    seen = VariantEnvironment(versions={"tensorflow": "2.21.0", "python": "3.12.1"}, devices=(CPU, GPU))
    given = evidence(failed("baseline", "killed"), measured("xla", environment=seen), devices=())
    machine = folders.gather(run_folder(tmp_path, given)).machine
    assert machine.devices == (CPU, GPU)
    assert machine.versions == {"python": "3.12.1", "tensorflow": "2.21.0"}
    assert machine.cpu == "Some CPU"


def test_a_profiled_variant_without_a_trace_says_so(tmp_path: Path) -> None:
    trace = folders.gather(run_folder(tmp_path, evidence(measured("profiled", [])))).trace
    assert trace is not None
    assert (trace.summary, trace.problem) == (None, "The profiler wrote no trace.")


def test_a_trace_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, evidence(measured("profiled", [])))
    place = folder / "variants" / "profiled" / "trace" / "plugins" / "profile" / "2025_01_31"
    place.mkdir(parents=True)
    (place / "host.xplane.pb").write_bytes(b"no protocol buffer" * 10)
    trace = folders.gather(folder).trace
    assert trace is not None
    assert (trace.bytes, trace.summary) == (180, None)
    assert trace.problem.endswith(".") and "\n" not in trace.problem


def test_answers_given_to_an_earlier_audit_are_kept(tmp_path: Path) -> None:
    answers = (Answer("unused-storage", "no", "Hm.", "Ann", date(2026, 1, 31)),)
    folder = run_folder(tmp_path, evidence(baseline=100.0))
    assert folders.gather(folder).answers == ()
    write(folders.evidence_path(folder), evidence(baseline=100.0, answers=answers))
    assert folders.gather(folder).answers == answers


@pytest.mark.parametrize("content", [b"{", b"\xff", b'{"answers": [{"check": "a", "said": "maybe"}]}'])
def test_answers_are_not_lost_without_a_word(content: bytes, tmp_path: Path) -> None:
    folder = run_folder(tmp_path, evidence(baseline=100.0))
    folders.evidence_path(folder).write_bytes(content)
    with pytest.raises(UsageError) as raised:
        folders.gather(folder)
    assert str(raised.value) == (
        f"{tmp_path}/evidence.json cannot be read for the answers in it: delete it, and give them again with"
        " --answers."
    )


def test_evidence_of_an_earlier_version_holds_no_answers(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, evidence(baseline=100.0))
    folders.evidence_path(folder).write_text('{"plan": null}')
    assert folders.gather(folder).answers == ()


def test_a_folder_without_a_plan_holds_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        folders.gather(tmp_path)
    assert str(raised.value) == f"{tmp_path}/plan.json does not exist: point at the folder of a finished run."


def test_a_result_that_is_no_document_gives_one_sentence(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, evidence(baseline=100.0))
    (folder / "variants" / "baseline" / "result.json").write_text("{")
    with pytest.raises(UsageError, match=r"result\.json is not a VariantResult document: "):
        folders.gather(folder)


def test_a_run_without_a_report_gives_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"report\.json does not exist: "):
        folders.report(run_folder(tmp_path, evidence(baseline=100.0)))
