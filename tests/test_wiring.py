"""The options and keys of bellboard in tmux, on a real server with clients in panes of another."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bellboard.cli.wiring import FIRST, HOOKS, SHOWN, quoted
from bellboard.hosting.tmux_status import OPTION
from bellboard.storage.spool import Spool
from bellboard.storage.store import ICONS
from bellboard.system import tmux as tmux_module
from bellboard.system.tmux import Tmux
from hosting import opened
from rig import warm
from rig.home import Home
from rig.tmux import Pane, Server
from rig.waiting import PATIENCE, eventually

pytestmark = pytest.mark.tmux

PREFIX = "\x02"


class Room:
    """A tmux server with a session of ours, terminals attached to it, and a shell."""

    def __init__(self, home: Home, tmux: Server, outside: Server) -> None:
        self.home, self.tmux, self.outside = home, tmux, outside
        self.spool = Spool(home.bellboard)
        self.spool.prepare()
        self.socket = str(tmux.socket)
        self.env = home.env | {"TMUX": f"{self.socket},1,0"}
        self.running: list[warm.Program] = []

    def bellboard(self, *args: str, code: int = 0, **env: str) -> str:
        """Run a command in this tmux; return its output and its errors."""
        done = warm.run(["-m", "bellboard", *args], env=self.env | env)
        assert done.returncode == code, done.stderr or done.stdout
        return done.stdout + done.stderr

    def host(self) -> None:
        """Start a host without an editor."""
        self.running.append(warm.Program(["-m", "bellboard", "serve"], env=self.home.env))
        eventually(lambda: self.spool.hosts.alive(), "a host")

    def attach(self, session: str) -> Pane:
        """Attach a terminal to a session; return its tty, which is the client's name."""
        inner = [
            "env",
            "-u",
            "TMUX",
            "tmux",
            "-u",
            "-S",
            self.socket,
            "attach",
            "-t",
            f"={session}",
        ]
        pane = self.outside.open(inner, session=f"out{len(self.clients())}")
        eventually(lambda: pane.tty in self.clients(), "the client")
        return pane

    def clients(self) -> list[str]:
        return self.tmux.run("list-clients", "-F", "#{client_name}").split()

    def shown(self) -> dict[str, str]:
        """Return the pane that each client shows."""
        return {c.name: c.pane for c in Tmux(self.socket).clients() or ()}

    def agent(self, pane: Pane, session: str, event: str, **payload: Any) -> None:
        """Run the hook of an agent in that pane."""
        told = {"session_id": session, "hook_event_name": event, "cwd": f"/w/{session}", **payload}
        origin = {"pid": pane.pid, "tmux": self.socket, "pane": pane.id, "tty": pane.tty}
        self.spool.write({"t": time.time(), "hook": told, "origin": origin})

    def done(self, pane: Pane, session: str) -> None:
        """Complete a turn of an agent in that pane."""
        for event in ("SessionStart", "UserPromptSubmit", "Stop"):
            self.agent(pane, session, event, prompt="do it")

    def status(self, session: str) -> str:
        """Return a session's status from the host, or from a command if there is none."""
        listed = json.loads(self.bellboard("list", "--json"))["sessions"]
        return {p["session_id"]: str(p["status"]) for p in listed}.get(session, "")

    def views(self) -> dict[str, str]:
        """Return the pane that each client looks at; none if it looks away."""
        self.bellboard("status")
        with opened(self.home.bellboard) as shared:
            return {name: v.pane for name, v in shared.board.ledger.views.items()}


