"""What names in a source file stand for, read by ``ast``: nothing is imported or run.

`walk` gives every node that may run, each with its `Setting`: what names mean there, and whether it runs only
under a condition on the machine.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace

#: Calls and attributes whose answer depends on the machine, so that a condition on them is a guard.
QUERIES = frozenset(
    {
        "environ",
        "get_visible_devices",
        "getenv",
        "gpu_device_name",
        "is_built_with_cuda",
        "is_built_with_gpu_support",
        "is_built_with_rocm",
        "is_gpu_available",
        "list_logical_devices",
        "list_physical_devices",
        "local_device_protos",
        "machine",
        "platform",
        "which",
    }
)

#: Words in a condition that make it one on the machine: ``args.gpu``, ``use_tpu``, ``len(devices) > 1``.
MACHINE_WORDS = re.compile(r"gpu|tpu|cuda|device|accelerator", re.I)

#: A handler of these alone catches no failure of the code that it guards.
NO_FAILURES = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit"})

#: Packages whose functions are meant when no other is said.
FRAMEWORKS = ("keras", "tensorflow", "tf_keras")

#: The same functions under the names of an earlier version.
_COMPAT = re.compile(r"^tensorflow\.compat\.v[12]\b")

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_TRIES: tuple[type[ast.AST], ...] = (ast.Try, *([ast.TryStar] if hasattr(ast, "TryStar") else []))


@dataclass(frozen=True)
class Scope:
    """The names that a module or a function binds.

    ``names`` maps each to the full name of what it stands for, empty for the program's own; ``constants``
    those that are bound once, to a literal; ``asked`` are those bound to what a query of the machine
    returned; ``stars`` are modules of which everything was imported, empty for the program's own.
    """

    names: dict[str, str]
    constants: dict[str, object]
    asked: frozenset[str]
    stars: tuple[str, ...]


@dataclass(frozen=True)
class Setting:
    """Where a node stands: scopes from the module inwards, and whether it runs under a guard."""

    scopes: tuple[Scope, ...] = ()
    guarded: bool = False

    def full(self, node: ast.AST) -> str:
        """``tensorflow.device`` for ``tf.device`` or ``d``; empty for anything of the program's own."""
        root, attributes = _chain(node)
        if root is None:
            return ""
        for scope in reversed(self.scopes):
            if root in scope.names:
                full = scope.names[root]
                return _COMPAT.sub("tensorflow", ".".join((full, *attributes))) if full else ""
        stars = self.scopes[0].stars if self.scopes else ()
        is_known = len(stars) == 1 and stars[0] and not hasattr(builtins, root)
        return ".".join((stars[0], root, *attributes)) if is_known else ""

    def constant(self, node: ast.AST | None) -> object:
        """The literal that a node is, or that its name is bound to and nothing else; None for any other."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            for scope in reversed(self.scopes):
                if node.id in scope.names:
                    return scope.constants.get(node.id)
        return None

    def is_guard(self, test: ast.AST) -> bool:
        """Whether a condition asks for the machine or for an option that is named after a device."""
        asked = {name for scope in self.scopes for name in scope.asked}
        words = [getattr(node, field, None) for node in ast.walk(test) for field in ("id", "attr", "value")]
        texts = [word for word in words if isinstance(word, str)]
        return any(text in QUERIES or text in asked or MACHINE_WORDS.search(text) for text in texts)


def is_of(full: str, names: Container[str], packages: Container[str] = FRAMEWORKS) -> bool:
    """Whether a full name lies in one of the packages and ends in one of the names."""
    return full.partition(".")[0] in packages and full.rpartition(".")[2] in names


def walk(
    tree: ast.Module, is_own: Callable[[str], object], is_main: bool
) -> Iterator[tuple[ast.AST, Setting]]:
    """Every node that may run, in the order of the source.

    ``is_own`` is true of the project's modules and of no installed one; ``is_main`` whether what stands under
    ``if __name__ == "__main__"`` runs. What stands under ``TYPE_CHECKING`` or ``if False`` never does. Of a
    dotted name only the whole is given.
    """
    setting = Setting((_scope(tree.body, (), Setting(), is_own),))
    waiting: list[tuple[ast.AST, Setting]] = [(node, setting) for node in reversed(tree.body)]
    while waiting:
        node, setting = waiting.pop()
        yield node, setting
        waiting += reversed(list(_children(node, setting, is_own, is_main)))


def _children(
    node: ast.AST, setting: Setting, is_own: Callable[[str], object], is_main: bool
) -> Iterator[tuple[ast.AST, Setting]]:
    if isinstance(node, _FUNCTIONS):
        body = _listed(node.body)
        outside = [*getattr(node, "decorator_list", ()), node.args, getattr(node, "returns", None)]
        yield from ((part, setting) for part in outside if part is not None)
        inner = _scope(body, _parameters(node.args), setting, is_own)
        within = replace(setting, scopes=(*setting.scopes, inner))
        yield from ((part, within) for part in body)
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield node.test, setting
        within = replace(setting, guarded=setting.guarded or setting.is_guard(node.test))
        if not (_is_never(node.test) or (_is_main(node.test) and not is_main)):
            yield from ((part, within) for part in _listed(node.body))
        yield from ((part, within) for part in _listed(node.orelse))
    elif isinstance(node, ast.Match):
        yield node.subject, setting
        within = replace(setting, guarded=setting.guarded or setting.is_guard(node.subject))
        yield from ((part, within) for part in node.cases)
    elif isinstance(node, _TRIES):
        catches = any(_catches_failures(handler) for handler in getattr(node, "handlers", ()))
        within = replace(setting, guarded=setting.guarded or catches)
        for name in ("body", "handlers", "orelse"):
            yield from ((part, within) for part in getattr(node, name))
        yield from ((part, setting) for part in getattr(node, "finalbody", ()))
    elif _chain(node)[0] is None:
        yield from ((part, setting) for part in ast.iter_child_nodes(node))


def _chain(node: ast.AST) -> tuple[str | None, tuple[str, ...]]:
    """The name at the root of a dotted name, and the attributes after it; None for any other expression."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id if isinstance(node, ast.Name) else None), tuple(reversed(attributes))


