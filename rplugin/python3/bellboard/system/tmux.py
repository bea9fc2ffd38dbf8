"""tmux: which panes there are and who looks at them, a jump, a preview, an option.

Always with the server's socket and a target, for without them tmux takes whatever is active; a
list of arguments, never a shell; and with a short patience: a server that does not answer is left
alone for a while.  Which servers are asked at all, the gate decides.  tmux gives addresses and
views, never a status.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ..core.detail import line, whole
from ..core.lenient import decimal
from . import gate

PATIENCE: Final = 1.0  # seconds; an answer takes 3 ms
DEAF: Final = 20.0  # seconds in which a server that did not answer is not asked for news

PANE: Final = re.compile(r"%[0-9]{1,9}", re.ASCII)
_PANES: Final = "#{pane_id} #{pane_pid} #{pane_dead} #{session_id} #{window_id} #{pane_tty}"
_CLIENTS: Final = (
    "#{client_activity} #{client_control_mode} #{client_flags} #{session_id} #{pane_id} "
    "#{client_tty}|#{client_name}"
)


class Pane(NamedTuple):
    """One pane, as one session shows it: a window may be in several."""

    id: str
    pid: int
    dead: bool
    session: str  # its id
    window: str
    tty: str


class Client(NamedTuple):
    """One terminal that shows a session."""

    name: str
    tty: str
    activity: int  # when it was last typed into
    focused: bool  # as far as its terminal tells
    session: str
    pane: str  # that it shows


class Tmux:
    """One server, by its socket. What it answers with None could not be had just now."""

    def __init__(self, socket: str) -> None:
        self.socket = socket
        self.why = ""  # the last thing that went wrong
        self.is_gone = False  # there is no server any more

    def panes(self) -> list[Pane] | None:
        """All of them, a pane of a shared window once for each session; none: no server."""
        told = self.ask("list-panes", "-a", "-F", _PANES)
        return [] if self.is_gone else None if told is None else [*_panes(told)]

    def clients(self) -> list[Client] | None:
        """The terminals at it, the one that was typed into last first; control clients are none."""
        told = self.ask("list-clients", "-F", _CLIENTS)
        if told is None:
            return [] if self.is_gone else None
        return sorted(_clients(told), key=lambda client: -client.activity)

    def client_at(self, pane: str) -> str:
        """The client that shows this pane, the one used last if several do: who asks from there."""
        return next((c.name for c in self.clients() or () if c.pane == pane), "")

    def jump(self, pane: str, client: str = "") -> bool:
        """Show a pane on a client, by default on the one used last; False with `why` if not.

        A client whose session has that window too stays in its session.
        """
        if not PANE.fullmatch(pane):
            self.why = f"no pane: {line(pane, 40)}"
            return False
        places = [p for p in self.panes() or () if p.id == pane]
        if not places:
            self.why = self.why or f"there is no pane {pane}"
            return False
        clients = self.clients() or []
        asked = next((c for c in clients if not client or client in (c.name, c.tty)), None)
        if asked is None and client:
            self.why = f"there is no client {line(client, 80)}"
            return False
        sessions = [p.session for p in places]
        here = asked.session if asked and asked.session in sessions else sessions[0]
        window = f"{here}:{next(p.window for p in places if p.session == here)}"
        switch = ("switch-client", "-c", asked.name, "-t", here, ";") if asked else ()
        select = ("select-window", "-t", window, ";", "select-pane", "-t", pane)
        if self.ask(*switch, *select) is None:
            return False
        self.why = "" if asked else "it is selected, but no terminal shows that tmux"
        return asked is not None

    def capture(self, pane: str, most: int = 200) -> list[str]:
        """What a pane shows, as plain lines, the empty ones at its end left out."""
        if not PANE.fullmatch(pane):
            return []
        told = self.ask("capture-pane", "-p", "-t", pane) or ""
        rows = [_plain(row) for row in told.rstrip().split("\n")]
        return rows[-most:] if any(rows) else []

    def type(self, pane: str, text: str) -> bool:
        """Put letters into a pane as if typed there: no key names, no commands."""
        if not PANE.fullmatch(pane) or not (text.isascii() and text.isalnum()):
            self.why = f"cannot type into {line(pane, 40)}"
            return False
        return self.ask("send-keys", "-t", pane, "-l", "--", text) is not None

    def say(self, client: str, text: str) -> bool:
        """Show a text in the status line of a client, for as long as it shows its own messages."""
        shown = literal(text).replace("%", "%%")
        return self.ask("display-message", "-c", client, "--", shown) is not None

    def set_option(self, name: str, value: str) -> bool:
        """Set a user option (`@name`) of the server, as text that no format will ever expand."""
        return self.ask(*assignment(name, value)) is not None

    def ask(self, *command: str) -> str | None:
        """What a tmux command prints; None with `why` if it could not be done."""
        self.is_gone, self.why = False, ""
        try:
            argv = gate.tmux(self.socket, *command)
        except FileNotFoundError:
            self.is_gone = bool(gate.program())
            none = f"no server running on {line(self.socket)}"
            self.why = none if self.is_gone else "tmux cannot be asked: it is not installed"
            return None
        except gate.Refused as refusal:
            self.why = f"not connected to {line(self.socket)}: {refusal}"
            return None
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            self.why = f"tmux does not answer: {self.socket}"
            return None
        except (OSError, ValueError) as error:  # not installed; a NUL in an argument
            self.why = f"tmux cannot be asked: {error}"
            return None
        if done.returncode == 0:
            return done.stdout.decode("utf-8", "replace")
        self.why = line(done.stderr.decode("utf-8", "replace")) or "tmux failed"
        self.is_gone = self.why.startswith(("no server running", "error connecting", "server ex"))
        return None


def assignment(name: str, value: str) -> list[str]:
    """The command that sets a user option to a text that no format will ever expand."""
    if not re.fullmatch(r"@[a-z][a-z0-9_-]{0,60}", name, re.ASCII):
        raise ValueError(f"no user option: {name!r}")
    text = literal(value)
    # tmux takes an argument that ends in a semicolon for the end of a command.
    text = f"{text[:-1]}\\;" if text.endswith(";") else text
    return ["set-option", "-g", "--", name, text]


def literal(text: str) -> str:
    """Text as tmux may show it: one line, without the character that begins a format.

    Doubling it would do in a status line, but each expansion (`E:`, `T:`) halves it again.
    """
    return line(whole(text), 1000).replace("#", "\N{FULLWIDTH NUMBER SIGN}")


def sockets(environ: Mapping[str, str]) -> list[str]:
    """The sockets of this user's servers; some may be left over."""
    folder = Path(environ.get("TMUX_TMPDIR") or "/tmp", f"tmux-{os.getuid()}")
    try:
        with os.scandir(folder) as entries:
            found = [
                e.path for e in entries if stat.S_ISSOCK(e.stat(follow_symlinks=False).st_mode)
            ]
    except OSError:
        return []
    return sorted(found)


def _panes(told: str) -> Iterator[Pane]:
    for row in told.splitlines():
        fields = row.split(" ")
        pid = decimal(fields[1]) if len(fields) == 6 else None
        if pid is not None and PANE.fullmatch(fields[0]):
            yield Pane(fields[0], pid, fields[2] == "1", *fields[3:])


def _clients(told: str) -> Iterator[Client]:
    for row in told.splitlines():
        fixed, _, name = row.partition("|")
        fields = fixed.split(" ")
        seen = decimal(fields[0])
        if len(fields) == 6 and fields[1] != "1" and seen is not None:
            focused = "focused" in fields[2].split(",")
            yield Client(name, fields[5], seen, focused, fields[3], fields[4])


def _plain(row: str) -> str:
    return "".join(c if c.isprintable() else " " for c in row).rstrip()
