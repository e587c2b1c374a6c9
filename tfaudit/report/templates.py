"""Where the templates are, and the rules under which they are filled in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from . import plain

_PACKAGE = Path(__file__).parents[1]
# setup.cfg maps the top-level folder to the package tfaudit.templates: in a wheel it lies inside
# the package, in a checkout and an editable installation beside it.
FOLDERS = (_PACKAGE / "templates", _PACKAGE.parent / "templates")


def environment(*, autoescape: bool, write: Callable[[str], str] = plain.plain) -> Environment:
    """An environment in which every value passes through ``write`` before it reaches the page.

    An unknown name is an error, so that a renamed field of the report breaks a test.
    """

    def finalize(value: Any) -> Any:
        return value if isinstance(value, Markup) else write(str(value))

    return Environment(
        loader=FileSystemLoader(FOLDERS),
        autoescape=autoescape,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
