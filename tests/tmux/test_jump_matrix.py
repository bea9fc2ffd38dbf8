"""Where a jump lands: real tmux servers, Neovims in their panes, terminals attached.

Each case compares the servers before and after: only the target of the jump may have changed.
"""

from __future__ import annotations

import contextlib
import re
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psutil
import pynvim
import pytest

from bellboard.storage.spool import Spool
from rig import reaper
from rig.editor import command
from rig.fixtures import VERSIONS, Editors
from rig.home import Home
from rig.host.sample import QUIET, TERMINAL, Host, blocked
from rig.screen import connected
from rig.tmux import Pane, Server
from rig.waiting import eventually, leniency

AGENT = ["sleep", "600"]
CALM = {**QUIET, "float": {"enabled": False}}

#: Records when the jump was over: at its evidence or its message.
WATCH = """
local bellboard = require('bellboard')
_G.said, _G.landed, _G.began = {}, nil, nil
require("bellboard.process.talk").tell = function(evidence)
  _G.landed = evidence['goto'] and (vim.uv.hrtime() - _G.began) / 1e6 or _G.landed
end
vim.notify = function(text)
  table.insert(_G.said, text)
  _G.spoke = (vim.uv.hrtime() - (_G.began or 0)) / 1e6
end
"""
JUMP = "_G.began = vim.uv.hrtime() require('bellboard').jump(...)"
BUFFER = "return vim.api.nvim_get_current_buf()"
PROMPT = 150.0  # ms that a jump may take; a loaded machine gets more


class Seat:
    """A real Neovim in its own pane, and the client that drives it."""

    def __init__(
        self, server: Server, name: str, session: str, version: str, config: dict[str, Any]
    ) -> None:
        self.socket = server.home.root / f"{name}.sock"
        argv = command(version, server.home, name, config=config)
        self.pane = server.open(argv, session=session)
        self.server = server
        connected(self.socket).close()
        self.nvim: Any = pynvim.attach("socket", path=str(self.socket))
        self.name = name

    def lua(self, code: str, *args: Any) -> Any:
        return self.nvim.exec_lua(code, *args)

    def close(self) -> None:
        """Close the client after its server: one more request lets it see the end of file."""
        with contextlib.suppress(OSError, EOFError):
            self.nvim.request("nvim_get_mode")
        self.nvim.close()


@dataclass
class Terminals:
    """The tmux servers and Neovims of one test."""

    home: Home
    seats: list[Seat]
    servers: list[Server]

    def server(self) -> Server:
        self.servers.append(Server(self.home, f"tmux{len(self.servers)}.sock"))
        return self.servers[-1]

    def seat(
        self,
        server: Server,
        session: str = "work",
        version: str = VERSIONS[-1],
        config: dict[str, Any] = CALM,
    ) -> Seat:
        self.seats.append(Seat(server, f"seat{len(self.seats)}", session, version, config))
        return self.seats[-1]


@pytest.fixture
def stage(home: Home) -> Iterator[Terminals]:
    """stage.server(), stage.seat(server, session): stopped at the end of the test."""
    made = Terminals(home, [], [])
    yield made
    for server in made.servers:
        server.close()
    for seat in made.seats:
        seat.close()


def world(server: Server) -> dict[str, str]:
    """Return the state that a jump can change: clients, sessions, windows and panes."""
    forms = {
        "list-clients": "client #{client_name}|#{client_session} #{pane_id}",
        "list-windows -a": "session #{session_name} #{window_id}|#{window_active}",
        "list-panes -a": "window #{window_id} #{pane_id}|#{pane_active} #{window_zoomed_flag}",
    }
    rows = [
        row
        for verb, form in forms.items()
        for row in server.run(*verb.split(), "-F", form).split("\n")
    ]
    return dict(row.split("|", 1) for row in rows if row)


