"""What the project's own source says, read by ``ast`` and never imported."""

from __future__ import annotations

import ast
import re
import tokenize
from collections import deque
from functools import cache, partial
from pathlib import Path

from ..records import Source, Target, Tie
from .names import walk
from .ties import ties

#: Text that reports a rate: ``images_per_sec``, "samples/s", ``examples per second``.
THROUGHPUT = re.compile(
    r"(?:samples|images|examples|tokens|records|sequences|frames)"
    r"[ _]?(?:per|/)[ _]?s(?:ec|econd)?s?(?![a-z0-9])",
    re.I,
)

#: A bound on the files read, so that a target at the root of a large tree stays quick.
MAX_FILES = 200


def read(target: Target) -> Source:
    """What the target's file and the project modules reached from it say.

    Of an imported module's ``if __name__ == "__main__"`` nothing counts; of the target's it does, also where
    it is a factory, since that is how it trains without an audit.
    """
    start = Path(target.path)
    root = start.parent
    if not target.is_file:
        inside = start.name in ("__init__.py", "__main__.py")
        for _ in range(target.name.count(".") + inside):
            root = root.parent
    imports: dict[str, str] = {}
    calls: dict[str, str] = {}
    uses: dict[str, str] = {}
    found_ties: list[Tie] = []
    throughput: list[str] = []
    stops: list[str] = []
    seen: dict[Path, None] = {}
    waiting = deque([start])
    while waiting and len(seen) < MAX_FILES:
        path = waiting.popleft()
        if path in seen:
            continue
        seen[path] = None
        text, tree = _parse(path)
        if tree is None:
            continue
        if match := THROUGHPUT.search(text):
            throughput.append(f"{path.name}:{text.count(chr(10), 0, match.start()) + 1}")
        files = cache(partial(_project_files, folder=path.parent, root=root))
        for node, setting in walk(tree, files, is_main=path == start):
            place = f"{path.name}:{getattr(node, 'lineno', 0)}"
            for module in _imported(node):
                imports.setdefault(module, place)
                waiting.extend(files(module))
            if full := setting.full(node):
                uses.setdefault(full, place)
            if isinstance(node, ast.Call) and (name := dotted(node.func)):
                calls.setdefault(name, place)
            if isinstance(node, ast.Attribute) and _is_stop(node):
                stops.append(place)
            found_ties += [Tie(kind=kind, text=text, place=place) for kind, text in ties(node, setting)]
    return Source(
        imports=imports,
        calls=calls,
        uses=uses,
        ties=tuple(found_ties),
        throughput=next(iter(throughput), None),
        stops=next(iter(stops), None),
        files=tuple(path.name for path in seen),
    )


def _is_stop(node: ast.Attribute) -> bool:
    return node.attr == "stop_training" and isinstance(node.ctx, ast.Store)


def _parse(path: Path) -> tuple[str, ast.Module | None]:
    try:
        with tokenize.open(path) as file:
            text = file.read()
            return text, ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return "", None  # the target itself was parsed before; a broken neighbour is not our business


def _imported(node: ast.AST) -> list[str]:
    """Full names that an import statement may load: ``from a import b`` is both ``a`` and ``a.b``."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        prefix = "." * node.level + (node.module or "")
        joint = "" if prefix.endswith(".") or not prefix else "."
        own = [prefix] if node.module else []
        return own + [f"{prefix}{joint}{alias.name}" for alias in node.names]
    return []


def _project_files(module: str, folder: Path, root: Path) -> list[Path]:
    """The project's files behind an imported name; none for anything installed."""
    stripped = module.lstrip(".")
    level = len(module) - len(stripped)
    parts = [part for part in stripped.split(".") if part and part != "*"]
    starts = [root, folder]
    if level:
        start = folder
        for _ in range(level - 1):
            start = start.parent
        starts = [start]
    found = []
    for start in starts:
        for depth in range(1, len(parts) + 1):  # importing a.b runs a/__init__.py first
            place = start.joinpath(*parts[:depth])
            found += [place.with_name(f"{place.name}.py"), place / "__init__.py"]
    return [path for path in found if path.is_file()]


def dotted(node: ast.expr) -> str:
    """A called name as written: ``a.b.c``; calls on other expressions keep their attribute chain."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    elif parts:
        parts.append("")
    return ".".join(reversed(parts))
