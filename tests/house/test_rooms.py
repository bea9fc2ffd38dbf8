"""How far one event goes: what a reader of the source has to open."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from house.rooms import way_of
from rig import ROOT

pytestmark = pytest.mark.files

FILES, FUNCTIONS = 55, 305


def test_one_stop_enters_few_rooms(tmp_path: Path) -> None:
    """From the file in the spool until its host rests; these numbers should shrink."""
    way = asyncio.run(way_of(tmp_path / "home"))
    assert "hosting/turn.py" in way.files and "core/rules/turns.py" in way.files
    assert len(way.files) <= FILES, way.files
    assert len(way.functions) <= FUNCTIONS


PACKAGE = ROOT / "rplugin/python3/bellboard"


def test_who_may_refuse_an_event_is_in_the_files_of_its_room() -> None:
    """The page on the way of an event names files, and functions that a reader finds in them."""
    page = (ROOT / "doc/architecture.md").read_text()
    rows = [row.split("|")[1:-1] for row in page.splitlines() if re.match(r"\| \d+ \|", row)]
    assert len(rows) == 15
    for number, files, _, who in rows:
        there = re.findall(r"`([\w/]+\.py|hooks/emit)`", files + who)
        named = {ROOT / name if name.startswith("hooks") else PACKAGE / name for name in there}
        texts = "\n".join(path.read_text() for path in named)
        for name in re.findall(r"`(\w[\w.]*)`", who):
            last = name.rpartition(".")[2]
            if last != "py":
                found = re.search(rf"(?m)^\s*(async def|def|class) {last}\b|^{last}\(\)", texts)
                assert found, (number, name)
