"""The rig's machines: reached by ssh, apart where that is possible, and gone at the end."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import psutil
import pytest

from rig.apart import unable
from rig.machines import Container, Machine, machines
from rig.reaper import lives
from rig.waiting import eventually

pytestmark = pytest.mark.files


@pytest.fixture
def namespaces() -> None:
    """Skip the test where no namespaces can be made."""
    if why := unable():
        pytest.skip(why)


@pytest.fixture(params=["here", "apart"])
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    if apart := request.param == "apart":
        request.getfixturevalue("namespaces")
    with machines("dev", apart=apart) as (made,):
        yield made


def test_a_login_finds_a_home_of_its_own(machine: Machine) -> None:
    """With bellboard where `bellboard path` puts it."""
    home = machine.home
    said = machine.reach("echo $HOME $BELLBOARD_HOME; ~/.local/bin/bellboard --version").split()
    assert said[:3] == [str(home.root), str(home.bellboard), "bellboard"], said


def test_a_crash_ends_everything_and_a_boot_brings_it_back(machine: Machine) -> None:
    """A crash ends remains of a login, too; a cut keeps everything and lets nothing through."""
    machine.tmux.open(["sleep", "611"])
    machine.reach("setsid sleep 612 >/dev/null 2>&1 &")
    eventually(lambda: sleeping(machine) == {"611", "612"}, "two sleepers")
    machine.crash()
    assert sleeping(machine) == set()
    assert "refused" in machine.reach("echo here")
    machine.boot()
    assert machine.reach("echo here") == "here\n"
    machine.cut()
    assert not reached(machine)
    machine.mend()
    eventually(lambda: reached(machine), "an answer")


@pytest.mark.usefixtures("namespaces")
def test_a_container_has_its_own_processes_and_terminals() -> None:
    """The files of a container are ours."""
    container = Container()
    process = psutil.Process(container.place.first)
    try:
        first, own = container.run(
            "sh", "-c", "tr '\\0' ' ' </proc/1/cmdline; echo; echo $$"
        ).split("\n")[:2]
        assert "init" in first and int(own) < 20  # counted from one in there
        pane = container.tmux.open(["sh"])
        assert pane.tty == "/dev/pts/0"
        (container.home.project / "here").touch()
        assert "here" in container.run("ls", container.home.project)
    finally:
        container.close()
    assert not lives(process)


def sleeping(machine: Machine) -> set[str]:
    """Return how long the sleepers of a machine sleep, wherever they are seen from."""
    home, found = str(machine.home.root), set()
    for process in psutil.process_iter(["cmdline", "environ"]):
        given = process.info["environ"] or {}
        if given.get("HOME") == home and (process.info["cmdline"] or [""])[0] == "sleep":
            found.add(process.info["cmdline"][1])
    return found


def reached(machine: Machine) -> bool:
    argv = [*machine.ssh[:-1], "-o", "ConnectTimeout=1", machine.ssh[-1], "true"]
    return subprocess.run(argv, capture_output=True).returncode == 0
