"""The status in tmux once nobody updates it, in a real server."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable

import pytest

from bellboard.cli.wiring import SHOWN, remove_wiring, show_status
from bellboard.hosting.tmux_status import OPTION
from bellboard.system.tmux import Tmux
from rig import warm
from rig.home import Home
from rig.host.hosting import made, opened
from rig.tmux import Server
from rig.waiting import PATIENCE, eventually, rest

TOLD = "!1 api: rm -rf build && make all 2m +2 *3"


def test_the_last_host_that_stops_removes_the_status(
    home: Home, tmux: Server, processes: Callable[..., int]
) -> None:
    """Else an old one would look current; while another host runs, it stays true."""
    tmux.open(["sh"], session="one")
    spool, pid = made(home.bellboard), processes()

    def shown() -> str:
        return tmux.run("show-options", "-gqv", OPTION).strip()

    hosts = [warm.Program(["-m", "bellboard", "serve"], env=home.env) for _ in range(2)]
    eventually(lambda: len(spool.hosts.alive()) == 2, "two hosts")
    apply = ["-m", "bellboard", "tmux", "--apply", "--socket", str(tmux.socket)]
    assert not warm.run(apply, env=home.env).returncode
    asks = {"session_id": "s", "cwd": "/srv", "hook_event_name": "UserPromptSubmit"}
    spool.write({"t": time.time(), "hook": asks, "origin": {"pid": pid}})
    eventually(lambda: shown() == "*1", "the status")
    for host, left in zip(hosts, ("*1", ""), strict=True):
        host.send_signal(signal.SIGTERM)
        host.wait(PATIENCE)
        rest(0.2)  # what a host does last, it does not wait for
        eventually(lambda text=left: shown() == text, "what is left")
    assert not warm.run(apply, env=home.env).returncode
    assert shown() == ""  # nobody would update it


@pytest.mark.parametrize(("columns", "shown"), [(80, "!1 api: rm -rf buil…"), (140, TOLD)])
def test_a_narrow_terminal_keeps_its_windows(
    home: Home, tmux: Server, columns: int, shown: str
) -> None:
    """tmux draws the right part of the status line first; the list of windows gets the rest."""
    tmux.open(["sh"], session="one")
    ours = Tmux(str(tmux.socket))
    assert ours.set_option(OPTION, TOLD)
    assert show_status(ours, SHOWN) == ""
    outside = Server(home, "outside.sock")
    try:
        inner = ["env", "-u", "TMUX", "tmux", "-u", "-S", str(tmux.socket), "attach"]
        line = outside.open(inner, columns=columns).shows(re.escape(f" {shown} "), 15)
        assert " 0:" in line
    finally:
        outside.close()
    remove_wiring(ours)
    assert OPTION not in tmux.run("show-options", "-g")


def test_tmux_keeps_the_status_true_without_a_host(
    home: Home, tmux: Server, processes: Callable[..., int]
) -> None:
    """The host may have been killed, or be suspended with its editor."""
    tmux.open(["sh"], session="one")
    spool = made(home.bellboard)
    apply = ["-m", "bellboard", "tmux", "--apply", "--status", "--socket", str(tmux.socket)]
    assert not warm.run(apply, env=home.env).returncode
    tmux.run("set-option", "-g", "status-interval", "1")
    outside = Server(home, "outside.sock")
    hosts: list[warm.Program] = []

    def begins(sid: str) -> int:
        pid = processes()
        asks = {"session_id": sid, "cwd": "/srv", "hook_event_name": "UserPromptSubmit"}
        spool.write({"t": time.time(), "hook": asks, "origin": {"pid": pid}})
        return pid

    try:
        inner = ["env", "-u", "TMUX", "tmux", "-u", "-S", str(tmux.socket), "attach"]
        bar = outside.open(inner, columns=140)
        begins("one")
        bar.shows(r" \*1 ", 30)
        for how in (signal.SIGKILL, signal.SIGSTOP):
            hosts.append(warm.Program(["-m", "bellboard", "serve"], env=home.env))
            eventually(lambda: hosts[-1].pid in spool.hosts.alive(), "a host")
            other = begins(f"two {how}")
            bar.shows(r" \*2 ", 30)
            with opened(home.bellboard) as shared, shared.store.transaction():
                hosts[-1].send_signal(how)  # not in mid-transaction: it would keep the lock
            os.kill(other, signal.SIGKILL)
            bar.shows(r" \*1 ", 30)
    finally:
        outside.close()
        for host in hosts:
            host.send_signal(signal.SIGKILL)
