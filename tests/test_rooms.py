"""How far one event goes: what a reader of the source has to open."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rooms import way_of

pytestmark = pytest.mark.files

FILES, FUNCTIONS = 55, 305


def test_one_stop_enters_few_rooms(tmp_path: Path) -> None:
    """From the file in the spool until its host rests; these numbers should shrink."""
    way = asyncio.run(way_of(tmp_path / "home"))
    assert "hosting/turn.py" in way.files and "core/rules/turns.py" in way.files
    assert len(way.files) <= FILES, way.files
    assert len(way.functions) <= FUNCTIONS
