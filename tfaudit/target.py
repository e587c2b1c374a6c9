"""From what the user typed to a `Target`, and, in the child, from a `Target` to a `Job`."""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import runpy
import subprocess
import sys
import tokenize
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from .errors import UsageError
from .job import Job, VariedJob
from .records import Target

BUILDERS = ("build_model", "build_dataset")

#: The packages whose ``Model.fit`` is recognised: Keras 3 and the legacy Keras 2.
FRAMEWORKS = ("keras", "tf_keras")


class TargetError(Exception):
    """The target cannot be audited: ``kind`` as in `tfaudit.records.Failure`, one sentence as text."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


# --------------------------------------------------------------------------------------------------
# In the parent: nothing of the user's is imported or run


def find(name: str, arguments: Sequence[str] = (), directory: Path | None = None) -> Target:
    """Read what the user typed: ``file.py``, ``package.module``, either with ``:factory``.

    Raises `UsageError` when there is no such file or module, it is not Python, or it has no such
    factory at its top level.
    """
    directory = directory or Path.cwd()
    place, colon, factory = name.rpartition(":")
    if not colon or os.sep in factory or factory.endswith(".py"):
        place, factory = name, ""
    elif not factory.isidentifier():
        raise UsageError(f"{factory!r} in {name!r} is not the name of a function.")
    is_file = place.endswith(".py") or os.sep in place or (directory / place).is_file()
    path = _file(place, directory) if is_file else _module(place, directory, bool(factory))
    tree = _parse(path)
    if factory:
        kind = "factory"
        _expect(factory, tree, path)
    elif _only_builds(tree):
        kind = "builders"
    else:
        kind = "script" if is_file else "module"
    return Target(
        kind=kind,
        path=str(path),
        name=place,
        factory=factory or None,
        is_file=is_file,
        arguments=tuple(arguments),
        commit=_commit(path),
    )


def _file(place: str, directory: Path) -> Path:
    path = (directory / place).resolve()
    if path.is_dir():
        raise UsageError(f"{place} is a folder: name the training script in it.")
    if not path.exists():
        raise UsageError(f"There is no file {place}: check the path of the training script.")
    if path.suffix == ".ipynb":
        raise UsageError(f"{place} is a notebook: export it first, with jupyter nbconvert --to script.")
    return path


def _module(name: str, directory: Path, is_factory: bool) -> Path:
    """Find a module's file as ``python -m`` would, without importing its packages."""
    search = [str(directory), *sys.path]
    spec: importlib.machinery.ModuleSpec | None = None
    for part in name.split("."):
        spec = importlib.machinery.PathFinder.find_spec(part, search) if search else None
        if spec is None:
            break
        search = list(spec.submodule_search_locations or [])
    if spec is not None and spec.submodule_search_locations is not None:
        main = importlib.machinery.PathFinder.find_spec("__main__", search)
        is_module = is_factory or _has_builders(spec.origin)
        origin = spec.origin if is_module else main and main.origin
    else:
        origin = spec and spec.origin
    if origin and origin.endswith(".py"):
        return Path(origin).resolve()
    if (directory / name).is_dir():
        raise UsageError(f"{name} is a folder: name the training script in it.")
    if spec is None:
        raise UsageError(
            f"There is no file or module {name}: give a path such as train.py, or a module that can be"
            f" imported from {directory}."
        )
    raise UsageError(f"{name} is not a module written in Python: name the one that trains.")


def _has_builders(origin: str | None) -> bool:
    return bool(origin) and set(BUILDERS) <= _top_level_names(_parse(Path(str(origin))))