def moved(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """Return the changes."""
    return {key for key in before | after if before.get(key) != after.get(key)}


def agent(pane: Pane, **more: Any) -> dict[str, Any]:
    """Return a session that runs in a pane."""
    known = {"tmux": str(pane.server.socket), "pane": pane.id, "tty": pane.tty}
    return blocked("api", **{**known, **more})


def report(text: str) -> None:
    """Print a measurement, shown by -rP."""
    sys.stdout.write(text + "\n")


def jump(asker: Any, session: dict[str, Any], says: str = "") -> float:
    """Jump; return the milliseconds until it was done. It may say where it led."""
    host = Host(asker, serves=True)
    asker.lua(WATCH)
    host.push(session)
    asker.lua(JUMP, session["session_id"])

    def landed() -> float | None:
        said = asker.lua("return said")
        assert said in ([], [f"bellboard: {says}"] * bool(says)), said
        return asker.lua("return landed")  # type: ignore[no-any-return]

    took = eventually(landed)
    assert took
    assert len(asker.lua("return said")) == bool(says)
    report(f"landed after {took:.1f} ms (bar: {PROMPT:.0f})")
    assert took < 20 * PROMPT * leniency(1.0)
    return took


def refused(asker: Any, session: dict[str, Any]) -> str:
    """Jump, which must fail; return the message."""
    host = Host(asker, serves=True)
    asker.lua(WATCH)
    host.push(session)
    asker.lua(JUMP, session["session_id"])
    [text] = eventually(lambda: asker.lua("return said"), "a message")
    report(f"said after {asker.lua('return spoke'):.1f} ms")
    assert asker.lua("return landed") is None
    return str(text)


#: The session of the agent's pane, what is done before the jump, what else than the client that
#: asked changes, the session in which that client then shows the pane, and whether it is zoomed.
LANDINGS: dict[str, tuple[str, list[str], set[str], str, bool]] = {
    "another session": (
        "agents",
        ["new-window -t =agents: sleep 600", "new-window -d -t =agents: sleep 600"],
        {"session"},
        "agents",
        False,
    ),
    "another window of the same session": ("work", [], {"session"}, "work", False),
    "a zoomed window elsewhere": (
        "agents",
        ["split-window -d -t {target} sleep 600", "resize-pane -Z -t {target}"],
        set(),
        "agents",
        True,
    ),
    "beside it in a zoomed window": (
        "work",
        ["join-pane -d -s {target} -t {asker}", "resize-pane -Z -t {asker}"],
        {"window"},
        "work",
        True,
    ),
    "a window that two sessions share": (
        "work",
        ["new-session -d -t =work -s agents"],
        {"session"},
        "work",
        False,
    ),
}


@pytest.mark.parametrize("where", LANDINGS)
def test_a_pane_of_this_server(stage: Terminals, where: str, version: str) -> None:
    """Only the client that asked moves, and what it must change; the way back is noted."""
    session, commands, kinds, shown_in, zoomed = LANDINGS[where]
    server = stage.server()
    asker = stage.seat(server, version=version)
    target = server.open(AGENT, session=session)
    server.open(AGENT, session="other")
    for line in commands:
        server.run(*line.format(target=target.id, asker=asker.pane.id).split())
    client, _ = server.attach("work"), server.attach("other")
    before = world(server)
    jump(asker, agent(target))
    after = world(server)
    changed = moved(before, after) - {f"client {client}"}
    assert {key.split()[0] for key in changed} == kinds
    assert after[f"client {client}"] == f"{shown_in} {target.id}"
    assert target.ask("#{window_zoomed_flag}#{pane_active}") == f"{zoomed:d}1"
    rows = server.run("list-clients", "-F", "#{client_name} #{client_pid}").splitlines()
    pid = dict(row.split() for row in rows)[client]
    back = server.run("show-options", "-gv", "@bellboard-back")
    assert f" {pid}={asker.pane.id}=" in back


def test_the_background_process_carries_a_jump_out(stage: Terminals, home: Home) -> None:
    """The whole way: from the spool to the board, from there to the pane; and a preview."""
    server = stage.server()
    asker = stage.seat(server, config={"float": {"enabled": False}})
    target = server.open(
        ["sh", "-c", r"printf 'a \033[31mred\033[0m word\n'; sleep 600"], session="two"
    )
    target.shows("red word")
    client = server.attach("work")
    spool = Spool(home.bellboard)
    spool.prepare()
    place = {"tty": target.tty, "tmux": str(server.socket), "pane": target.id}
    hook = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "x"}
    spool.write({"t": time.time(), "hook": hook, "origin": place})
    known = "local s = require('bellboard').session('s') return s and s.pane or false"
    eventually(lambda: asker.lua(known) == target.id, "the session")
    asker.lua(
        "local session = require('bellboard').session('s') "
        "require('bellboard.preview').lines(session, function(...) _G.shown = { ... } end)"
    )
    lines, colors = eventually(lambda: asker.lua("return shown"), "a preview")
    assert lines == ["a red word"]
    assert [(c["row"], c["from"], c["to"]) for c in colors] == [(0, 2, 5)]
    asker.lua("require('bellboard').jump('s')")
    eventually(lambda: world(server)[f"client {client}"] == f"two {target.id}", "the pane")


