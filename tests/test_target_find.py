"""From what the user typed to a target: each form, and one sentence for each way to get it wrong."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tfaudit.errors import UsageError
from tfaudit.records import Target
from tfaudit.target import find

BUILDERS = """
def build_model(): ...
def build_dataset(): ...
"""

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file below the test's folder."""

    def write(name: str, text: str = "") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write


def refused(name: str, directory: Path) -> str:
    """The sentence with which a target is refused."""
    with pytest.raises(UsageError) as raised:
        find(name, (), directory)
    assert raised.value.exit_code == 2
    sentence = str(raised.value)
    assert sentence.endswith(".") and "\n" not in sentence
    return sentence


# Forms ----------------------------------------------------------------------------------------------


def test_a_script(write: Write, tmp_path: Path) -> None:
    path = write("train.py", "model.fit(data)")
    assert find("train.py", ("--epochs", "3"), tmp_path) == Target(
        kind="script", path=str(path), name="train.py", arguments=("--epochs", "3")
    )


@pytest.mark.parametrize("name", ["src/train.py", "./src/train.py", "src/../src/train.py"])
def test_a_script_in_a_folder_keeps_the_name_that_was_typed(name: str, write: Write, tmp_path: Path) -> None:
    path = write("src/train.py")
    found = find(name, (), tmp_path)
    assert (found.kind, found.path, found.name) == ("script", str(path), name)


def test_a_script_by_its_absolute_path(write: Write, tmp_path: Path) -> None:
    path = write("src/train.py")
    assert find(str(path), (), tmp_path / "src").path == str(path)


def test_a_script_without_a_suffix(write: Write, tmp_path: Path) -> None:
    path = write("train", "model.fit(data)")
    found = find("train", (), tmp_path)
    assert (found.kind, found.path, found.is_file) == ("script", str(path), True)


