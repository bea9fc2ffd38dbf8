"""The options, hooks and keys of bellboard in tmux: set beside those of others, and removed."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bellboard.cli.wiring import FIRST, HOOKS, SHOWN, quoted
from bellboard.hosting.tmux_status import OPTION
from rig import ROOT
from rig.home import Home
from rig.tmux import Server
from rig.waiting import eventually
from tmux.room import Room


def set_there(tmux: Server) -> str:
    """Return every hook, key and option of the server."""
    hooks = (tmux.run("show-hooks", "-g", name) for name in HOOKS)
    return "".join([*hooks, tmux.run("list-keys"), tmux.run("show-options", "-g")])


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
    shutil.copy(ROOT / "bellboard.tmux", clone)
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
        shutil.copy(ROOT / name, clone)
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


@pytest.mark.parametrize("text", ["a b", "it's", 'say "$HOME"', "back\\slash", "#{x}", "~/x", ";"])
def test_an_argument_of_a_tmux_command_is_taken_literally(tmux: Server, text: str) -> None:
    """When tmux reads it from a file."""
    tmux.open(["sh"])
    file = tmux.home.file("quoted.conf", f"set -g @word {quoted(text)}")
    tmux.run("source-file", str(file))
    assert tmux.run("show-options", "-gv", "@word").rstrip("\n") == text
