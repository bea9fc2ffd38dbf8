"""What a witness reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Finding(NamedTuple):
    """A trace line, and a key that is the same for every host that finds it."""

    line: Mapping[str, object]
    key: str
