"""Sessions as a host publishes them, and a host that pushes them, for the editor tests."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from bellboard.core.words import worded
from bellboard.hosting.publish import Encoder
from rig.editor import Editor

SET_UP = """
require('bellboard.start').attach()
vim.o.laststatus, vim.o.ruler = 3, false
vim.o.statusline = "%=%{%v:lua.require'bellboard'.statusline()%} "
"""
#: Options with a host that sends nothing: the tests push instead; and the float keeps its size.
QUIET = {
    "auto_start": False,
    "python": ["sh", "-c", "case $* in *doctor*) exit 1; esac; exec sleep 1000"],
    "float": {"seconds": 0},
}
#: Starts a terminal in a hidden buffer; returns the buffer and its tty.
TERMINAL = """
vim.cmd.file('here') -- :terminal would take an empty buffer over
local before = vim.api.nvim_get_current_buf()
vim.cmd('terminal sleep 600')
local buf = vim.api.nvim_get_current_buf()
vim.api.nvim_win_set_buf(0, before)
return { buf, vim.api.nvim_get_chan_info(vim.bo[buf].channel).pty }
"""
#: Starts one that shows a text; returns its tty.
HIDDEN_TERMINAL = """
vim.cmd.file('here')
vim.cmd.terminal('echo what it asks; sleep 600')
_G.terminal = vim.fn.bufnr()
vim.cmd.buffer('here')
return vim.api.nvim_get_chan_info(vim.bo[terminal].channel).pty
"""


def session(status: str, id: str = "", ago: float = 130, **more: Any) -> dict[str, Any]:
    """Return a session whose age counts from the push, not from this call.

    Parameters are made long before their test runs, and ages are shown.
    """
    return {"session_id": id or status, "status": status, "ago": ago, **more}


def blocked(project: str = "api", detail: str = "rm -rf build", **more: Any) -> dict[str, Any]:
    """Return a session that asks for permission to run a command."""
    asked = {"kind": "permission", "tool": "Bash", "project": project, "detail": detail}
    return session("blocked", more.pop("id", project), **{**asked, **more})


def house() -> list[dict[str, Any]]:
    """Return one session of each kind, in four repositories."""
    return [
        blocked(
            repository="acme/api",
            branch="main",
            title="add rate limits",
            detail="rm -rf build && make all",
            pane="%4",
            tmux="/nowhere/default",
            agents=[
                {"id": "x", "type": "Explore", "description": "find the limiter"},
                {"id": "y", "type": "Plan", "description": "plan the cache"},
            ],
            background=[{"id": "b", "type": "shell", "description": "npm run dev"}],
        ),
        session(
            "blocked",
            "web",
            ago=70,
            kind="question",
            detail="Which database should the tests use?",
            project="web",
            repository="acme/web",
            branch="fix/login",
            title="login redirect",
        ),
        session(
            "working",
            ago=250,
            tool="Edit",
            detail="src/cache.py",
            project="api",
            repository="acme/api",
            branch="cache",
            title="cache layer",
            tasks={"done": 3, "total": 7},
        ),
        session(
            "completed",
            ago=310,
            project="web",
            repository="acme/web",
            branch="main",
            title="tidy css",
            last_message="Removed 214 unused rules",
        ),
        session(
            "error",
            ago=3700,
            project="infra",
            repository="acme/infra",
            branch="main",
            detail="overloaded",
        ),
        session(
            "background",
            project="dotfiles",
            branch="main",
            background=[{"id": "s", "type": "shell", "description": "mkdocs serve"}],
        ),
        session("idle", ago=9000, project="dotfiles", branch="zsh"),
    ]


def clone() -> list[dict[str, Any]]:
    """Return six sessions in one clone, and one of another repository with a long branch."""
    asks = {"kind": "permission", "tool": "Bash", "detail": "rm -rf build && make all"}
    build = {"tool": "Bash", "detail": "cargo test --workspace -- --nocapture rate_limits"}
    shop = [
        session("blocked", "s1", title="add rate limits to the endpoints", **asks),
        session("completed", "s2", title="tidy the prompt", last_message="Removed 214 rules"),
        session("working", "s3", title="fix the flaky login test", tool="Edit", detail="login.py"),
        session("working", "s4", title="write section 4 of the paper", **build),
        session("working", "s5", title="fix the tests", tool="Read", detail="a.py"),
        session("working", "s6", title="fix the tests", tool="Read", detail="b.py"),
    ]
    here = {"project": "shop", "repository": "acme/shop", "branch": "main"}
    branch = "feature/JIRA-1234-rework-the-whole-limiter"
    api = session("working", "s7", ago=20, project="api", repository="acme/api", branch=branch)
    return [*({**one, **here, "ago": 130 + n} for n, one in enumerate(shop)), {**api, **build}]


def far(machine: str, status: str, project: str, **more: Any) -> dict[str, Any]:
    """Return a session of another machine; `down`: for so long that cannot be followed."""
    known = {"machine": machine, "project": project, "terminal": "tmux", "agent": "claude"}
    known |= {"ago": 7500}
    sid = f"{machine}/claude/{project}-{status}"
    return session(status, sid, **{**known, "repository": f"acme/{project}", **more})


def machines() -> list[dict[str, Any]]:
    """Return sessions of two other machines, one of which cannot be followed, and two of ours."""
    asks = {"kind": "permission", "tool": "Bash", "detail": "make deploy"}
    down = {"down": 11000, "link_why": "ssh: connect to host box port 22: Connection refused"}
    return [
        far("dev", "blocked", "api", branch="main", title="rate limits", **asks),
        far("dev", "working", "web", branch="fix/login", tool="Edit", detail="src/login.py"),
        far("a-long-name-of-a-box", "blocked", "web", branch="main", ago=19000, **asks, **down),
        far("a-long-name-of-a-box", "working", "infra", branch="main", tool="Bash", **down),
        session(
            "working",
            ago=4000,
            tool="Edit",
            detail="src/cache.py",
            project="api",
            repository="acme/api",
            branch="cache",
            agent="claude",
        ),
        session("idle", ago=9000, project="dotfiles", branch="zsh", agent="claude"),
    ]


def activity() -> list[dict[str, Any]]:
    """Return sessions at work that are quiet, run a tool for long, or try again; and a limit."""
    retry = {"detail": "attempt 7 of 10: 429 rate limit", "markers": ["retrying", "inferred"]}
    make = {"tool": "Bash", "detail": "make test", "ran": 2410, "quiet": 2410}
    limit = "5-hour limit · resets 3:48pm (UTC)"
    return [
        session("error", "limit", ago=130, project="infra", branch="main", detail=limit),
        session("working", "quiet", ago=2000, project="api", branch="users", quiet=1930),
        session("working", "tool", ago=2500, project="api", branch="cache", **make),
        session("working", "retry", ago=190, project="web", branch="fix/login", **retry),
        session("working", "busy", ago=20, project="web", branch="main", tool="Edit", ran=5),
    ]


def dated(session: dict[str, Any], now: float) -> dict[str, Any]:
    """Return a session with times relative to that time."""
    rest = {"hidden": False, "markers": [], **session}
    if "down" in rest:
        rest |= {"link_since": now - rest.pop("down"), "markers": ["stale"]}
    if "quiet" in rest:
        rest |= {"quiet_since": now - rest.pop("quiet"), "markers": ["quiet"]}
    if "ran" in rest:
        rest |= {"tool_since": now - rest.pop("ran")}
    return worded({"since": now - rest.pop("ago"), **rest})


#: Carries out what is asked of the host; only one that serves does.
SERVES = """
local python, errand = ...
require('bellboard.process.talk').ask = function(what, request, done)
  local asked = { what = what, request = request, sessions = require('bellboard').sessions() }
  vim.system({ python, errand }, { stdin = vim.json.encode(asked), text = true }, function(result)
    local nil_is_nil = { luanil = { object = true, array = true } }
    local ok, reply = pcall(vim.json.decode, result.stdout, nil_is_nil)
    vim.schedule(function()
      done(ok and reply or { ok = false, why = result.stderr })
    end)
  end)
