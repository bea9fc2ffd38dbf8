"""Machines that are reached with ssh: a real sshd, each with a home of its own.

`Machine(name)` is one on loopback, for which sshd is all that is needed. With `apart` it also has
its own processes and its own network, for which we must be root on Linux.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from bellboard.storage.machines import Commands, Machines, edit
from rig import home as homes
from rig.fetched.cache import Missing
from rig.home import Home
from rig.machines.apart import Apart, Here
from rig.tmux import Server
from rig.waiting import PATIENCE, eventually

PROGRAM: Final = Path(sys.executable).parent / "bellboard"
SEARCHED: Final = os.pathsep.join(("/usr/sbin", "/usr/local/sbin", os.defpath, "/usr/bin"))
#: As root, sshd needs a folder that its service usually makes.
SEPARATED: Final = Path("/run/sshd")


def program(name: str, package: str) -> str:
    """Return the path of a program of the system."""
    found = shutil.which(name, path=SEARCHED) or shutil.which(name)
    if found is None:
        raise Missing(f"{name} is missing; install {package}")
    return found


def install(home: Home) -> None:
    """Link bellboard as `bellboard path` does."""
    link = home.root / ".local/bin/bellboard"
    link.parent.mkdir(parents=True)
    link.symlink_to(PROGRAM)


def set_followed(board: Path, added: Commands) -> None:
    """Follow these machines and no others, as with `bellboard machine`."""
    edit(board, lambda known: Machines(added, known.nvim))


class Machine:
    """A machine, up until `close`: `ssh` is the command that reaches it."""

    def __init__(self, name: str, *, apart: bool = False, home: Home | None = None) -> None:
        self.sshd, self.client = program("sshd", "openssh-server"), program("ssh", "openssh-client")
        self.name = name
        self.home = home or homes.build()
        self.folder = self.home.root / "ssh"
        self.folder.mkdir(mode=0o700)
        self.place: Here | Apart = (Apart if apart else Here)(self.home)
        self._keys()
        self._settings()
        install(self.home)
        self.boot()

    @property
    def ssh(self) -> list[str]:
        """Return the command that reaches it, as a user would name it."""
        return [self.client, "-F", str(self.folder / "config"), self.name]

    @property
    def env(self) -> dict[str, str]:
        """Return the environment of a login there: its folders, and the PATH of the system."""
        return {key: value for key, value in self.home.env.items() if key not in ("PATH", "TERM")}

    def boot(self) -> None:
        """Start its sshd, and what a login needs."""
        if os.geteuid() == 0:
            SEPARATED.mkdir(mode=0o755, exist_ok=True)
        self.place.boot(self.sshd, "-D", "-e", "-f", str(self.folder / "sshd_config"))
        self.tmux = Server(self.home, within=self.place.within)
        eventually(self._greets, f"the sshd of {self.name}")

    def crash(self) -> None:
        """Kill everything that runs there at once, as a loss of power would."""
        self.place.crash()

    def cut(self) -> None:
        """Let nothing in or out; connections are not closed."""
        self.place.cut()

    def mend(self) -> None:
        """End the cut."""
        self.place.mend()

    def popen(self, *argv: str | Path, **how: Any) -> subprocess.Popen[Any]:
        """Start a program there, without a login; it has the environment of the home."""
        return subprocess.Popen([*self.place.within, *argv], env=self.home.env, **how)

    def run(self, *argv: str | Path) -> str:
        """Run a program there; return what it prints."""
        how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
        process = self.popen(*argv, stderr=subprocess.PIPE, **how)
        said, complained = process.communicate(timeout=PATIENCE)
        return str(said or complained)

    def bellboard(self, *args: str) -> str:
        """Run bellboard there."""
        return self.run(PROGRAM, *args)

    def reach(self, command: str) -> str:
        """Run a command line there over ssh; return what it prints."""
        done = subprocess.run(
            [*self.ssh, command], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        return done.stdout or done.stderr

    def close(self) -> None:
        """End everything that was started there, and remove its home."""
        self.tmux.close()
        self.place.close()
        homes.remove(self.home)

    def _keys(self) -> None:
        maker = program("ssh-keygen", "openssh-client")
        for name in ("host", "user"):
            path = str(self.folder / name)
            subprocess.run([maker, "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)

    def _settings(self) -> None:
        """Write the settings of sshd and ssh, which read nothing of this machine or its user."""
        here = self.folder
        given = " ".join(f'"{key}={value}"' for key, value in self.env.items())
        server = {
            "ListenAddress": self.place.address,
            "Port": self.place.port,
            "HostKey": here / "host",
            "AuthorizedKeysFile": here / "user.pub",
            "PidFile": "none",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "StrictModes": "no",  # /tmp is everybody's
            "PrintMotd": "no",
            "SetEnv": given,
        }
        client = {
            "HostName": self.place.address,
            "Port": self.place.port,
            "IdentityFile": here / "user",
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "UserKnownHostsFile": here / "known",
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
        }
        _write(here / "sshd_config", server)
        _write(here / "config", {"Host": self.name, **client})
        where = f"[{self.place.address}]:{self.place.port}"
        known = f"{self.place.address},{where} {(here / 'host.pub').read_text()}"
        (here / "known").write_text(known)

    def _greets(self) -> bool:
        with contextlib.suppress(OSError), socket.socket() as caller:
            caller.settimeout(1)
            caller.connect((self.place.address, self.place.port))
            return caller.recv(4) == b"SSH-"
        assert self.place.is_up, f"sshd has ended: {self.place.errors.read_text()}"
        return False


def _write(path: Path, settings: Mapping[str, object]) -> None:
    path.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))


class Container:
    """A container, made by bwrap: own processes and terminals, the files of this machine.

    `enter` is the command that runs something in it, as `docker exec -i` does.
    """

    name = "box"

    def __init__(self) -> None:
        bwrap = program("bwrap", "bubblewrap")
        self.home = homes.build()
        install(self.home)
        own = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--dev-bind", "/", "/")
        root = str(self.home.root)  # it may be in /dev/shm
        mounts = ("--proc", "/proc", "--dev", "/dev", "--bind", root, root)
        self.place = Apart(
            self.home, maker=(bwrap, *own, *mounts, "--die-with-parent", "--as-pid-1")
        )
        self.place.boot()
        self.tmux = Server(self.home, within=self.place.within)

    @property
    def enter(self) -> list[str]:
        exports = [f"{key}={value}" for key, value in self.home.env.items()]
        return [*self.place.within, "env", "-i", *exports]

    def run(self, *argv: str | Path) -> str:
        """Run a program in it; return what it prints."""
        how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        done = subprocess.run([*self.enter, *argv], timeout=PATIENCE, **how)
        return done.stdout or done.stderr

    def bellboard(self, *args: str) -> str:
        """Run bellboard in it."""
        return self.run(PROGRAM, *args)

    def close(self) -> None:
        self.tmux.close()
        self.place.close()
        homes.remove(self.home)


@contextlib.contextmanager
def machines(*names: str, apart: bool = False) -> Iterator[list[Machine]]:
    """Start machines of those names; end them and everything on them."""
    made: list[Machine] = []
    try:
        made.extend(Machine(name, apart=apart) for name in names)
        yield made
    finally:
        for machine in made:
            machine.close()
