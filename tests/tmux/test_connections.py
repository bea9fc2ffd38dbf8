"""The terminal here of a session on another machine: a real sshd, and tmux on both sides."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from bellboard.core import connection
from bellboard.core.feed import Ask
from bellboard.core.session import Session
from bellboard.hosting.asked import RequestReader
from bellboard.hosting.connection import Connection
from bellboard.hosting.feed_requests import FeedRequests
from bellboard.system import ssh
from bellboard.system.places import Place
from bellboard.system.remotely import way
from rig.machines.ssh import Machine, machines
from rig.tmux import Pane, Server
from rig.waiting import eventually


@pytest.fixture
def dev() -> Iterator[Machine]:
    with machines("dev") as (made,):
        yield made


def peer_of_a_pair() -> bool:
    """Return whether the kernel says which of two sockets are connected."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        names = [f"socket:[{os.fstat(x.fileno()).st_ino}]" for x in (ours, theirs)]
        return ssh.peer_of(names[0]) == names[1]


def login(here: Server, dev: Machine, *options: str, session: str = "here") -> Pane:
    """Open a terminal here that shows tmux over there."""
    attach = shlex.join(["tmux", "-S", str(dev.tmux.socket), "attach-session", "-t", "work"])
    return here.open([*dev.ssh, "-t", *options, attach], session=session, env={"TERM": "tmux"})


def goto(dev: Machine, where: Pane | str, clients: list[str]) -> dict[str, Any]:
    """Let the other machine show a session on the terminal of one of these connections."""
    s = Session("s", turn="working", tty="/dev/pts/4000")
    if isinstance(where, str):
        s.ssh = where
    else:
        s.tmux, s.pane, s.tty = str(where.server.socket), where.id, where.tty
    connection = Connection(dev.home.bellboard, {})
    reader = RequestReader(connection.spool, {"s": s}.get, lambda sid: [], dev.home.env)
    asked = Ask(1, "goto", {"session_id": "s", "clients": clients})
    return asyncio.run(FeedRequests(connection, reader, lambda line: "").do(asked))


def test_the_terminal_that_shows_the_machine_is_found_and_used(dev: Machine, tmux: Server) -> None:
    """The terminal that comes in over our connection is used; another one there stays as it is."""
    wanted = dev.tmux.open(["sleep", "600"], session="work")
    current = dev.tmux.open(["sleep", "600"], session="work")
    dev.tmux.run("select-window", "-t", current.id)
    dev.tmux.run("new-session", "-d", "-t", "work", "-s", "twin")
    dev.tmux.run("select-window", "-t", "twin:1")
    other = dev.tmux.attach("twin")
    assert goto(dev, wanted, []) == {"ok": True, "client": ""}
    terminal = login(tmux, dev)

    def both() -> bool:
        return len(dev.tmux.run("list-clients", "-F", "x").split()) == 2

    eventually(both, "the terminal over there")
    own = ssh.own()
    (end,) = (end for end, pid in own.items() if pid == terminal.pid)
    assert goto(dev, wanted, ["10.0.0.1 22", *own]) == {"ok": True, "client": end}
    shown = dict(
        row.split()
        for row in dev.tmux.run("list-clients", "-F", "#{client_tty} #{pane_id}").splitlines()
    )
    assert shown.pop(other) == current.id
    assert [*shown.values()] == [wanted.id]
    place = ssh.terminal_at(own[end])
    assert place == Place(terminal.tty, str(tmux.socket), terminal.id)
    assert goto(dev, wanted, ["10.0.0.1 22"]) == {"ok": True, "client": ""}


def test_a_session_in_a_plain_terminal_is_where_its_connection_says(
    dev: Machine, tmux: Server
) -> None:
    """A plain terminal has no pane to select."""
    terminal = tmux.open([*dev.ssh, "-t", "echo $SSH_CONNECTION; sleep 600"], env={"TERM": "tmux"})
    said = terminal.shows(r"127\.0\.0\.1 \d+ 127\.0\.0\.1 \d+").split("\n")[0].strip()
    own = ssh.own()
    reply = goto(dev, said, [*own])
    assert own[reply["client"]] == terminal.pid


