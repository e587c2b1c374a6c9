"""Renderers: each turns a `tfaudit.records.Report`, and nothing else, into text.

A format is one module with ``render(report) -> str`` and one line in `FORMATS`. The modules are
imported when first used, so that importing this package stays free of jinja2 and matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from ..records import Report

Renderer = Callable[[Report], str]


def _renderer(module: str) -> Renderer:
    def render(report: Report) -> str:
        document: str = import_module(f"{__name__}.{module}").render(report)
        return document

    render.__doc__ = f"Render a report with `{__name__}.{module}`."
    return render


FORMATS: dict[str, Renderer] = {
    "html": _renderer("html"),
    "json": _renderer("json"),
    "md": _renderer("markdown"),
    "text": _renderer("text"),
}