end
"""


class Host:
    """Pushes numbered messages, as a host does; one that serves also jumps and reads previews."""

    def __init__(self, editor: Editor, set_up: str = SET_UP, serves: bool = False) -> None:
        self.editor = editor
        self.seq = 0
        self.wire = Encoder()
        editor.lua(set_up)
        if serves:
            editor.lua(SERVES, sys.executable, str(Path(__file__).with_name("errand.py")))

    def push(self, *sessions: dict[str, Any], full: bool = True, **more: Any) -> None:
        self.seq += 1
        now = time.time()
        if full:  # of a Neovim that is in front
            blocked = [s for s in sessions if s["status"] == "blocked"]
            calling = [s["session_id"] for s in sorted(blocked, key=lambda s: -float(s["ago"]))]
            more = {"front": True, "float": calling, **more}
        message = {
            "v": 2,
            "version": self.editor.lua("return require('bellboard').version"),
            "seq": self.seq,
            "full": full,
            "now": now,
            "sessions": [dated(each, now) for each in sessions],
            "removed": [],
            "transitions": [],
            "health": {},
            **more,
        }
        self.editor.lua("require('bellboard')._push(...)", self.wire.encoded(message))

    def stops(self) -> None:
        """End, as a process does: what was pushed is outdated."""
        self.editor.lua("require('bellboard.process.receive').stopped()")