def _parse(path: Path) -> ast.Module:
    try:
        with tokenize.open(path) as file:
            return ast.parse(file.read(), filename=str(path))
    except SyntaxError as error:
        unplaced = "it holds a null byte" if "null" in error.msg else "its encoding is not what it says"
        place = f"line {error.lineno}: {error.msg}" if error.lineno else unplaced
        raise UsageError(f"{path.name} is not valid Python ({place}).") from None
    except (UnicodeDecodeError, ValueError):
        raise UsageError(f"{path.name} is not a Python source file.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None


def _at_top_level(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes that run when the module is imported: none within functions and classes."""
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))


def _top_level_names(tree: ast.Module) -> set[str]:
    """Names that the module's top level defines, assigns or imports."""
    names: set[str] = set()
    for node in _at_top_level(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _expect(factory: str, tree: ast.Module, path: Path) -> None:
    names = _top_level_names(tree)
    if factory not in names and "*" not in names and "__getattr__" not in names:
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        offered = f"it defines {', '.join(functions)}" if functions else "it defines no function"
        raise UsageError(f"{path.name} has no {factory!r}: {offered}.")


def _only_builds(tree: ast.Module) -> bool:
    """Whether a module offers builders and does not itself train when it is run."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if not functions.keys() >= set(BUILDERS):
        return False
    training = {name for name, node in functions.items() if any(map(_is_fit, ast.walk(node)))}
    for node in _at_top_level(tree):
        if isinstance(node, ast.Constant) and node.value == "__main__":
            return False
        if _is_fit(node) or (isinstance(node, ast.Name) and node.id in training):
            return False
    return True


def _is_fit(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "fit"


def _commit(path: Path) -> str | None:
    """The git commit of the folder that holds ``path``, with ``+`` when files were changed since."""
    try:
        commit = _git(path.parent, "rev-parse", "HEAD")
        changes = _git(path.parent, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+" if changes else "")


def _git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}  # reading must not write to their index
    git = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(git, env=environment, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()


# --------------------------------------------------------------------------------------------------
# In the child


def load(target: Target, then: Callable[[VariedJob], NoReturn]) -> None:
    """Run the target until its job is known, then call ``then`` with it, which must not return.

    A script's job is handed over from within its own call of ``fit``, so that the ``with`` blocks
    around it (a distribution strategy, a temporary folder) are still open and no line after it
    ever runs. Returns only when a script ended without calling ``fit``.
    Raises `TargetError` for what a factory or module lacks, and whatever the user's code raises.
    """
    sys.argv = [target.path, *target.arguments]
    directory = str(Path(target.path).parent) if target.is_file else str(Path.cwd())
    sys.path.insert(0, directory)
    if target.kind in ("script", "module"):
        capture_fit(then)
        if target.is_file:
            runpy.run_path(target.path, run_name="__main__")
        else:
            runpy.run_module(target.name, run_name="__main__", alter_sys=True)
        return
    originals = capture_fit(refuse_to_train)
    module = _import(target)
    job = _from_factory(target, module) if target.factory else _from_builders(module)
    then(_check(job, target, originals))


def refuse_to_train(job: VariedJob) -> NoReturn:
    raise TargetError("returned", "The factory calls fit itself: return the model and the data.")


def _import(target: Target) -> types.ModuleType:
    if not target.is_file:
        return importlib.import_module(target.name)
    name = Path(target.path).stem
    spec = importlib.util.spec_from_file_location(name, target.path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _from_factory(target: Target, module: types.ModuleType) -> Job:
    factory = getattr(module, str(target.factory), None)
    if factory is None:
        raise TargetError("missing", f"{target.name} has no {target.factory!r} once imported.")
    if isinstance(factory, Job):
        return factory
    if not callable(factory):
        raise TargetError("returned", f"{target.factory} is {_kind(factory)}, not a function.")
    made = factory()
    if isinstance(made, Job):
        return made
    if isinstance(made, tuple) and len(made) == 2:
        return Job(*made)
    raise TargetError(
        "returned",
        f"{target.factory}() returned {_kind(made)}: return tfaudit.Job(model, dataset) or (model, dataset).",
    )


def _from_builders(module: types.ModuleType) -> Job:
    return Job(
        model=module.build_model(),
        dataset=module.build_dataset(),
        train_step=getattr(module, "train_step", None),
    )


def _check(job: Job, target: Target, originals: dict[type, Callable[..., Any]]) -> VariedJob:
    framework, fit = next(
        (
            (kind.__module__.partition(".")[0], fit)
            for kind, fit in originals.items()
            if isinstance(job.model, kind)
        ),
        ("", None),
    )
    if fit is None and job.train_step is None:
        raise TargetError("returned", f"The model is {_kind(job.model)}, not a Keras model.")
    if job.dataset is None:
        raise TargetError("returned", "The dataset is None: build_dataset returned nothing.")
    if job.train_step is None and not getattr(job.model, "compiled", True):
        raise TargetError(
            "returned",
            "The model is not compiled: call model.compile(…) before returning it, or give a train_step.",
        )
    return VariedJob(
        model=job.model,
        dataset=job.dataset,
        train_step=job.train_step,
        fit=dict(job.fit),
        form=target.kind,
        framework=framework,
        original_fit=fit,
    )


def _kind(value: object) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def capture_fit(then: Callable[[VariedJob], NoReturn]) -> dict[type, Callable[..., Any]]:
    """Make every framework's ``Model.fit`` hand its call to ``then``; return the original methods."""
    originals: dict[type, Callable[..., Any]] = {}
    for framework in FRAMEWORKS:
        if importlib.util.find_spec(framework) is None:
            continue
        model_class = importlib.import_module(framework).Model
        originals[model_class] = model_class.fit
        model_class.fit = _capturing(framework, model_class.fit, then)
    return originals


def _capturing(
    framework: str, original: Callable[..., Any], then: Callable[[VariedJob], NoReturn]
) -> Callable[..., Any]:
    signature = inspect.signature(original)

    def fit(*args: Any, **kwargs: Any) -> NoReturn:
        # A wrong call fails here with Python's own words, as it would without tfaudit.
        bound = signature.bind(*args, **kwargs).arguments
        model, data = bound.pop("self"), bound.pop("x", None)
        caller = sys._getframe(1)
        then(
            VariedJob(
                model=model,
                dataset=data,
                fit=bound,
                framework=framework,
                original_fit=original,
                location=f"{caller.f_code.co_filename}:{caller.f_lineno}",
            )
        )

    fit.__signature__ = signature  # type: ignore[attr-defined]
    return fit
