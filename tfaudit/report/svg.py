"""A figure of matplotlib's as an SVG element that takes its colours and its type from the page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple
from xml.etree import ElementTree

_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}"


class Layout(NamedTuple):
    """Sizes in CSS pixels; ``stacked`` puts a row's words above its bar instead of beside it."""

    name: str
    width: int
    left: int
    right: int
    row: int
    stacked: bool
    longest_name: int


def inline(
    figure: Any, identifier: str, title: str, description: str, layout: str, colours: Mapping[str, str]
) -> str:
    """The figure as an element of the page: own ids, the page's colours and fonts.

    The same figure gives the same bytes. ``colours`` maps placeholders to the page's names for them.
    """
    drawn = _drawn(figure, identifier)
    root = ElementTree.fromstring(drawn)
    # Matplotlib names every group (figure_1, axes_1, …); only what is referred to needs a name.
    needed = set(re.findall(r"#([\w.-]+)[)\"]", drawn))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{_SVG}style", f"{_SVG}metadata"):
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        element.attrib = {
            name.replace(_XLINK, ""): _attribute(name, value, identifier, colours)
            for name, value in element.attrib.items()
            if name != "id" or value in needed
        }
    names = {"title": title, "desc": description}
    for place, (tag, text) in enumerate(names.items()):
        child = ElementTree.Element(tag, {"id": f"{identifier}-{tag}"})
        child.text = text
        root.insert(place, child)
    width, height = root.attrib["viewBox"].split()[2:]
    root.attrib = {
        "class": f"chart {layout}",
        "role": "img",
        "aria-labelledby": f"{identifier}-title {identifier}-desc",
        "viewBox": root.attrib["viewBox"],
        "width": width,
        "height": height,
    }
    return ElementTree.tostring(root, encoding="unicode")


def _attribute(name: str, value: str, identifier: str, colours: Mapping[str, str]) -> str:
    if name == "id":
        return f"{identifier}-{value}"
    if name == f"{_XLINK}href":
        return value.replace("#", f"#{identifier}-")
    value = value.replace("url(#", f"url(#{identifier}-")
    if name == "style":
        value = re.sub(r"font-family: [^;]*(?:; )?", "", re.sub(r"font: ([^;]*)", _font, value))
    if name in ("style", "fill"):  # the ground of a pattern has its colour as an attribute
        for placeholder, variable in colours.items():
            value = value.replace(placeholder, variable)
    return value


def _font(match: re.Match[str]) -> str:
    """Size and weight out of the shorthand of older matplotlib; the family is the page's."""
    words = match.group(1).split()
    size = next(word for word in words if word.endswith("px"))
    return f"font-size: {size}" + ("; font-weight: bold" if {"bold", "700"} & set(words) else "")


def _drawn(figure: Any, identifier: str) -> str:
    import matplotlib

    target = io.StringIO()
    unchanging = {"svg.fonttype": "none", "svg.hashsalt": identifier}
    with matplotlib.rc_context(unchanging), warnings.catch_warnings():
        # The page's fonts are not matplotlib's: a glyph missing here may well exist there.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph")
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    return target.getvalue()