@pytest.fixture
def room(home: Home, tmux: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    monkeypatch.setattr(tmux_module, "PATIENCE", PATIENCE)
    outside = Server(home, "outside.sock")
    made = Room(home, tmux, outside)
    yield made
    outside.close()
    for process in made.running:
        process.terminate()
        process.wait()


def set_there(tmux: Server) -> str:
    """Return every hook, key and option of the server."""
    hooks = (tmux.run("show-hooks", "-g", name) for name in HOOKS)
    return "".join([*hooks, tmux.run("list-keys"), tmux.run("show-options", "-g")])


# ---------------------------------------------------------------- apply and remove


def test_removing_undoes_setting_and_nothing_else(tmux: Server, room: Room) -> None:
    """Applying twice changes nothing; hooks and keys of others are kept."""
    tmux.open(["sh"], session="one")
    tmux.run("set-hook", "-g", "window-pane-changed[3]", "display-message theirs")
    tmux.run("set-hook", "-g", f"session-window-changed[{FIRST}]", "display-message theirs")
    before = set_there(tmux)
    room.bellboard("tmux", "--apply")
    applied = set_there(tmux)
    assert set(before.splitlines()) - set(applied.splitlines()) == {
        name for name in HOOKS if name not in ("window-pane-changed", "session-window-changed")
    }
    assert f"session-window-changed[{FIRST + 1}] if-shell" in applied
    assert f"client-detached[{FIRST}] if-shell" in applied
    room.bellboard("tmux", "--apply")
    assert applied == set_there(tmux)
    room.bellboard("tmux", "--remove")
    assert before == set_there(tmux)


def test_it_says_what_it_did_and_what_is_left(tmux: Server, room: Room) -> None:
    """The status line is changed if you say so; a line for tmux.conf does the same again."""
    tmux.open(["sh"], session="one")
    tmux.run("set-option", "-g", "status-right", "theirs #{pane_id}\\;")
    before = set_there(tmux)
    said = room.bellboard("tmux", "--apply")
    assert "prefix b     pick a session\n" in said
    assert "not in the status line" in said
    assert "theirs" in tmux.run("show-options", "-gv", "status-right").splitlines()[0][:6]
    conf = room.home.root / ".tmux.conf"
    conf.write_text(room.bellboard("tmux", "--apply", "--status").splitlines()[-1])
    assert room.bellboard("tmux", "--remove").endswith("remove its line 1 by hand\n")
    assert before == set_there(tmux)
    tmux.run("source-file", str(conf))
    shown = lambda: tmux.run("show-options", "-gv", "status-right")  # noqa: E731
    eventually(lambda: shown().endswith(f"{SHOWN}theirs #{{pane_id}};\n"))
    assert "  status       in the status line\n" in room.bellboard("tmux", "--apply")
    assert shown().count(SHOWN) == 1
    assert "hooks, keys and status" in room.bellboard("uninstall", "--purge", "--yes")
    assert before == set_there(tmux)


def test_a_server_that_does_not_respond_is_reported(tmux: Server, room: Room) -> None:
    """No key counts as free or removed that could not be looked at."""
    tmux.open(["sh"], session="one")
    room.bellboard("tmux", "--apply")
    before = set_there(tmux)
    slow = room.home.bin / "tmux"
    real = shutil.which("tmux", path=room.env["PATH"])
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in *show-hooks*) exec sleep 60;; esac\nexec {real} "$@"\n'
    )
    slow.chmod(0o755)
    for how in ("--apply", "--remove"):
        assert "tmux does not respond" in room.bellboard("tmux", how, code=1)
    slow.unlink()
    assert before == set_there(tmux)


