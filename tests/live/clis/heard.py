"""Terminals of a Neovim as heard and seen: own reports (OSC 7501), and screens.

Lua notes both with their time in a file, which is read in any thread.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bellboard.system.processes import front_group, started_of, tty_of

Line = dict[str, Any]

#: The plugin answers programs that ask whether reports are read.
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
    if body and body ~= '?' then
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


class Heard:
    """The reports so far, as lines of a trace, and the screens of terminals by their process."""

    def __init__(self, file: Path, lines: int) -> None:
        self.reports: list[Line] = []
        self.screens: dict[int, tuple[float, str]] = {}  # with the time since when
        self._file, self._lines = file, lines
        self._read = 0
        self._program: dict[int, tuple[int, str, str]] = {}  # in front: pid, start, terminal

    @property
    def lua(self) -> str:
        """Return the code for a Neovim."""
        file = json.dumps(str(self._file))
        return f"assert(loadstring({json.dumps(LUA)}))({file}, {self._lines})"

    def look(self) -> None:
        """Read what is new."""
        for noted in self._new():
            job = noted.get("job", 0)
            if "screen" in noted:
                self.screens[job] = (noted["t"], noted["screen"])
                continue
            if front := front_group(job):
                self._program[job] = (front, started_of(front), tty_of(job))
            pid, started, tty = self._program.get(job, (job, "", ""))
            where = {"pid": pid, "started": started, "tty": tty, "body": noted["body"]}
            self.reports.append({"t": noted["t"], "osc7501": where})

    def _new(self) -> Iterator[Line]:
        if not self._file.exists():
            return
        with self._file.open("rb") as f:
            f.seek(self._read)
            whole, _, _ = f.read().rpartition(b"\n")
        self._read += len(whole) + bool(whole)
        yield from map(json.loads, whole.splitlines())
