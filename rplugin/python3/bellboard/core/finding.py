"""What a witness that is not a hook has found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Finding(NamedTuple):
    """A trace line, and the key that it has for every host that finds the same."""

    line: Mapping[str, object]
    key: str