def test_without_a_folder_the_working_directory_counts(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("train.py")
    monkeypatch.chdir(tmp_path)
    assert find("train.py").path == str(tmp_path / "train.py")


def test_a_factory_in_a_file(write: Write, tmp_path: Path) -> None:
    write("jobs.py", "def make(): ...")
    found = find("jobs.py:make", (), tmp_path)
    assert (found.kind, found.name, found.factory, found.is_file) == ("factory", "jobs.py", "make", True)


def test_a_module_is_run_like_python_m(write: Write, tmp_path: Path) -> None:
    write("package/__init__.py")
    path = write("package/train.py", "model.fit(data)")
    assert find("package.train", (), tmp_path) == Target(
        kind="module", path=str(path), name="package.train", is_file=False
    )


def test_a_module_in_a_folder_without_an_init(write: Write, tmp_path: Path) -> None:
    path = write("package/train.py")
    assert find("package.train", (), tmp_path).path == str(path)


def test_a_module_in_folders_without_an_init(write: Write, tmp_path: Path) -> None:
    path = write("package/deep/train.py")
    assert find("package.deep.train", (), tmp_path).path == str(path)


def test_a_top_level_module(write: Write, tmp_path: Path) -> None:
    path = write("train.py")
    found = find("train", (), tmp_path)
    assert (found.kind, found.path) == ("module", str(path))


def test_a_package_is_run_by_its_main(write: Write, tmp_path: Path) -> None:
    write("package/__init__.py")
    path = write("package/__main__.py")
    found = find("package", (), tmp_path)
    assert (found.kind, found.path, found.name) == ("module", str(path), "package")


def test_a_factory_in_a_module(write: Write, tmp_path: Path) -> None:
    write("package/__init__.py")
    write("package/jobs.py", "def make(): ...")
    found = find("package.jobs:make", (), tmp_path)
    assert (found.kind, found.name, found.factory, found.is_file) == (
        "factory",
        "package.jobs",
        "make",
        False,
    )


def test_a_factory_in_a_package(write: Write, tmp_path: Path) -> None:
    path = write("package/__init__.py", "def make(): ...")
    found = find("package:make", (), tmp_path)
    assert (found.kind, found.path, found.factory) == ("factory", str(path), "make")


def test_nothing_is_imported_to_find_a_module(write: Write, tmp_path: Path) -> None:
    """Neither the module nor the packages around it."""
    write("loud/__init__.py", "raise SystemExit('imported')")
    write("loud/inner/__init__.py", "raise SystemExit('imported')")
    write("loud/inner/train.py", "raise SystemExit('imported')")
    assert find("loud.inner.train", (), tmp_path).kind == "module"
    assert not [name for name in sys.modules if name.partition(".")[0] == "loud"]


def test_a_module_beside_the_user_comes_before_an_installed_one(write: Write, tmp_path: Path) -> None:
    path = write("click.py")
    assert find("click", (), tmp_path).path == str(path)


# Builders or a script -------------------------------------------------------------------------------

KINDS = {
    "both builders": (BUILDERS, "builders"),
    "both builders and a step": (f"{BUILDERS}\ndef train_step(model, batch): ...", "builders"),
    "one builder": ("def build_model(): ...", "script"),
    "builders that are used": (f"{BUILDERS}\nbuild_model().fit(build_dataset())", "script"),
    "builders used under __main__": (
        f"{BUILDERS}\nif __name__ == '__main__':\n    build_model().fit(build_dataset())",
        "script",
    ),
    "builders of another function": (f"def f():\n{textwrap.indent(BUILDERS, '    ')}", "script"),
    "an empty file": ("", "script"),
}


@pytest.mark.parametrize("case", KINDS)
def test_a_file_of_builders_that_trains_nothing_is_no_script(case: str, write: Write, tmp_path: Path) -> None:
    text, kind = KINDS[case]
    write("jobs.py", text)
    assert find("jobs.py", (), tmp_path).kind == kind


def test_a_module_or_package_of_builders(write: Write, tmp_path: Path) -> None:
    write("package/__init__.py", BUILDERS)
    write("package/jobs.py", BUILDERS)
    for name in ("package", "package.jobs"):
        assert find(name, (), tmp_path).kind == "builders"


def test_a_named_factory_goes_before_builders(write: Write, tmp_path: Path) -> None:
    write("jobs.py", f"{BUILDERS}\ndef make(): ...")
    assert find("jobs.py:make", (), tmp_path).kind == "factory"


# What a factory's name may stand for ----------------------------------------------------------------

NAMES = {
    "a function": "def make(): ...",
    "a class": "class make: ...",
    "an assignment": "make = functools.partial(build, 3)",
    "an import": "from other import make",
    "an import by another name": "from other import build as make",
    "an import of everything": "from other import *",
    "a module's __getattr__": "def __getattr__(name): ...",
    "one of two branches": "if fast:\n    def make(): ...\nelse:\n    make = None",
}


@pytest.mark.parametrize("case", NAMES)
def test_a_factory_may_be_defined_in_many_ways(case: str, write: Write, tmp_path: Path) -> None:
    write("jobs.py", NAMES[case])
    assert find("jobs.py:make", (), tmp_path).factory == "make"


def test_a_factory_that_is_not_there(write: Write, tmp_path: Path) -> None:
    write("jobs.py", "def make(): ...\ndef other(): ...")
    assert refused("jobs.py:mke", tmp_path) == "jobs.py has no 'mke': it defines make, other."


def test_a_factory_where_there_is_no_function(write: Write, tmp_path: Path) -> None:
    write("jobs.py", "x = 1")
    assert refused("jobs.py:make", tmp_path) == "jobs.py has no 'make': it defines no function."


@pytest.mark.parametrize("factory", ["", "1st", "make()", "Jobs.make", "make-it"])
def test_a_factory_that_is_no_name(factory: str, write: Write, tmp_path: Path) -> None:
    write("jobs.py", "def make(): ...")
    assert refused(f"jobs.py:{factory}", tmp_path) == (
        f"{factory!r} in 'jobs.py:{factory}' is not the name of a function."
    )


@pytest.mark.parametrize(
    "text", ["def outer():\n    def make(): ...", "class Jobs:\n    def make(self): ..."]
)
def test_a_factory_inside_of_something_else_is_not_there(text: str, write: Write, tmp_path: Path) -> None:
    write("jobs.py", text)
    assert "jobs.py has no 'make'" in refused("jobs.py:make", tmp_path)


# What is no target ----------------------------------------------------------------------------------


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert refused("train.py", tmp_path) == (
        "There is no file train.py: check the path of the training script."
    )


@pytest.mark.parametrize("name", ["src/", "./src"])
def test_a_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    assert refused(name, tmp_path) == f"{name} is a folder: name the training script in it."


def test_a_folder_without_a_slash(write: Write, tmp_path: Path) -> None:
    write("src/train.py")
    assert refused("src", tmp_path) == "src is a folder: name the training script in it."


@pytest.mark.parametrize(
    "name", ["nowhere", "package.nowhere", "nowhere.train", "package.train.deeper", "a..b"]
)
def test_a_module_that_is_not_there(name: str, write: Write, tmp_path: Path) -> None:
    write("package/__init__.py")
    write("package/train.py")
    assert refused(name, tmp_path) == (
        f"There is no file or module {name}: give a path such as train.py, or a module that can be"
        f" imported from {tmp_path}."
    )


def test_a_package_without_a_main(write: Write, tmp_path: Path) -> None:
    write("package/__init__.py")
    assert refused("package", tmp_path) == ("package is a folder: name the training script in it.")


def test_a_module_that_is_not_written_in_python(tmp_path: Path) -> None:
    assert refused("msgspec._core", tmp_path) == (
        "msgspec._core is not a module written in Python: name the one that trains."
    )


def test_a_syntax_error(write: Write, tmp_path: Path) -> None:
    write("train.py", "import keras\n\nmodel.fit(data")
    assert refused("train.py", tmp_path) == "train.py is not valid Python (line 3: '(' was never closed)."


def test_a_syntax_error_in_a_module(write: Write, tmp_path: Path) -> None:
    write("package/__init__.py")
    write("package/train.py", "def:")
    assert refused("package.train", tmp_path) == "train.py is not valid Python (line 1: invalid syntax)."


@pytest.mark.parametrize("content", [b"PK\x03\x04\n\n\n\xff\xfe", b"x = 1\0\n", b"\x7fELF\x02\x01"])
def test_a_file_that_is_not_python(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.keras").write_bytes(content)
    assert refused("model.keras", tmp_path).startswith("model.keras is not ")


NOT_TEXT = {
    "Latin-1 without saying so": b"name = '\xe9'\n",
    "an encoding that there is none of": b"# coding: klingon\n",
}


@pytest.mark.parametrize("case", NOT_TEXT)
def test_a_file_that_is_no_text(case: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(NOT_TEXT[case])
    sentence = refused("train.py", tmp_path)
    assert "None" not in sentence and str(tmp_path) not in sentence


def test_an_encoding_that_the_file_names_is_used(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(b"# coding: latin-1\nname = '\xe9'\n")
    assert find("train.py", (), tmp_path).kind == "script"


def test_a_notebook_is_not_python(tmp_path: Path) -> None:
    (tmp_path / "train.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    assert "not" in refused("train.ipynb", tmp_path)


# The commit -----------------------------------------------------------------------------------------


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_outside_of_a_repository_there_is_no_commit(write: Write, tmp_path: Path) -> None:
    write("train.py")
    assert find("train.py", (), tmp_path).commit is None


def test_the_commit_is_told_with_a_plus_when_files_were_changed(write: Write, tmp_path: Path) -> None:
    write("src/train.py")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "First")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert find("src/train.py", (), tmp_path).commit == commit
    write("src/new_and_untracked.py")
    assert find("src/train.py", (), tmp_path).commit == commit
    write("src/train.py", "x = 1")
    assert find("src/train.py", (), tmp_path).commit == f"{commit}+"


def test_a_repository_without_a_commit_has_none(write: Write, tmp_path: Path) -> None:
    write("train.py")
    git(tmp_path, "init", "-q")
    assert find("train.py", (), tmp_path).commit is None
