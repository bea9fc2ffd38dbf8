"""Measure the Lua side with 1,000 sessions: `.venv/bin/python bench/editor.py`.

Runs in real Neovims with a screen of 120 × 40.  A push is a JSON string, as from a host; opening is
measured after a full snapshot, with nothing cached.  All times are processor time, and include the
redraw.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from editors import ROOT, Editor

from bellboard.core.words import worded

SESSIONS = 1000
STATUSES = ("blocked", "error", "completed", "working", "working", "background", "idle")

#: Each of these returns milliseconds.
LUA = """
local bellboard = require('bellboard')
local function clock() -- processor time of this process: others may run meanwhile
  local used = vim.uv.getrusage()
  return (used.utime.sec + used.stime.sec) * 1e3 + (used.utime.usec + used.stime.usec) / 1e3
end
for _, part in ipairs({ 'terminals', 'highlight', 'place', 'float' }) do
  require('bellboard.' .. part).attach()
end
vim.o.laststatus = 3
vim.o.statusline = "%=%{%v:lua.require'bellboard'.statusline()%} "
vim.notify = function() end

local function timed(act)
  collectgarbage()
  local begin = clock()
  act()
  return clock() - begin
end

local function push(text)
  bellboard._push(text)
end

_G.bench = {
  push = function(text) return timed(function() push(text) vim.cmd.redraw() end) end,
  statusline = function(calls)
    local statusline = bellboard.statusline
    return timed(function()
      for _ = 1, calls do
        statusline()
      end
    end)
  end,
  open = function()
    return timed(function()
      require('bellboard.board').open()
      vim.cmd.redraw()
    end)
  end,
  close = function() vim.cmd.close() end,
  update = function(text) -- the board's share of a push
    require('bellboard.sessions').on_change('board', function() end)
    push(text)
    vim.cmd.redraw()
    return timed(function()
      require('bellboard.board.view').update()
      vim.cmd.redraw()
    end)
  end,
  pick = function()
    vim.ui.select = function(items, opts, on_choice)
      for _, item in ipairs(items) do
        opts.format_item(item)
      end
      on_choice(nil)
    end
    return timed(function() require('bellboard.picker').open() end)
  end,
  reports = function(calls) -- of a program with 300 records, and of one that clears
    vim.cmd.terminal('sleep 600')
    local buf, heard = vim.fn.bufnr(), require('bellboard.report.terminals').heard
    local spent = timed(function()
      for nth = 1, calls do
        local state = nth % 2 == 0 and 'clear' or 'working:app=x:msg=YSBoZWxwZXI='
        local text = ('\27]7501;state=%s:id=a%d/b'):format(state, nth % 600)
        heard(buf, { sequence = text, terminator = '\7' })
      end
    end)
    vim.cmd.bwipeout({ bang = true })
    return spent
  end,
}
"""


class Bar(NamedTuple):
    what: str
    limit: float
    unit: str


BARS = (
    Bar("statusline, 1 session", 2, "µs"),
    Bar(f"statusline, {SESSIONS:,} sessions", 2, "µs"),
    Bar(f"board of {SESSIONS:,} opens", 50, "ms"),
    Bar("board updates, one session changed", 5, "ms"),
    Bar(f"picker of {SESSIONS:,} opens", 50, "ms"),
    Bar("whole push of one session, board open", 10, "ms"),
    Bar("a report of a terminal", 20, "µs"),
)


def session(n: int, now: float, **more: Any) -> dict[str, Any]:
    """Return one of the thousand sessions, in one of 100 repositories, with all that is shown."""
    status = STATUSES[n % len(STATUSES)]
    asks = {"kind": "permission", "asked_at": now - n} if status == "blocked" else {}
    made = {
        "session_id": f"session-{n}",
        "status": status,
        "since": now - 3 * n - 3600,
        "updated": now - n,
        "urgency": STATUSES.index(status),
        "hidden": False,
        "markers": [],
        "tool": "Bash",
        "detail": f"make -C part{n} all && ./run --with=this --and=that # number {n}",
        "title": f"the task of session {n}, in some words",
        "last_prompt": f"do what has to be done in part {n}",
        "project": f"part{n % 100}",
        "repository": f"acme/part{n % 100}",
        "branch": f"topic/{n}",
        "cwd": f"/srv/work/part{n % 100}",
        "pid": 10_000 + n,
        "tty": f"/dev/pts/{n}",
        "agents": [{"id": "a", "type": "Explore", "description": "look", "since": now}]
        if n % 5 == 0
        else [],
        **asks,
        **more,
    }
    return worded(made)


class Host:
    """Makes the messages of a host."""

    def __init__(self, editor: Editor) -> None:
        self.editor = editor
        self.seq = 0
        self.version = editor.lua("return require('bellboard').version")

    def message(self, sessions: list[dict[str, Any]], full: bool) -> str:
        self.seq += 1
        head = {"v": 2, "version": self.version, "seq": self.seq, "full": full, "now": time.time()}
        groups = {"groups": sorted({s["repository"] for s in sessions})} if full else {}
        rest: dict[str, Any] = {"removed": [], "transitions": [], **groups}
        return json.dumps({**head, "sessions": sessions, **rest})


def measure(editor: Editor, runs: int) -> list[float]:
    """Return the results, in the order of the bars."""
    editor.lua("vim.g.bellboard = { auto_start = false }")
    editor.lua(LUA)
    host, calls = Host(editor), 100_000

    def ask(what: str, *args: Any) -> float:
        return float(editor.lua(f"return bench.{what}(...)", *args) or 0.0)

    def statusline() -> float:
        return min(ask("statusline", calls) for _ in range(5)) * 1e3 / calls

    def everything() -> None:
        now = time.time()
        ask("push", host.message([session(i, now) for i in range(SESSIONS)], full=True))

    def change(n: int) -> str:
        changed = session(n, time.time(), status="working", detail=f"step {n}")
        return host.message([changed], full=False)

    ask("push", host.message([session(0, time.time())], full=True))
    found = [statusline()]
    opened, updated, picked, pushed = [], [], [], []
    for run in range(runs):
        everything()
        picked.append(ask("pick"))
        everything()
        opened.append(ask("open"))
        pushed += [ask("push", change(100 * run + n)) for n in range(5)]
        updated += [ask("update", change(100 * run + n)) for n in range(5, 10)]
        ask("close")
    found.append(statusline())
    found += [statistics.median(times) for times in (opened, updated, picked, pushed)]
    return [*found, ask("reports", calls) * 1e3 / calls]


def main() -> int:
    parser = argparse.ArgumentParser(description="the Lua side with 1,000 sessions")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--nvim", nargs="*", default=["0.10", "0.12"], metavar="VERSION")
    wanted = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="bb-", dir="/tmp"))
    failed = False
    try:
        for version in wanted.nvim:
            args = ("--cmd", f"set rtp^={ROOT}")
            editor = Editor(home / version, "nvim", *args, version=version)
            print(f"Neovim {version}")
            for bar, value in zip(BARS, measure(editor, wanted.runs), strict=True):
                failed |= value > bar.limit
                verdict = "pass" if value <= bar.limit else "FAIL"
                print(f"  {bar.what:40} {value:8.2f} {bar.unit} ≤ {bar.limit:g} {verdict}")
            editor.quit()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
