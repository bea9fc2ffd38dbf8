"""A real tmux server for one test, on its own socket and without configuration."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rig import reaper
from rig.fetched.cache import Missing
from rig.home import Home
from rig.waiting import PATIENCE, eventually, matching


@dataclass(frozen=True)
class Pane:
    """A pane, by its id."""

    server: Server
    id: str

    def ask(self, format: str) -> str:
        """Expand a tmux format for this pane: ask("#{pane_tty}")."""
        return self.server.run("display-message", "-p", "-t", self.id, format).rstrip("\n")

    @property
    def pid(self) -> int:
        return int(self.ask("#{pane_pid}"))

    @property
    def tty(self) -> str:
        return self.ask("#{pane_tty}")

    @property
    def dead(self) -> bool:
        """Return whether its program has ended; the pane stays, so that it can be read."""
        return self.ask("#{pane_dead}") == "1"

    def text(self) -> str:
        """Return what the pane shows."""
        return self.server.run("capture-pane", "-p", "-t", self.id)

    def type(self, text: str) -> None:
        """Type a text; it is not searched for key names."""
        self.server.run("send-keys", "-l", "-t", self.id, "--", text)

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names: press("Escape"), press("C-c")."""
        self.server.run("send-keys", "-t", self.id, "--", *keys)

    def close(self) -> None:
        """Close it, whatever runs in it."""
        self.server.run("kill-pane", "-t", self.id)

    def shows(self, pattern: str, within: float = PATIENCE) -> str:
        """Wait until the screen matches; return its text."""
        return matching(self.text, pattern, within)


class Server:
    """A tmux server on a socket of that name; `within` starts a command where it is to run."""

    def __init__(self, home: Home, name: str = "tmux.sock", *, within: Sequence[str] = ()) -> None:
        found = shutil.which("tmux", path=home.env["PATH"])
        if found is None:
            raise Missing("tmux is missing; install tmux")
        self.home = home
        self.socket = home.root / name
        self._terminals: list[subprocess.Popen[bytes]] = []
        self._is_apart = bool(within)
        self._command = (*within, found, "-S", str(self.socket), "-f", "/dev/null")

    def run(self, *arguments: str) -> str:
        """Run a tmux command; return its output."""
        done = subprocess.run(
            [*self._command, *arguments],
            env=self.home.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"tmux {shlex.join(arguments)}: {done.stderr.strip()}"
        return done.stdout

    def open(
        self,
        argv: Sequence[str | Path] = ("sh",),
        *,
        session: str = "test",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        columns: int = 100,
        lines: int = 30,
    ) -> Pane:
        """Open a window that runs argv as the pane's process, in the home's environment."""
        exports = [f"{key}={value}" for key, value in (env or {}).items()]
        command = "exec " + shlex.join(["env", *exports, *map(str, argv)])
        if self.has(session):
            where = ["new-window", "-d", "-t", f"={session}:"]
        else:
            where = ["new-session", "-d", "-s", session, "-x", str(columns), "-y", str(lines)]
        kept = ["set-option", "-g", "remain-on-exit", "on", ";"]
        kept += ["set-option", "-g", "default-terminal", "tmux-256color", ";"]
        place = ("-P", "-F", "#{pane_id}", "-c", str(cwd or self.home.project), command)
        start = ("start-server", ";", *kept) if not self.pid else ()
        return Pane(self, self.run(*start, *where, *place).strip())

    def attach(self, session: str) -> str:
        """Attach a new terminal, made by `script`, to a session; return its tty."""
        before = set(self.run("list-clients", "-F", "#{client_tty}").split())
        command = shlex.join([*self._command, "attach-session", "-t", f"={session}"])
        how: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        # Its input stays open: at end of file, `script` would end the client.
        argv = ["script", "-qfec", command, "/dev/null"]
        started = subprocess.Popen(argv, env=self.home.env, stdin=subprocess.PIPE, **how)
        self._terminals.append(started)
        return eventually(
            lambda: set(self.run("list-clients", "-F", "#{client_tty}").split()) - before
        ).pop()

    def has(self, session: str) -> bool:
        """Return whether that session exists."""
        return bool(self.pid) and session in self.run(
            "list-sessions", "-F", "#{session_name}"
        ).split("\n")

    def shown(self) -> str:
        """Return every pane, for the report of a failure."""
        panes = self.run("list-panes", "-a", "-F", "#{pane_id}").split() if self.pid else []
        return "\n".join(f"{pane}:\n{Pane(self, pane).text()}" for pane in panes)

    @property
    def pid(self) -> int:
        """Return the server's process, or 0; where it runs apart, its number there."""
        done = subprocess.run(
            [*self._command, "display-message", "-p", "#{pid}"],
            env=self.home.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return int(done.stdout) if done.returncode == 0 else 0

    def close(self) -> None:
        """Stop the server and everything started in it, even what survives a hang-up.

        One that runs apart ends with its machine.
        """
        for terminal in self._terminals:
            terminal.kill()
            terminal.communicate()
        if not self._is_apart and (pid := self.pid):
            reaper.end(reaper.family([pid]))