def test_of_two_terminals_only_the_one_that_shows_us_moves(stage: Terminals) -> None:
    """Two clients on one session: the one typed into last is the one that asks."""
    server = stage.server()
    asker = stage.seat(server)
    target = server.open(AGENT, session="agents")
    first, second = server.attach("work"), server.attach("work")
    jump(asker, agent(target))
    shown = {tty: world(server)[f"client {tty}"] for tty in (first, second)}
    assert sorted(shown.values()) == sorted([f"agents {target.id}", f"work {asker.pane.id}"])


def test_a_pane_of_another_server(stage: Terminals) -> None:
    """Shown on that server's client; nothing on our own server moves."""
    server, other = stage.server(), stage.server()
    asker = stage.seat(server)
    target, _ = other.open(AGENT, session="a"), other.open(AGENT, session="b")
    server.attach("work")
    client = other.attach("b")
    before = world(server)
    jump(asker, agent(target), "shown in tmux a:0.0 of the other terminal")
    assert moved(before, world(server)) == set()
    assert world(other)[f"client {client}"] == f"a {target.id}"


def test_a_server_without_clients(stage: Terminals) -> None:
    """A question offers to attach to the server; then its pane is shown in a terminal here."""
    server, other = stage.server(), stage.server()
    asker = stage.seat(server)
    target, _ = other.open(AGENT, session="a"), other.open(AGENT, session="a")
    other.run("select-window", "-t", "=a:1")
    asker.lua("""
    vim.ui.select = function(items, opts, on_choice)
      _G.asked = opts.prompt
      on_choice(items[1], 1)
    end""")
    jump(asker, agent(target))
    assert asker.lua("return asked") == "No terminal shows the tmux session a"
    eventually(lambda: other.run("list-clients"), "a client in a terminal of the Neovim")
    assert target.ask("#{window_active}") == "1"
    assert asker.lua("return vim.bo.buftype") == "terminal"


def test_a_tmux_in_a_terminal_of_ours(stage: Terminals, nvim: Editors) -> None:
    """The client is a :terminal buffer here: it is shown, and the pane in it."""
    server = stage.server()
    first, target = server.open(AGENT, session="a"), server.open(AGENT, session="a")
    asker = nvim(config=QUIET, ui=False)
    asker.lua(
        "vim.cmd.file('here') vim.cmd.terminal(...) _G.buf = vim.fn.bufnr() vim.cmd.buffer('here')",
        f"tmux -S {server.socket} attach-session -t =a",
    )
    eventually(lambda: server.run("list-clients"), "the client")
    assert first.ask("#{window_active}") == "1"
    jump(asker, agent(target))
    assert asker.lua("return vim.fn.bufnr() == buf")
    assert target.ask("#{window_active}") == "1"


@pytest.mark.parametrize("same", [True, False], ids=["same server", "other server"])
def test_a_terminal_of_a_neovim_in_another_pane(stage: Terminals, same: bool, version: str) -> None:
    """That Neovim shows the terminal, tmux shows that Neovim; `back` there returns here."""
    server = stage.server()
    elsewhere = server if same else stage.server()
    asker = stage.seat(server)
    there = stage.seat(elsewhere, "agents", version)
    client = server.attach("work")
    theirs = client if same else elsewhere.attach("agents")
    buf, tty = there.lua(TERMINAL)
    session = agent(there.pane, tty=tty, nvim=str(there.socket))
    Host(there, serves=True)
    jump(asker, session, "" if same else "shown in tmux agents:0.0 of the other terminal")
    assert there.lua(BUFFER) == buf
    eventually(
        lambda: world(elsewhere)[f"client {theirs}"] == f"agents {there.pane.id}", "the pane"
    )
    there.lua("require('bellboard').back()")
    assert there.lua(BUFFER) != buf
    eventually(lambda: world(server)[f"client {client}"] == f"work {asker.pane.id}", "back again")


