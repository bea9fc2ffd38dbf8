"""The steps of a new user, with their times."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pynvim

from live.firstrun.setting import Setting
from rig.waiting import eventually, rest

PATIENCE = 300.0  # a build downloads packages
#: Returns the screen, row by row.
SCREEN = """
local rows = {}
for row = 1, vim.o.lines do
  local cells = {}
  for column = 1, vim.o.columns do cells[column] = vim.fn.screenstring(row, column) end
  rows[row] = table.concat(cells)
end
return table.concat(rows, '\\n')
"""
LISTED = "return package.loaded['bellboard'] and #require('bellboard').sessions() or 0"


@dataclass
class Run:
    """Seconds since the start."""

    began: float = field(default_factory=time.monotonic)
    steps: list[tuple[str, float]] = field(default_factory=list)
    ready: float = 0.0  # the background process runs
    shown: float = 0.0  # the first session is on the screen
    keys: int = 0

    def now(self) -> float:
        return time.monotonic() - self.began


def walk(setting: Setting, pictures: Path) -> Run:
    """Start Neovim, answer what it asks, start a session, and see it."""
    run = Run()
    terminal = setting.start()
    eventually(setting.socket.exists, "Neovim", PATIENCE)
    nvim = pynvim.attach("socket", path=str(setting.socket))
    number = 0

    def step(what: str, sees: Callable[[str], bool]) -> str:
        """Wait for a screen; note the time and take a picture."""
        nonlocal number
        seen = awaited(nvim, sees, what)
        run.steps.append((what, run.now()))
        rest(0.3)  # the terminal draws what Neovim has sent
        number += 1
        terminal.display.picture(
            pictures.with_name(f"{pictures.name}-{number}-{what.replace(' ', '-')}.png")
        )
        return seen

    try:
        if setting.way.manager == "lazy":
            step("installing", lambda text: "bellboard" in text)
            step("built", lambda text: "Installed (" in text and "Working" not in text)
            terminal.type("q")
        else:
            step("may I install", lambda text: "bellboard" in text)
            terminal.type("y")
            step("may I build", lambda text: "Install bellboard's Python packages?" in text)
            terminal.type("y")
            step("building", lambda text: "installing" in text or "creating" in text)
        step("hooks", lambda text: "Install Claude Code hooks?" in text)
        run.ready = run.now()
        terminal.type("y")
        step("change", lambda text: "Write this to" in text)
        terminal.type("y")
        terminal.press("Return")
        step("what next", lambda text: "next: start an agent" in text and "[Process" in text)
        terminal.press("Return")
        terminal.type(":ClaudeSessions new")
        terminal.press("Return")
        step("claude", lambda text: "? for shortcuts" in text or "❯" in text)
        eventually(lambda: nvim.exec_lua(LISTED), "a session", PATIENCE)
        step("session", lambda text: re.search(r"[.*]1  ", text) is not None)
        run.shown = run.now()
        run.keys = terminal.keys
        return run
    finally:
        nvim.close()


def awaited(nvim: Any, sees: Callable[[str], bool], what: str) -> str:
    """Return the first screen that shows it; ask again while Neovim is busy."""

    def look() -> str:
        text = str(nvim.exec_lua(SCREEN)) if not nvim.request("nvim_get_mode")["blocking"] else ""
        assert sees(text), f"not seen: {what}, on this screen:\n{text}"
        return text

    return eventually(look, what, PATIENCE, 0.1)
