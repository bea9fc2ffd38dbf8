"""`bellboard goto --attach`: a terminal becomes the tmux client that shows exactly that pane.

And `claude attach`: a terminal becomes the one that shows a background session.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

from bellboard.core.session import is_listed
from bellboard.storage.spool import Spool
from files.test_lookout import SID, MinimalHost, record, run
from rig import ROOT, warm
from rig.home import Home
from rig.tmux import Pane, Server
from rig.waiting import eventually

PYTHON = {"PYTHONPATH": str(ROOT / "rplugin/python3")}


def session(home: Home, sid: str, **origin: Any) -> None:
    """Report a session that has that terminal."""
    spool = Spool(home.bellboard)
    spool.prepare()
    hook = {"session_id": sid, "hook_event_name": "UserPromptSubmit", "prompt": "do it"}
    spool.write({"t": time.time(), "hook": hook, "origin": origin})


def in_pane(home: Home, sid: str, pane: Pane) -> None:
    session(home, sid, tty=pane.tty, tmux=str(pane.server.socket), pane=pane.id)


def attach(terminal: Server, sid: str, **env: str) -> Pane:
    """Run the command in a terminal, and keep its exit code on the screen."""
    command = f'"{sys.executable}" -m bellboard goto {sid} --attach; echo "exit code $?"; sleep 600'
    return terminal.open(["sh", "-c", command], env=PYTHON | env, session="terminal", columns=90)


def client_of(server: Server) -> str:
    """Return which pane the only client shows, once there is one."""
    shown = eventually(lambda: server.run("list-clients", "-F", "#{pane_id}").split())
    assert len(shown) == 1
    return str(shown[0])


def test_a_terminal_attaches_to_exactly_that_pane(home: Home, tmux: Server) -> None:
    """The current window and pane do not matter, nor an unknown type of terminal."""
    there = Server(home, "there.sock")
    wanted = there.open(["sh", "-c", "echo the wanted one; sleep 600"], session="work")
    there.open(["sh"], session="work")
    there.open(["sh"], session="other")
    there.run("split-window", "-t", wanted.id, "sleep 600")
    there.run("select-window", "-t", "work:1")
    in_pane(home, "s", wanted)
    try:
        terminal = attach(tmux, "s", TERM="xterm-far-away")
        terminal.shows("the wanted one")
        assert client_of(there) == wanted.id
        eventually(lambda: there.run("list-clients", "-F", "#{session_name}").split() == ["work"])
        there.run("detach-client", "-s", "work")
        terminal.shows("exit code 0")
        assert there.run("list-clients").split() == []
    finally:
        there.close()


def test_in_the_same_tmux_its_client_shows_the_pane(home: Home, tmux: Server) -> None:
    """A client inside itself would be endless."""
    wanted = tmux.open(["sleep", "600"], session="work")
    in_pane(home, "s", wanted)
    tmux.open(["sleep", "600"], session="terminal")
    tmux.attach("terminal")
    attach(tmux, "s").shows("exit code 0")
    eventually(lambda: tmux.run("list-clients", "-F", "#{pane_id}").split() == [wanted.id])


def test_a_failed_attach_says_what_can_be_done(home: Home, tmux: Server) -> None:
    """A plain terminal, a pane that is gone, no terminal of our own."""
    there = Server(home, "there.sock")
    there.open(["sleep", "600"])
    session(home, "plain", tty="/dev/pts/4000")
    session(home, "gone", tmux=str(there.socket), pane="%4000")
    try:
        said = attach(tmux, "plain").shows("exit code 1")
        for words in ("it runs on /dev/pts/4000, in no tmux pane", "bellboard answer plain"):
            assert words in " ".join(said.split())
        attach(tmux, "gone").shows("there is no pane %4000\nexit code 1")
    finally:
        there.close()
    done = warm.run(["-m", "bellboard", "goto", "plain", "--attach"], env=home.env | PYTHON)
    assert done.returncode == 1
    assert "needs a terminal" in done.stderr


def test_a_jump_that_nobody_sees_says_how_to_attach(home: Home, tmux: Server) -> None:
    """From a terminal outside tmux, such as over ssh."""
    in_pane(home, "s one", tmux.open(["sleep", "600"], session="work"))
    done = warm.run(["-m", "bellboard", "goto", "s one"], env=home.env | PYTHON)
    assert done.returncode == 1
    assert "no terminal is attached" in done.stderr
    assert done.stderr.endswith("in this terminal: bellboard goto 's one' --attach\n")


def test_a_background_session_is_in_the_terminal_that_shows_it(home: Home, tmux: Server) -> None:
    """It is there from `claude attach` to its end, even if the pane is gone."""
    (home.project / "attach").write_text("sleep 60\n")
    job = subprocess.Popen(["sleep", "60"])
    attach = f"exec -a claude bash attach {SID[:8]}"

    async def test(desk: MinimalHost) -> None:
        path = record(home, job.pid, kind="bg", status="idle", statusUpdatedAt=1_700_000_000_000)
        desk.observer.changed({str(path)})
        await desk.settle()
        s = desk.board.sessions[SID]
        assert (s.job, s.tty) == (True, "")
        pane = tmux.open(["bash", "-c", attach], session="a", cwd=home.project)
        journal = home.claude / "daemon" / "attach-journal" / "1.json"  # it writes one
        journal.parent.mkdir(parents=True)
        journal.write_text("{}")
        await desk.until(lambda: desk.board.sessions[SID].tty)
        s = desk.board.sessions[SID]
        assert (s.tty, s.tmux, s.pane) == (pane.tty, str(tmux.socket), pane.id)
        os.kill(pane.pid, signal.SIGKILL)
        await desk.until(lambda: not desk.board.sessions[SID].tty)
        s = desk.board.sessions[SID]
        assert (s.tmux, s.pane, is_listed(s)) == ("", "", True)

    try:
        run(home, test)
    finally:
        job.kill()
        job.wait()
