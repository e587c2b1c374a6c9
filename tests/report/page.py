"""A reader of HTML pages that is stricter than a browser."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input", "wbr", "col", "source"}
CODE = {"script", "style"}
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}


class Page(HTMLParser):
    """What tests ask of a page. Raises AssertionError where a tag is closed that is not open."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.code: list[tuple[dict[str, str | None], str]] = []
        self.headings: list[tuple[int, str]] = []
        self.feed(html)
        self.close()
        assert self.open == [], f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag in HEADINGS:
            self.headings.append((int(tag[1]), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in CODE:
            attributes = next(a for t, a in reversed(self.tags) if t in CODE)
            self.code.append((attributes, data))
            return
        self.texts.append(data)
        if HEADINGS & set(self.open):
            level, text = self.headings[-1]
            self.headings[-1] = (level, text + data)

    @property
    def text(self) -> str:
        """What is read on the page, on one line."""
        return " ".join(" ".join(self.texts).split())

    @property
    def ids(self) -> list[str]:
        return [identifier for _, attributes in self.tags if (identifier := attributes.get("id"))]

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        """Those of all elements with that tag."""
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def document(self) -> str:
        """The embedded JSON."""
        return next(text for attributes, text in self.code if attributes.get("type"))