def executable(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_tpm_sets_it_up_at_each_start(tmux: Server, room: Room) -> None:
    """The plugin's file runs from its clone; the program may be elsewhere."""
    tmux.open(["sh"], session="one")
    clone = room.home.project / "bellboard.nvim"
    clone.mkdir()
    shutil.copy(Path(__file__).parents[1] / "bellboard.tmux", clone)
    tmux.run("set-option", "-g", "@bellboard-apply", "--status --pick S")
    path = f"{Path(sys.executable).parent}:{room.env['PATH']}"
    subprocess.run([clone / "bellboard.tmux"], env=room.env | {"PATH": path}, check=True)
    keys = lambda: tmux.run("list-keys", "-T", "prefix")  # noqa: E731
    eventually(lambda: re.search(r"prefix S +run-shell .*bellboard", keys()), "the key")
    eventually(lambda: OPTION in tmux.run("show-options", "-gv", "status-right"), "the status")


@pytest.mark.skipif(shutil.which("flock") is None, reason="flock is of Linux")
def test_tpm_waits_for_a_neovim_that_builds(tmux: Server, room: Room) -> None:
    """Both start at the same moment, in the same folder."""
    tmux.open(["sh"], session="one")
    clone, log = room.home.project / "bellboard.nvim", room.home.root / "log"
    program = clone / ".venv/bin/bellboard"
    program.parent.mkdir(parents=True)
    for name in ("bellboard.tmux", "build.sh"):
        shutil.copy(Path(__file__).parents[1] / name, clone)
    for name in ("uv", "python3"):
        executable(room.home.bin / name, f'echo {name} "$@" >>{log}')
    lock = os.open(clone, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    path = f"{room.home.bin}:{os.defpath}"
    subprocess.run([clone / "bellboard.tmux"], env=room.env | {"PATH": path}, check=True)

    def waits() -> bool:
        lines = Path("/proc/locks").read_text().splitlines()
        return any("->" in line and f":{clone.stat().st_ino} " in line for line in lines)

    eventually(waits, "the other builder")
    executable(program, f'echo bellboard "$@" >>{log}')
    (clone / ".venv/.ready").touch()
    os.close(lock)
    eventually(lambda: log.exists() and log.read_text().endswith("--quiet\n"), "the program")
    assert log.read_text() == "bellboard tmux --apply --quiet\n"


def test_a_key_that_is_bound_keeps_its_binding(tmux: Server, room: Room) -> None:
    """The key is reported, and the rest is set; other keys can be named."""
    tmux.open(["sh"], session="one")
    tmux.run("bind-key", "b", "display-message", "theirs")
    said = room.bellboard("tmux", "--apply", code=1)
    row = "prefix b     not set: already bound: display-message theirs; --pick KEY takes another"
    assert f"\n  {row}\nto set this up" in said
    assert "goto --next" in tmux.run("list-keys", "-T", "prefix", "B")
    assert "theirs" in tmux.run("list-keys", "-T", "prefix", "b")
    assert room.bellboard("tmux", "--apply", "--quiet", "--pick", "S") == ""
    assert "display-popup" in tmux.run("list-keys", "-T", "prefix", "S")


#: As typed, as tmux is asked for it, what is bound there at first.
NAMED = ["% % split-window", "^b C-b send-prefix", r"; \; last-pane", "{ { swap-pane", "M-' M-'"]


@pytest.mark.parametrize("named", NAMED)
def test_a_key_is_the_one_that_tmux_takes_it_for(tmux: Server, room: Room, named: str) -> None:
    """Any spelling or quoting counts: a bound key stays, a free one is ours."""
    typed, key, *bound = named.split()
    tmux.open(["sh"], session="one")
    for theirs in bound:
        said = room.bellboard("tmux", "--apply", "--pick", typed, code=1)
        assert f"prefix {typed:6}not set: already bound: {theirs}" in said
        assert "pick a session" not in said
        assert theirs in tmux.run("list-keys", "-T", "prefix", key)
        tmux.run("unbind-key", key)
        room.bellboard("tmux", "--remove")
    before = set_there(tmux)
    room.bellboard("tmux", "--apply", "--pick", typed)
    assert "pick --client" in tmux.run("list-keys", "-T", "prefix", key)
    room.bellboard("tmux", "--apply", "--pick", typed)
    room.bellboard("tmux", "--remove")
    assert set_there(tmux) == before


def test_a_key_that_does_not_exist_is_reported(tmux: Server, room: Room) -> None:
    """The rest is set."""
    tmux.open(["sh"], session="one")
    said = room.bellboard("tmux", "--apply", "--answer", "NoSuchKey", code=1)
    assert "prefix NoSuchKey not set: unknown key" in said
    assert "answer what is asked" not in said
    assert "prefix b     pick a session" in said


def test_what_is_printed_is_what_is_set(tmux: Server, room: Room) -> None:
    """A tmux that reads it as its configuration has the same hooks and keys."""
    tmux.open(["sh"], session="one")
    printed = room.bellboard("tmux")
    lines = [line.removeprefix("#   ") for line in printed.splitlines() if line.startswith("#  ")]
    assert len(lines) == len(HOOKS) + 4
    file = room.home.file("tmux.conf", "\n".join(lines))
    tmux.run("source-file", str(file))
    sourced = set_there(tmux)
    room.bellboard("tmux", "--remove")
    room.bellboard("tmux", "--apply")
    applied = set_there(tmux)
    assert [*filter(lambda line: OPTION not in line, applied.splitlines())] == sourced.splitlines()


def test_which_server_is_meant_must_be_clear(room: Room, tmux: Server, home: Home) -> None:
    """Outside tmux, the only server is meant; a dead socket is named."""
    tmux.open(["sh"], session="one")
    said = room.bellboard("tmux", "--apply", code=1, TMUX="", TMUX_TMPDIR=str(home.tmp))
    assert "--socket PATH" in said
    room.bellboard("tmux", "--apply", "--socket", room.socket, TMUX="")
    assert "pick --client" in tmux.run("list-keys", "-T", "prefix", "b")
    said = room.bellboard("tmux", "--apply", "--socket", "/nowhere", code=1, TMUX="")
    assert "/nowhere" in said


# ---------------------------------------------------------------- views


def test_each_client_looks_at_the_pane_that_it_shows(tmux: Server, room: Room) -> None:
    """Changes of window, pane and session are reported with the client; so is its end."""
    first, second = tmux.open(["sh"], session="one"), tmux.open(["sh"], session="one")
    third = tmux.open(["sh"], session="two")
    tmux.run("select-window", "-t", first.id)
    room.host()
    a = room.attach("one")
    room.bellboard("tmux", "--apply")
    name = f"{room.socket} {a.tty}"
    eventually(lambda: room.views() == {name: first.id}, "the first view")
    tmux.run("select-window", "-t", second.id)
    eventually(lambda: room.views() == {name: second.id}, "another window")
    split = tmux.run("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", second.id).strip()
    tmux.run("select-pane", "-t", split)
    eventually(lambda: room.views() == {name: split}, "another pane")
    b = room.attach("two")
    both = {name: split, f"{room.socket} {b.tty}": third.id}
    eventually(lambda: room.views() == both, "another client")
    tmux.run("switch-client", "-c", a.tty, "-t", "=two")
    eventually(lambda: room.views() == dict.fromkeys(both, third.id), "another session")
    tmux.run("detach-client", "-t", b.tty)
    eventually(lambda: room.views() == {name: third.id}, "the one that is left")


def test_a_terminal_without_the_focus_looks_at_nothing(tmux: Server, room: Room) -> None:
    """Switching does not matter; with the focus again, the terminal looks at its pane."""
    first, second = tmux.open(["sh"], session="one"), tmux.open(["sh"], session="one")
    tmux.run("select-window", "-t", first.id)
    tmux.run("set-option", "-g", "focus-events", "on")
    if not tmux.run("show-hooks", "-g", "client-focus-in"):
        pytest.skip("this tmux has no hook for the focus")
    room.host()
    a = room.attach("one")
    room.bellboard("tmux", "--apply")
    name = f"{room.socket} {a.tty}"
    eventually(lambda: room.views() == {name: first.id})
    a.type("\x1b[O")
    eventually(lambda: room.views() == {name: ""}, "it looks away")
    tmux.run("select-window", "-t", second.id)
    a.type("\x1b[I")
    eventually(lambda: room.views() == {name: second.id}, "it looks again")


def test_what_you_look_at_long_enough_is_seen(tmux: Server, room: Room) -> None:
    """A session completes in a hidden pane; then a client comes to that window and stays."""
    here, there = tmux.open(["sh"], session="one"), tmux.open(["sh"], session="one")
    tmux.run("select-window", "-t", here.id)
    room.host()
    room.attach("one")
    room.bellboard("tmux", "--apply")
    room.done(there, "s")
    eventually(lambda: room.status("s") == "completed")
    tmux.run("select-window", "-t", there.id)
    eventually(lambda: room.status("s") == "idle", "it was seen")


def test_without_a_host_a_view_replaces_the_previous_one(tmux: Server, room: Room) -> None:
    """One file is left, however often windows are switched; none without a viewer."""
    first, second = tmux.open(["sh"], session="one"), tmux.open(["sh"], session="one")
    room.bellboard("tmux", "--apply")
    (room.home.bellboard / "emit").chmod(0o600)  # as after a restored backup
    waiting = lambda: [*room.spool.new.iterdir(), *room.spool.slot.iterdir()]  # noqa: E731
    tmux.run("select-window", "-t", first.id, ";", "select-window", "-t", second.id)
    room.attach("one")
    eventually(lambda: len(waiting()) == 1, "the view of the client that came")

    def says(pane: Pane) -> bool:
        with contextlib.suppress(FileNotFoundError):  # it is just being replaced
            return [f" {pane.id} ".encode() in path.read_bytes() for path in waiting()] == [True]
        return False

    for pane in (first, second) * 3:
        tmux.run("select-window", "-t", pane.id)
        eventually(lambda pane=pane: says(pane), "the last view, and no other")


def test_names_from_programs_are_not_executed(tmux: Server, room: Room, home: Home) -> None:
    """Titles and names that would be commands in a format or in a shell command."""
    pwned = home.project / "pwned"
    evil = f"#(touch {pwned})$(touch {pwned})`touch {pwned}`';touch {pwned};\"#{{q:pane_title}}%n"
    first = tmux.open(["sh"], session="one")
    room.host()
    a = room.attach("one")
    room.bellboard("tmux", "--apply")
    title = home.file("title", f"\x1b]2;{evil}\x07")
    second = tmux.open(["sh", "-c", f"cat {title}; exec sleep 1000"], session="one")
    eventually(lambda: second.ask("#{pane_title}") == evil)
    for command in ("rename-window", "rename-session"):  # these expand formats
        tmux.run(command, "-t", second.id, evil.replace("#", "##"))
    assert second.ask("#{window_name}") == evil
    tmux.run("select-window", "-t", second.id)
    eventually(lambda: room.views() == {f"{room.socket} {a.tty}": second.id})
    room.agent(second, "s", "SessionStart", session_title=evil)
    room.agent(second, "s", "UserPromptSubmit", prompt=evil)
    ask = {"tool_name": "Bash", "tool_input": {"command": evil}}
    room.agent(second, "s", "PermissionRequest", **ask)
    tmux.run("set-option", "-g", "status-right", f" #{{{OPTION}}}#{{E:{OPTION}}}#{{T:{OPTION}}}")
    tmux.run("select-window", "-t", first.id)
    eventually(lambda: "touch" in tmux.run("show-options", "-gqv", OPTION))
    a.type(f"{PREFIX}B")
    eventually(lambda: room.shown() == {a.tty: second.id}, "the jump")
    assert not pwned.exists()


def test_a_moved_installation_is_silent(tmux: Server, room: Room, home: Home) -> None:
    """tmux shows the output of a failing hook over the pane; ours does nothing."""
    first, second = tmux.open(["sh"], session="one"), tmux.open(["sh"], session="one")
    tmux.run("select-window", "-t", first.id)
    room.bellboard("tmux", "--apply")
    name = f"session-window-changed[{FIRST}]"
    command = tmux.run("show-hooks", "-g", "session-window-changed").split("] ", 1)[1].strip()
    emit = str(home.bellboard / "emit")
    assert emit in command
    tmux.run("set-option", "-g", name, command.replace(emit, "/nowhere/hooks/emit"))
    room.attach("one")
    tmux.run("select-window", "-t", second.id)
    done = home.project / "done"
    tmux.run("run-shell", f"sleep 0.3; touch {done}")  # so that earlier commands have ended
    eventually(done.exists)
    assert second.ask("#{pane_in_mode}") == "0"


# ---------------------------------------------------------------- the status


def test_the_status_is_shown_while_it_is_true(tmux: Server, room: Room) -> None:
    """A host updates it in each server that asked; after --remove it is gone."""
    pane = tmux.open(["sh"], session="one")
    room.host()
    a = room.attach("one")
    room.bellboard("tmux", "--apply")
    tmux.run("set-option", "-g", "status-right", f" [#{{{OPTION}}}]")
    room.agent(pane, "api", "SessionStart")
    room.agent(pane, "api", "UserPromptSubmit", prompt="x")
    a.shows(r"\[\*1\]")
    room.agent(pane, "api", "PermissionRequest", tool_name="Bash", tool_input={"command": "make"})
    a.shows(r"\[!1 api: make\]")
    with opened(room.home.bellboard) as shared, shared.store.transaction() as tx:  # as a Neovim
        tx.set_option(ICONS, {"blocked": "▲"}, 0, time.time())
    a.shows(r"\[▲1 api: make\]")
    assert room.bellboard("status") == "▲1 api: make\n"
    room.agent(pane, "api", "SessionEnd", reason="exit")
    a.shows(r"\[\]")
    room.bellboard("tmux", "--remove")
    assert tmux.run("show-options", "-gqv", OPTION) == ""


def test_a_hanging_server_delays_nobody(tmux: Server, room: Room, home: Home) -> None:
    """The others are updated, and the host continues."""
    tmux.open(["sh"], session="one")
    room.host()
    room.bellboard("tmux", "--apply")
    pid = tmux.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        told = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "cwd": "/w/s"}
        room.spool.write({"t": time.time(), "hook": told})
        eventually(lambda: room.status("s") == "working")
    finally:
        os.kill(pid, signal.SIGCONT)
    eventually(lambda: tmux.run("show-options", "-gqv", OPTION).strip() == "*1")


# ---------------------------------------------------------------- goto and pick


@pytest.fixture
def three(tmux: Server, room: Room) -> dict[str, Pane]:
    """Make a shell that is shown, and two agents elsewhere: one asks, one is done."""
    panes = {name: tmux.open(["sh"], session=name) for name in ("home", "asks", "done")}
    room.done(panes["done"], "done")
    room.agent(panes["asks"], "asks", "SessionStart", session_title="rate limits")
    ask = {"tool_name": "Bash", "tool_input": {"command": "make all"}}
    room.agent(panes["asks"], "asks", "PermissionRequest", **ask)
    eventually(lambda: '"blocked"' in room.bellboard("list", "--json"), "a question that has stood")
    return panes


def test_goto_shows_a_session_to_whoever_asks(
    tmux: Server, room: Room, three: dict[str, Pane]
) -> None:
    """The client whose pane has the command shows it; hosts learn that it was seen."""
    a, b = room.attach("home"), room.attach("asks")
    room.bellboard("goto", "done", TMUX_PANE=three["home"].id)
    assert room.shown() == {a.tty: three["done"].id, b.tty: three["asks"].id}
    assert room.status("done") == "idle"
    said = room.bellboard("goto", "nobody", code=1)
    assert "no session matches nobody" in said
    room.bellboard("goto", "asks", "--client", a.tty)
    assert room.shown()[a.tty] == three["asks"].id
    said = room.bellboard("goto", code=1)
    assert "--next" in said


def test_the_key_cycles_through_sessions_that_need_you(
    tmux: Server, room: Room, three: dict[str, Pane]
) -> None:
    """Blocked before done; a message in the status line if there is none."""
    room.host()
    a = room.attach("home")
    room.bellboard("tmux", "--apply")
    a.type(f"{PREFIX}B")
    eventually(lambda: room.shown() == {a.tty: three["asks"].id}, "what asks")
    a.type(f"{PREFIX}B")
    eventually(lambda: room.shown() == {a.tty: three["done"].id}, "what is done")
    room.agent(three["asks"], "asks", "PostToolUse", tool_name="Bash")
    eventually(lambda: room.status("done") == "idle" and room.status("asks") == "working")
    tmux.run("set-option", "-g", "display-time", "20000")
    a.type(f"{PREFIX}B")
    a.shows("bellboard: no session needs you")
    a.type(f"{PREFIX}\x1bb")
    eventually(lambda: room.shown() == {a.tty: three["home"].id}, "where the first jump began")
    a.type(f"{PREFIX}\x1bb")
    a.shows("bellboard: no jump to go back from")


def test_each_terminal_goes_back_to_where_its_own_jumps_began(
    tmux: Server, room: Room, three: dict[str, Pane]
) -> None:
    """Two led to the same pane, and one has opened a shell beside the agent since."""
    asks, done, home = (three[name] for name in ("asks", "done", "home"))
    a, b = room.attach("home"), room.attach("done")
    room.bellboard("tmux", "--apply")
    for client in (a, b):
        room.bellboard("goto", "asks", "--client", client.tty)
    assert room.shown() == {a.tty: asks.id, b.tty: asks.id}
    tmux.run("split-window", "-t", asks.id, "sleep 600")
    assert asks.id not in room.shown().values()
    room.bellboard("goto", "asks", "--client", a.tty)
    a.type(f"{PREFIX}\x1bb")
    eventually(lambda: room.shown()[a.tty] == home.id, "where its jumps began")
    b.type(f"{PREFIX}\x1bb")
    eventually(lambda: room.shown()[b.tty] == done.id, "where that of the other began")
    b.type(f"{PREFIX}\x1bb")
    b.shows("bellboard: no jump to go back from")


def test_the_popup_picks_for_the_client_that_asked(
    tmux: Server, room: Room, three: dict[str, Pane]
) -> None:
    """Typing filters, Enter jumps there, the other client does not move; Esc to cancel."""
    a, b = room.attach("home"), room.attach("done")
    room.bellboard("tmux", "--apply")
    for client in (a, b):
        client.type(f"{PREFIX}b")
        client.shows(r"Esc to cancel")
        client.shows(r"! +asks +.*make all")
        client.press("Escape")
        eventually(
            lambda client=client: "Esc to cancel" not in client.text(), "the end of the popup"
        )
    a.type(f"{PREFIX}b")
    a.shows(r"2/2")
    a.type("RATE")
    a.shows(r"> RATE +1/2")
    a.press("Enter")
    eventually(lambda: room.shown() == {a.tty: three["asks"].id, b.tty: three["done"].id})


def test_the_picker_in_a_terminal_follows_its_size(
    tmux: Server, room: Room, three: dict[str, Pane]
) -> None:
    """Arrows move, a filter without matches says so, and the screen is restored afterwards."""
    pane = three["home"]
    pane.shows(r"[$#]")
    command = f"{sys.executable} -m bellboard pick --print"
    pane.type(f"echo before; {command}; echo code $?\n")
    pane.shows(r"! +asks")
    tmux.run("resize-window", "-t", pane.id, "-x", "50", "-y", "8")
    eventually(lambda: max(map(len, pane.text().splitlines())) <= 50 and "asks" in pane.text())
    pane.type("zzz")
    pane.shows("No session matches")
    pane.press("C-u")
    pane.shows(r"2/2")
    pane.press("Down")
    pane.press("Enter")
    assert "asks" not in pane.shows(r"done\ncode 0").split("before")[-1]
    pane.type(f"{command}; echo code $?\n")
    pane.shows(r"2/2")
    pane.press("Escape")
    pane.shows(r"code 1")
    assert "needs a terminal" in room.bellboard("pick", code=1)


def test_a_session_in_a_neovim_is_shown_by_that_neovim(
    tmux: Server, room: Room, nvim: Callable[..., Any]
) -> None:
    """The pane of that Neovim is shown as well, if it is in one."""
    editor = nvim(config={"auto_start": False}, ui=False)
    pane = tmux.open(["sh"], session="one")
    shows = """require('bellboard')._arrive = function(_, _, id)
      vim.g.jumped = id
      return vim.tbl_extend('error', { shown = true }, id == 'near' and near or {})
    end"""
    editor.lua(f"_G.near = ... {shows}", {"tmux": room.socket, "pane": pane.id})
    other = tmux.open(["sh"], session="two")
    a = room.attach("two")
    for socket, session in ((None, "far"), (room.socket, "near")):
        told = {"session_id": session, "hook_event_name": "SessionStart", "cwd": "/w"}
        origin = {"nvim": str(editor.socket), "tmux": socket, "pane": socket and pane.id}
        room.spool.write({"t": time.time(), "hook": told, "origin": origin})
    assert str(editor.socket) in room.bellboard("goto", "far")
    assert editor.lua("return vim.g.jumped") == "far"
    assert room.shown() == {a.tty: other.id}
    room.bellboard("goto", "near")
    assert editor.lua("return vim.g.jumped") == "near"
    assert room.shown() == {a.tty: pane.id}
    editor.close()
    assert "its Neovim has exited" in room.bellboard("goto", "far", code=1)


@pytest.mark.parametrize("text", ["a b", "it's", 'say "$HOME"', "back\\slash", "#{x}", "~/x", ";"])
def test_an_argument_of_a_tmux_command_is_taken_literally(tmux: Server, text: str) -> None:
    """When tmux reads it from a file."""
    tmux.open(["sh"])
    file = tmux.home.file("quoted.conf", f"set -g @word {quoted(text)}")
    tmux.run("source-file", str(file))
    assert tmux.run("show-options", "-gv", "@word").rstrip("\n") == text
