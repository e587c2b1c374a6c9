"""What all documents and their parts are; apart from `records`, so that traces may have their own."""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, frozen=True):
    """Immutable, and open to fields of a later version."""