def _listed(part: list[ast.stmt] | ast.expr) -> list[ast.stmt] | list[ast.expr]:
    return part if isinstance(part, list) else [part]


def _is_never(test: ast.expr) -> bool:
    """``False``, ``0``, ``TYPE_CHECKING`` or ``typing.TYPE_CHECKING``."""
    root, attributes = _chain(test)
    last = attributes[-1] if attributes else root
    return last == "TYPE_CHECKING" or (isinstance(test, ast.Constant) and not test.value)


def _is_main(test: ast.expr) -> bool:
    """``__name__ == "__main__"``, alone or with something else that must hold."""
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    values = [node.value for node in ast.walk(test) if isinstance(node, ast.Constant)]
    return "__name__" in names and "__main__" in values


def _catches_failures(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return not all(isinstance(kind, ast.Name) and kind.id in NO_FAILURES for kind in caught)


# What a scope binds ---------------------------------------------------------------------------------


def _scope(
    body: Iterable[ast.AST], parameters: Iterable[str], outer: Setting, is_own: Callable[[str], object]
) -> Scope:
    """The bindings of a module's or function's own level, nested functions and classes left out."""
    imported: dict[str, str] = {}
    values: dict[str, list[ast.expr | None]] = {name: [None] for name in parameters}
    stars: list[str] = []
    for node in _level(body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name, full = alias.asname or _first(alias.name), alias.name if alias.asname else ""
                imported.setdefault(name, "" if is_own(alias.name) else full or _first(alias.name))
        elif isinstance(node, ast.ImportFrom):
            module = "" if node.level or is_own(node.module or "") else node.module or ""
            stars += [module for alias in node.names if alias.name == "*"]
            for alias in node.names:
                imported.setdefault(alias.asname or alias.name, module and f"{module}.{alias.name}")
        else:
            for name, value in _bound(node):
                values.setdefault(name, []).append(value)
    names = dict.fromkeys(values, "") | {
        name: full if all(_keeps(name, value) for value in values.get(name, ())) else ""
        for name, full in imported.items()
    }
    once = {name: bound[0] for name, bound in values.items() if len(bound) == 1 and name not in imported}
    constants: dict[str, object] = {
        name: value.value for name, value in once.items() if isinstance(value, ast.Constant)
    }
    asked = {name for name, bound in values.items() if any(map(_is_query, bound))}
    within = Setting((*outer.scopes, Scope(names, constants, frozenset(asked), tuple(stars))))
    for name, value in once.items():
        if value is not None and (full := within.full(value)):
            names[name] = full  # ``layers = tf.keras.layers``; in order, so that one alias may use another
    return within.scopes[-1]


def _level(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Nodes that run in the scope itself."""
    waiting = list(body)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Names that one node binds, with the value where it is a plain assignment."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)):
        yield node.name or "", None
    elif isinstance(node, ast.Assign):
        yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        yield from ((name, None) for target in node.targets for name in _stored(target, inside=True))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        if node.value is not None:
            yield node.target.id, node.value
    elif isinstance(node, ast.NamedExpr):
        yield node.target.id, node.value
    elif isinstance(node, (ast.AugAssign, ast.For, ast.AsyncFor, ast.comprehension)):
        yield from ((name, None) for name in _stored(node.target))
    elif isinstance(node, (ast.MatchAs, ast.MatchStar)):
        yield node.name or "", None
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            if item.optional_vars is not None:
                yield from ((name, None) for name in _stored(item.optional_vars))


def _stored(target: ast.AST, inside: bool = False) -> list[str]:
    """Names in an assignment's target; ``inside`` leaves out the target itself."""
    found = [node for node in ast.walk(target) if isinstance(node, ast.Name)]
    return [node.id for node in found if isinstance(node.ctx, ast.Store) and not (inside and node is target)]


def _parameters(arguments: ast.arguments) -> list[str]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    return [argument.arg for argument in every + rest]


def _keeps(name: str, value: ast.expr | None) -> bool:
    """Whether an imported name stays what it is: ``optuna = None`` if missing, ``tf = tf.compat.v1``."""
    is_none = isinstance(value, ast.Constant) and value.value is None
    return is_none or (value is not None and _chain(value)[0] == name)


def _is_query(value: ast.expr | None) -> bool:
    """Whether a value comes from asking the machine."""
    nodes = ast.walk(value) if value is not None else ()
    return any(
        getattr(node, "attr", getattr(node, "id", None)) in QUERIES
        for node in nodes
        if isinstance(node, (ast.Attribute, ast.Name))
    )


def _first(module: str) -> str:
    return module.partition(".")[0]
