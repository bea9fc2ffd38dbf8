"""A machine that is followed over a real ssh; `make live ONLY=machines` has more, with CLIs."""

from __future__ import annotations

import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from bellboard.storage.spool import Spool
from rig.home import Home
from rig.host.hosting import RecordedHost, made, opened, put
from rig.machines.ssh import Machine, set_followed
from rig.reaper import family
from rig.waiting import eventually

S1 = "dev/claude/s1"


@pytest.fixture
def dev(home: Home) -> Iterator[Machine]:
    """A machine called dev, which this home follows."""
    machine = Machine("dev")
    made(home.bellboard)
    set_followed(home.bellboard, {"dev": machine.ssh})
    yield machine
    machine.close()


def test_a_machine_is_followed_over_ssh(
    dev: Machine, home: Home, start: Callable[..., RecordedHost]
) -> None:
    """No change is announced twice after a killed link or a restart."""
    spool = made(dev.home.bellboard)
    begins(spool, "one")
    host = start()
    shows(host, "working")
    put(spool, "Stop", "s1", prompt_id="one")
    shows(host, "completed")
    for process in family([host.pid]):
        if process.name() == "ssh":
            process.send_signal(signal.SIGKILL)
    begins(spool, "two")
    shows(host, "working")
    dev.crash()
    eventually(lambda: host.is_stale(S1), "a row that is stale")
    dev.boot()
    put(spool, "Stop", "s1", prompt_id="two")
    shows(host, "completed")

    def is_told() -> bool:  # what is shown may be ahead of the commit
        with opened(home.bellboard) as shared:
            told = [change.after for change in shared.store.history()]
        assert told == ["working", "completed", "working", "completed"]
        return True

    eventually(is_told)


def test_what_ssh_does_for_a_terminal_it_does_not_do_for_a_link(
    dev: Machine, home: Home, start: Callable[..., RecordedHost]
) -> None:
    """A command, and forwarded ports, which a terminal of the user has already."""
    spool = made(dev.home.bellboard)
    begins(spool, "one")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (dev.folder / "config").open("a") as config:
            config.write(f"LocalForward 127.0.0.1:{port} 127.0.0.1:1\n")
            config.write("ExitOnForwardFailure yes\nRequestTTY force\nRemoteCommand false\n")
        shows(start(), "working")


@pytest.mark.parametrize("way", ["env", "tailscale", "gcloud"])
def test_each_way_to_ssh_reaches_a_machine(dev: Machine, home: Home, way: str) -> None:
    """The programs pass on their words as the real ones do; ssh and what runs there are real."""
    made(dev.home.bellboard)
    config = shlex.join(dev.ssh[:-1])
    programs = {
        "tailscale": f'shift; host=$1; shift; exec {config} -oUpdateHostKeys=no "$host" "$@"',
        "gcloud": (
            "host=$3; shift 3; for word; do shift; case $word in --command=*) run=${word#*=};;"
            ' --quiet|--) ;; *) set -- "$@" "$word";; esac; done;'
            f' exec {config} -T "$host" "$@" -- "$run"'
        ),
    }
    for name, body in programs.items():
        (home.bin / name).write_text(f"#!/bin/sh\n{body}\n")
        (home.bin / name).chmod(0o755)
    words = {
        "env": ["env", "A=b", *dev.ssh],
        "tailscale": ["tailscale", "ssh", dev.ssh[-1]],
        "gcloud": ["gcloud", "compute", "ssh", dev.ssh[-1]],
    }[way]
    argv = [sys.executable, "-m", "bellboard", "machine", "test", "dev", "--", *words]
    done = subprocess.run(argv, env=home.env, capture_output=True, text=True, timeout=60)
    assert "dev can be followed" in done.stdout, done.stderr
    assert "takes no requests" not in done.stdout


def begins(spool: Spool, prompt: str) -> None:
    put(spool, "UserPromptSubmit", "s1", prompt=prompt, prompt_id=prompt)


def shows(host: RecordedHost, status: str) -> None:
    host.shows({S1: status})
    eventually(lambda: not host.is_stale(S1), "a row that is not stale")