def test_the_connection_behind_sshpass_is_its_own(dev: Machine, tmux: Server) -> None:
    """It runs ssh in a terminal of its own, into which it types the password."""
    spawn = [sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])"]
    pane = tmux.open([*spawn, *dev.ssh, "-t", "echo $SSH_CONNECTION; sleep 600"])
    said = pane.shows(r"127\.0\.0\.1 \d+ 127\.0\.0\.1 \d+").split("\n")[0].strip()
    assert ssh.connection_of(pane.pid) == " ".join(said.split()[:2])


def test_a_shared_connection_shows_no_terminal(dev: Machine, tmux: Server) -> None:
    """Through a control socket, several terminals come from one port: none of them is proven."""
    dev.tmux.open(["sleep", "600"], session="work")
    control = ["-o", f"ControlPath={dev.folder}/control"]
    first = login(tmux, dev, *control, "-o", "ControlMaster=yes")

    eventually((dev.folder / "control").exists, "the control socket")
    assert first.pid in ssh.own().values()
    second = login(tmux, dev, *control)
    eventually(lambda: len(dev.tmux.run("list-clients", "-F", "x").split()) == 2)
    assert not {first.pid, second.pid} & {*ssh.own().values()}


def test_a_connection_that_is_kept_shows_its_only_terminal(dev: Machine, tmux: Server) -> None:
    """With ControlPersist another process has it; a second terminal makes it a shared one."""
    if not peer_of_a_pair():
        pytest.skip("this kernel does not say which sockets are connected (sock_diag)")
    dev.tmux.open(["sleep", "600"], session="work")
    control = ["-o", f"ControlPath={dev.folder}/control"]
    options = [*control, "-o", "ControlMaster=auto", "-o", "ControlPersist=60"]
    try:
        first = login(tmux, dev, *options)
        eventually(lambda: first.pid in ssh.own().values(), "the only terminal")
        eventually(lambda: len(dev.tmux.run("list-clients", "-F", "x").split()) == 1)
        assert first.pid in ssh.own().values()
        second = login(tmux, dev, *options)
        eventually(lambda: len(dev.tmux.run("list-clients", "-F", "x").split()) == 2)
        assert not {first.pid, second.pid} & {*ssh.own().values()}
        first.close()
        eventually(lambda: second.pid in ssh.own().values(), "the one that is left")
    finally:
        subprocess.run([*dev.ssh, *control, "-O", "exit"], check=False, capture_output=True)


@pytest.mark.parametrize(
    ("told", "end"),
    [
        ("192.0.2.7 50112 192.0.2.9 22", "192.0.2.7 50112"),
        ("::ffff:192.0.2.7 50112 ::ffff:192.0.2.9 22", "192.0.2.7 50112"),
        ("fe80::1%eth0 50112 fe80::2%eth0 22", "fe80::1 50112"),
        *((odd, "") for odd in ("", "x", "1.2.3.4 0 1.2.3.4 22", "a b c d", "1.2.3.4 99999 x 22")),
    ],
)
def test_an_end_has_one_form_on_both_sides(told: str, end: str) -> None:
    assert connection.end_of(told) == end


@pytest.mark.parametrize(
    ("command", "there"),
    [
        ("ssh dev", "ssh dev"),
        ("/usr/bin/ssh -p 2222 -A -J gate u@dev claude -p x", "ssh u@dev"),
        ("sshpass -e ssh dev", "ssh dev"),
        ("env A=b sudo ssh -tt dev", "ssh dev"),
        ("tailscale ssh dev", "tailscale dev"),
        ("docker exec -it -e A=b -w /src box sh", "docker box"),
        ("docker compose -f x.yml exec web sh", "docker web"),
        ("kubectl -n ns exec -it pod -c main -- sh", "kubectl pod"),
        ("wsl.exe -d Debian", "wsl.exe Debian"),
        ("bwrap --unshare-pid --bind / / claude", "bwrap"),
        ("claude ssh dev", ""),
        ("make ssh", ""),
        ("", ""),
    ],
)
def test_a_command_says_where_it_leads(command: str, there: str) -> None:
    assert way(command.split()) == there
