"""What terminals of a Neovim hear and show: reports of programs (OSC 7501), and screens.

A few lines of Lua note both with their time in a file. What a program reports belongs to the
process in the foreground of its terminal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

from bellboard.system.processes import front_group, started_of, tty_of
from rig.home import Home

LINES: Final = 45  # of a terminal
#: The plugin itself answers programs that ask whether reports are read.
LUA: Final = r"""
local file, lines = ...
local out = assert(io.open(file, 'a'))
local function tell(buffer, line)
  local seconds, micros = vim.uv.gettimeofday()
  line.t, line.job = seconds + micros / 1e6, vim.b[buffer].terminal_job_pid
  out:write(vim.json.encode(line), '\n')
  out:flush()
end
vim.api.nvim_create_autocmd('TermRequest', {
  callback = function(request)
    local sequence = type(request.data) == 'table' and request.data.sequence or request.data
    local body = sequence:match('^\27%]7501;(.*)$')
    if body then
      tell(request.buf, { body = body })
    end
  end,
})
local last = {}
vim.uv.new_timer():start(0, 100, vim.schedule_wrap(function()
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.bo[buffer].buftype == 'terminal' then
      local text = table.concat(vim.api.nvim_buf_get_lines(buffer, -1 - lines, -1, false), '\n')
      if text ~= last[buffer] then
        last[buffer] = text
        tell(buffer, { screen = text })
      end
    end
  end
end))
"""


class Noted(NamedTuple):
    """A report, or the text of a screen that has changed."""

    t: float
    job: int  # the program of its terminal
    pid: int  # the one in the foreground, or the last one that was
    started: str
    tty: str
    body: str | None
    screen: str | None


class Heard:
    """Reads what Neovims of a home have noted; any thread may."""

    def __init__(self, home: Home) -> None:
        self._file = home.root / "heard"
        self._read = 0
        self._front: dict[int, tuple[int, str, str]] = {}  # job → pid, start, terminal

    def lua(self) -> str:
        """Return the code for a Neovim."""
        file = json.dumps(str(self._file))
        return f"assert(loadstring({json.dumps(LUA)}))({file}, {LINES})"

    def look(self) -> Iterator[Noted]:
        """Yield what is new."""
        for line in map(json.loads, self._lines()):
            if job := line.get("job", 0):
                if (front := front_group(job)) and (started := started_of(front)):
                    self._front[job] = (front, started, tty_of(job))
                where = self._front.setdefault(job, (job, "", ""))
                yield Noted(line["t"], job, *where, line.get("body"), line.get("screen"))

    def _lines(self) -> list[bytes]:
        if not self._file.exists() or self._file.stat().st_size <= self._read:
            return []
        with self._file.open("rb") as f:
            f.seek(self._read)
            whole, _, _ = f.read().rpartition(b"\n")
        self._read += len(whole) + bool(whole)
        return whole.splitlines()
