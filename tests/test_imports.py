"""Who imports whom: the command line answers without TensorFlow, pandas and everything slow."""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tfaudit

PACKAGE = Path(tfaudit.__file__).parent
FRAMEWORKS = {"tensorflow", "keras", "tf_keras"}
SLOW = {*FRAMEWORKS, "pandas", "numpy", "matplotlib", "jinja2", "xprof"}

MODULES = sorted(PACKAGE.rglob("*.py"))


def loaded(code: str) -> set[str]:
    """Top-level packages that a fresh interpreter has loaded after that code."""
    code += "\nimport json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "command",
    ["--help", "run --help", "checks", "--version", "explain 1.8", "answer nowhere", "run no_such_file.py"],
)
def test_the_command_line_answers_without_anything_slow(command: str) -> None:
    found = loaded(
        "from tfaudit.cli import cli\n"
        f"try: cli({command.split()!r}, prog_name='tfaudit')\n"
        "except SystemExit: pass"
    )
    assert "click" in found
    assert found & SLOW == set()


@pytest.mark.parametrize(
    "module", ["tfaudit", "tfaudit.cli", "tfaudit.runner", "tfaudit.report", "tfaudit.checks"]
)
def test_these_are_imported_without_anything_slow(module: str) -> None:
    assert loaded(f"import {module}") & SLOW == set()


def imports(node: ast.AST) -> set[str]:
    """The top-level packages that a statement imports; `import_module` of a literal counts."""
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and not node.level:
        return {str(node.module).partition(".")[0]}
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        return {
            constant.value.partition(".")[0]
            for argument in node.args
            for constant in ast.walk(argument)
            if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
        }
    return set()


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported: everything outside of functions and TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        yield child
        yield from at_import(child)


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def importing(packages: set[str], *, anywhere: bool) -> set[str]:
    """Modules of tfaudit that import one of the packages, when imported or anywhere in their text."""
    found = set()
    for path in MODULES:
        tree = parsed(path)
        nodes = ast.walk(tree) if anywhere else at_import(tree)
        if any(imports(node) & packages for node in nodes):
            found.add(path.relative_to(PACKAGE).as_posix())
    return found


def test_no_module_needs_tensorflow_to_be_imported_but_the_callback() -> None:
    assert importing(FRAMEWORKS, anywhere=False) == {"throughput.py"}


def test_only_what_runs_in_a_child_imports_tensorflow_at_all() -> None:
    assert importing(FRAMEWORKS, anywhere=True) <= {
        "datasetgraph.py",
        "feeding.py",
        "measure.py",
        "parallelism.py",
        "recorders.py",
        "sourcecache.py",
        "program/compression.py",
        "program/files.py",
        "program/job.py",
        "program/tuning.py",
        "program/work.py",
        "target.py",
        "throughput.py",
        "weighing.py",
        "worker.py",
    }


def test_pandas_stays_in_the_package_that_reads_traces() -> None:
    elsewhere = {path for path in importing({"pandas"}, anywhere=True) if not path.startswith("trace/")}
    assert elsewhere == set()


def test_only_reports_import_what_draws_them() -> None:
    elsewhere = {
        path for path in importing({"jinja2", "matplotlib"}, anywhere=True) if not path.startswith("report/")
    }
    assert elsewhere == set()


def test_the_checks_read_records_and_nothing_of_the_machine() -> None:
    """A check is a function of evidence: it opens no file and starts no process."""
    forbidden = {"os", "subprocess", "psutil", "socket"}
    found = {path for path in importing(forbidden, anywhere=True) if path.startswith("checks/")}
    assert found == set()
