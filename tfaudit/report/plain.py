"""Text that came from a user's program, made safe to show.

Names, messages and tracebacks hold whatever the audited program put there: terminal escapes,
control characters, characters that reverse the reading order. Every renderer but JSON passes them
through here before its own escaping.
"""

from __future__ import annotations

import re

_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC: window titles, hyperlinks
    r"|\x1b[PX^_][^\x1b]*\x1b\\"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-Z\\-~]"  # two-character escapes
)
_LINE_ENDS = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
# Tab and newline stay. Lone surrogates cannot be encoded, non-characters are not allowed in HTML.
_UNPRINTABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Printable text: escapes and control characters gone, direction overrides spelled out."""
    text = _ANSI.sub("", text)
    text = _LINE_ENDS.sub("\n", text)
    text = _UNPRINTABLE.sub("", text)
    return _BIDI.sub(lambda match: f"[U+{ord(match.group()):04X}]", text)


def one_line(text: str, limit: int = 200) -> str:
    """Plain text on one line, cut with an ellipsis after ``limit`` characters."""
    flat = " ".join(plain(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def head(text: str, limit: int = 1_000) -> str:
    """The beginning of a text that is too long for its place; lines stay."""
    text = plain(text)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def tail(text: str, limit: int = 12_000) -> str:
    """The end of a long output, where the error is; a first line says what was cut."""
    text = plain(text).strip("\n")
    if len(text) <= limit:
        return text
    return f"… {len(text) - limit:,} characters before this are in the raw numbers\n{text[-limit:]}"
