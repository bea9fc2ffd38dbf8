"""What terminals of a Neovim hear and show: reports of programs (OSC 7501), and screens.

A few lines of Lua note both with their time, and `Heard` makes lines of a trace of them: what a
program reports belongs to the process in the foreground of its terminal, and `truth` is what the
screen shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bellboard.system.processes import is_alive, started_of, stat_of, tty_of
from rig.agent import spoken
from rig.home import Home

Line = dict[str, Any]

LINES: Final = 45  # of a terminal
SHOWN: Final = 14  # the last lines of a screen that a trace keeps, without empty ones
WORKS: Final = re.compile(r"(?m)^\S \w[\w-]*…|^\s*◯ .* \d+s( · |$)|esc to interrupt")
MENU: Final = re.compile(r"Esc to (cancel|exit|close|go back|clear)|Enter to (confirm|select)")
SAYS: Final = {"waiting": "blocked", "busy": "working", "idle": "idle"}
FRONT: Final = 5  # in /proc/PID/stat from its third field on: the group in the foreground
# The plugin itself answers programs that ask whether reports are read.
LUA: Final = """
local out = assert(io.open(FILE, 'a'))
local function tell(buffer, line)
  local seconds, micros = vim.uv.gettimeofday()
  line.t, line.terminal = seconds + micros / 1e6, vim.b[buffer].terminal_job_pid
  out:write(vim.json.encode(line), '\\n')
  out:flush()
end
vim.api.nvim_create_autocmd('TermRequest', {
  callback = function(request)
    local sequence = type(request.data) == 'table' and request.data.sequence or request.data
    local body = sequence:match('^\\27%]7501;(.*)$')
    if body then
      tell(request.buf, { body = body })
    end
  end,
})
local last = {}
vim.uv.new_timer():start(0, 100, vim.schedule_wrap(function()
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.bo[buffer].buftype == 'terminal' then
      local lines = vim.api.nvim_buf_get_lines(buffer, -1 - LINES, -1, false)
      local text = table.concat(lines, '\\n')
      if text ~= last[buffer] then
        last[buffer] = text
        tell(buffer, { screen = lines })
      end
    end
  end
end))
"""


def noted_in(home: Home) -> Path:
    """Return the file in which a Neovim of this home notes it all."""
    return home.root / "heard"


def lua(home: Home) -> str:
    """Return the code for that Neovim."""
    return f"local FILE, LINES = {json.dumps(str(noted_in(home)))}, {LINES}\n{LUA}"


class Heard:
    """Reads what was noted in that file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._at = 0
        self._front: dict[int, int] = {}  # the program of a terminal → the one in its foreground
        self._tty: dict[int, str] = {}
        self._started: dict[int, str] = {}
        self._says: dict[int, tuple[int, str]] = {}  # terminal → whose screen shows what

    def look(self) -> Iterator[Line]:
        """Yield a line for each new report, and for each change of what a screen shows."""
        if not self._file.exists() or self._file.stat().st_size <= self._at:
            return
        with self._file.open("rb") as f:
            f.seek(self._at)
            whole, _, _ = f.read().rpartition(b"\n")
        self._at += len(whole) + bool(whole)
        for text in whole.splitlines():
            noted = json.loads(text)
            if "terminal" in noted:
                yield from self._line(noted)

    def _line(self, noted: Line) -> Iterator[Line]:
        terminal = noted["terminal"]
        pid = self._in_front(terminal)
        if noted.get("body") == "?":
            yield {"t": noted["t"], "note": f"asks whether reports are read: {pid}"}
        elif "body" in noted:
            where = {"pid": pid, "started": self._started[pid], "tty": self._tty.get(terminal, "")}
            yield {"t": noted["t"], "osc7501": {**where, "body": noted["body"]}}
        else:
            says = SAYS[shown("\n".join(noted["screen"]))]
            if self._says.get(terminal) != (pid, says):
                self._says[terminal] = (pid, says)
                last = [line.rstrip() for line in noted["screen"] if line.strip()][-SHOWN:]
                yield {"t": noted["t"], "truth": says, "pid": pid, "screen": last}

    def _in_front(self, terminal: int) -> int:
        """Return the process that reports are of: the last one known, if it is over."""
        stat = stat_of(terminal)
        if stat and is_alive(terminal):
            self._tty[terminal] = tty_of(terminal) or self._tty.get(terminal, "")
            front = int(stat[FRONT])
            if front > 0 and stat_of(front):
                self._front[terminal] = front
        pid = self._front.setdefault(terminal, terminal)
        self._started[pid] = started_of(pid) or self._started.get(pid, "")
        return pid


def shown(screen: str) -> str:
    """Return what a screen shows, in the words of a session file: a dialog, work, or neither."""
    if spoken(screen) == "waiting" or MENU.search(screen):
        return "waiting"
    return "busy" if WORKS.search(screen) else "idle"