def test_a_terminal_of_a_neovim_outside_tmux(nvim: Editors, version: str) -> None:
    """The terminal is shown there; the message says where to look."""
    there, here = nvim(version, QUIET, ui=False), nvim(config=QUIET, ui=False)
    buf, tty = there.lua(TERMINAL)
    address = there.lua("return vim.v.servername")
    host = Host(here, serves=True)
    here.lua(WATCH)
    host.push(blocked("api", tty=tty, nvim=address))
    here.lua(JUMP, "api")
    [text] = eventually(lambda: here.lua("return said"), "a message")
    assert text == f"bellboard: shown in the Neovim at {address}"
    assert there.lua(BUFFER) == buf
    assert here.lua("return landed") < 20 * PROMPT * leniency(1.0)
    report(f"landed after {here.lua('return landed'):.1f} ms (bar: {PROMPT:.0f})")


def test_an_agent_in_a_tmux_that_was_started_in_a_neovim(stage: Terminals, nvim: Editors) -> None:
    """The whole server inherits $NVIM: the pane of the agent's own terminal counts."""
    server = stage.server()
    there = nvim(config=QUIET, ui=False)
    asker = stage.seat(server)
    target = server.open(AGENT, session="agents")
    client = server.attach("work")
    jump(asker, agent(target, nvim=there.lua("return vim.v.servername")))
    assert world(server)[f"client {client}"] == f"agents {target.id}"


# Targets that are gone or do not respond.


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("a pane that is gone", "its tmux pane {pane} is gone: {tty}, pid 4711"),
        ("a number that another pane has now", "its tmux pane {pane} is gone: /dev/pts/9999"),
        ("a server that is gone", "no server running|error connecting"),
        ("a server that is suspended", "tmux does not respond"),
    ],
)
def test_a_pane_that_cannot_be_shown(stage: Terminals, state: str, words: str) -> None:
    """No window moves, and the message says what is known; the editor waits for nobody."""
    server = stage.server()
    there = stage.server() if "server" in state else server
    asker = stage.seat(server)
    target = there.open(AGENT, session="agents")
    there.open(AGENT, session="agents")
    server.attach("work")
    session = agent(target, pid=4711)
    words = words.format(**session)
    if state == "a pane that is gone":
        there.run("kill-pane", "-t", target.id)
    elif state == "a number that another pane has now":
        session["tty"] = "/dev/pts/9999"
    elif state == "a server that is gone":
        there.close()
    before = world(server)
    process = psutil.Process(there.pid) if state == "a server that is suspended" else None
    if process:
        process.suspend()
    try:
        assert re.search(words, refused(asker, session))
    finally:
        if process:
            process.resume()
    assert moved(before, world(server)) == set()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("gone", "its Neovim has exited: "),
        ("stopped", "its Neovim does not respond: "),
        ("asking", "its Neovim is waiting for a key: "),
        ("closed", "its Neovim no longer has its terminal: "),
        ("bare", "its Neovim refused: "),
    ],
)
def test_a_neovim_that_cannot_show_it(nvim: Editors, state: str, words: str) -> None:
    """Gone, suspended, in a prompt, without that terminal or this plugin: said, not waited for."""
    there = nvim(config=None if state == "bare" else QUIET, ui=False)
    here = nvim(config=QUIET, ui=False)
    tty = "/dev/pts/9999" if state == "closed" else there.lua(TERMINAL)[1]
    session = blocked("api", tty=tty, nvim=there.lua("return vim.v.servername"), cwd="/srv")
    if state == "gone":
        reaper.end(reaper.family([there.pid]))
        there.process.wait()
    elif state == "stopped":
        there.process.send_signal(signal.SIGSTOP)
    elif state == "asking":
        there.press('"')
        eventually(lambda: there.nvim.request("nvim_get_mode")["blocking"], "a prompt")
    try:
        text = refused(here, session)
    finally:
        if state == "stopped":
            there.process.send_signal(signal.SIGCONT)
        elif state == "asking":
            there.press("<Esc>")
    assert f": {words}" in text
    assert text.endswith(f"{tty}, nvim {session['nvim']}")


def test_the_editor_stays_responsive_while_a_neovim_does_not_respond(nvim: Editors) -> None:
    """The call itself returns at once."""
    there, here = nvim(config=QUIET, ui=False), nvim(config=QUIET, ui=False)
    tty = there.lua(TERMINAL)[1]
    Host(here, serves=True).push(blocked("api", tty=tty, nvim=there.lua("return vim.v.servername")))
    there.process.send_signal(signal.SIGSTOP)
    try:
        took = here.lua(
            "local began = vim.uv.hrtime() require('bellboard').jump('api') "
            "return (vim.uv.hrtime() - began) / 1e6"
        )
    finally:
        there.process.send_signal(signal.SIGCONT)
    report(f"the call took {took:.2f} ms")
    assert took < 200 * leniency(1.0)
