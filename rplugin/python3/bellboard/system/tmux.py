"""tmux: list panes and clients, jump to a pane, capture it, set an option.

Every command names the server's socket and a target, because otherwise tmux uses whatever is
active; it is run without a shell, and with a short timeout.  The gate decides which servers we may
contact.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ..core.text import line, whole
from ..core.untrusted import decimal
from . import gate
from .failures import described
from .files import entries
from .programs import run

PATIENCE: Final = 1.0  # seconds; an answer takes 3 ms
DEAF: Final = 20.0  # seconds to leave a server alone that did not respond

KEYS: Final = frozenset({"Down", "Right", "Tab", "Enter"})  # that may be pressed in a pane
PANE: Final = re.compile(r"%[0-9]{1,9}", re.ASCII)
_PANES: Final = (
    "#{pane_id} #{pane_pid} #{pane_dead} #{session_id} #{window_id} #{pane_tty} #{pane_in_mode} "
    "#{pane_synchronized}"
)
#: What tmux does with the keys of a pane besides giving them to its program → in words.
MODE: Final = "is in copy mode, which would take the keys"
SHARED: Final = "shares its keys with other panes (synchronize-panes)"
#: Why a pane that was selected is not seen.
UNSEEN: Final = "selected, but no terminal is attached to that tmux server"
#: An option of a pane that a jump led to: the pane where you were before.
BACK: Final = "@bellboard-back"
_CLIENTS: Final = (
    "#{client_activity} #{client_control_mode} #{client_flags} #{session_id} #{pane_id} "
    f"#{{{BACK}}} #{{client_pid}} #{{client_tty}}|#{{client_name}}"
)


class Pane(NamedTuple):
    """A pane in one tmux session; a shared window is in several."""

    id: str
    pid: int
    dead: bool
    session: str  # its id
    window: str
    tty: str
    astray: str = ""  # why keys typed into it would not reach its program, or not it alone


class Client(NamedTuple):
    """A terminal attached to a tmux session."""

    name: str
    tty: str
    activity: int  # time of the last key press
    focused: bool  # if its terminal reports that
    session: str
    pane: str  # the one that it shows
    back: str  # where the jumps that led there began
    pid: int  # of the process that draws it


class Tmux:
    """A tmux server, by its socket. None as a result means that it did not respond."""

    def __init__(self, socket: str, patience: float = 0.0) -> None:
        self.socket = socket
        self.why = ""  # why the last command failed
        self.is_silent = False  # whether it did not respond to the last command in time
        self.is_gone = False  # whether the server no longer exists
        self._patience = patience  # seconds; 0: the usual time

    def panes(self) -> list[Pane] | None:
        """Return all panes, one of a shared window once for each session; [] without a server."""
        output = self.ask("list-panes", "-a", "-F", _PANES)
        return [] if self.is_gone else None if output is None else [*_panes(output)]

    def clients(self) -> list[Client] | None:
        """Return the attached terminals, last used first, without control clients."""
        output = self.ask("list-clients", "-F", _CLIENTS)
        if output is None:
            return [] if self.is_gone else None
        return sorted(_clients(output), key=lambda client: -client.activity)

    def client_at(self, pane: str) -> str:
        """Return the client that shows a pane, the last used one if there are several."""
        return next((c.name for c in self.clients() or () if c.pane == pane), "")

    def jump(self, pane: str, client: str = "") -> bool:
        """Show a pane on a client, by default the last used one; on failure set `why`.

        A client whose session contains that window too stays in its session.  An option of
        the pane stores where the client came from, for the key that goes back.
        """
        if not PANE.fullmatch(pane):
            self.why = f"not a pane: {line(pane, 40)}"
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
        select = ("select-window", "-t", window, ";", "select-pane", "-Z", "-t", pane)
        back = (asked.back or asked.pane) if asked and asked.pane != pane else pane
        note = (";", "set-option", "-p", "-t", pane, BACK, back) if back != pane else ()
        if self.ask(*switch, *select, *note) is None:
            return False
        self.why = "" if asked else UNSEEN
        return asked is not None

    def attaching(self, pane: str) -> list[str]:
        """Select a pane; return the command that attaches a terminal to it, or [] and set `why`.

        A window that several sessions share is shown in the first of them.
        """
        place = next((p for p in self.panes() or () if p.id == pane), None)
        if place is None:
            self.why = self.why or f"there is no pane {line(pane, 40)}"
            return []
        window = f"{place.session}:{place.window}"
        if self.ask("select-window", "-t", window, ";", "select-pane", "-Z", "-t", pane) is None:
            return []
        return gate.tmux(self.socket, "attach-session", "-t", place.session)

    def open(self, session: str, command: Sequence[str]) -> bool:
        """Run a command in a new window of a session, and show that."""
        words = ["sh", "-c", 'exec "$@"', "sh", *command]  # a single word would pass a shell
        return self.ask("new-window", "-t", f"{session}:", *map(argument, words)) is not None

    def capture(self, pane: str, most: int = 200) -> list[str]:
        """Return the contents of a pane as plain lines, without trailing empty ones."""
        if not PANE.fullmatch(pane):
            return []
        output = self.ask("capture-pane", "-p", "-t", pane) or ""
        rows = [_plain(row) for row in output.rstrip().split("\n")]
        return rows[-most:] if any(rows) else []

    def type(self, pane: str, text: str) -> bool:
        """Type a text of one line into a pane; it is not searched for names of keys."""
        if not PANE.fullmatch(pane) or not (text and text.isprintable()):
            self.why = f"cannot type into {line(pane, 40)}"
            return False
        return self.ask("send-keys", "-t", pane, "-l", "--", argument(text)) is not None

    def press(self, pane: str, key: str) -> bool:
        """Press one of the KEYS in a pane."""
        if not PANE.fullmatch(pane) or key not in KEYS:
            self.why = f"cannot press a key in {line(pane, 40)}"
            return False
        return self.ask("send-keys", "-t", pane, "--", key) is not None

    def say(self, client: str, text: str) -> bool:
        """Show a message in the status line of a client."""
        shown = literal(text).replace("%", "%%")
        return self.ask("display-message", "-c", client, "--", shown) is not None

    def set_option(self, name: str, value: str) -> bool:
        """Set a user option (`@name`) of the server to text that no format expands."""
        return self.ask(*assignment(name, value)) is not None

    def tell(self, *command: str) -> None:
        """Start a tmux command that may outlive this process; it is lost if the server is gone."""
        null = subprocess.DEVNULL
        with contextlib.suppress(OSError, ValueError):
            argv = gate.tmux(self.socket, *command)
            subprocess.Popen(argv, stdin=null, stdout=null, stderr=null, start_new_session=True)

    def ask(self, *command: str) -> str | None:
        """Run a tmux command and return its output; on failure return None and set `why`."""
        self.is_gone, self.is_silent, self.why = False, False, ""
        try:
            argv = gate.tmux(self.socket, *command)
        except FileNotFoundError:
            self.is_gone = bool(gate.program())
            none = f"no server running on {line(self.socket)}"
            self.why = none if self.is_gone else "tmux is not installed"
            return None
        except gate.Denied as denial:
            self.why = f"not connecting to {line(self.socket)}: {denial}"
            return None
        try:
            done = run(argv, self._patience or PATIENCE)
        except subprocess.TimeoutExpired:
            self.is_silent = True
            self.why = f"tmux does not respond: {self.socket}"
            return None
        except (OSError, ValueError) as error:  # not installed; a NUL in an argument
            self.why = f"cannot run tmux: {described(error)}"
            return None
        if done.code == 0:
            return done.output.decode("utf-8", "replace")
        self.why = line(done.errors.decode("utf-8", "replace")) or "tmux failed"
        self.is_gone = self.why.startswith(("no server running", "error connecting", "server ex"))
        return None


def rows_of(socket: str, pane: str, most: int) -> list[str]:
    """Return the last rows of a pane, or [] on a failure."""
    return Tmux(socket).capture(pane, most)


def titles_of(socket: str) -> dict[str, str]:
    """Return the title that a program gave each pane; nothing on a failure."""
    output = Tmux(socket).ask("list-panes", "-a", "-F", "#{pane_id} #{pane_title}") or ""
    rows = (row.partition(" ") for row in output.split("\n"))
    return {pane: _plain(title) for pane, _, title in rows if PANE.fullmatch(pane)}


def socket_in(environ: Mapping[str, str]) -> str:
    """Return the socket of the server that a program was started in, or ""."""
    return environ.get("TMUX", "").rsplit(",", 2)[0]  # socket,pid,session


def assignment(name: str, value: str) -> list[str]:
    """Return the command that sets a user option to text that no format expands."""
    if not re.fullmatch(r"@[a-z][a-z0-9_-]{0,60}", name, re.ASCII):
        raise ValueError(f"not a user option: {name!r}")
    return ["set-option", "-g", "--", name, argument(literal(value))]


def argument(text: str) -> str:
    """Return text as an argument of a tmux command, which a semicolon at its end would end."""
    return f"{text[:-1]}\\;" if text.endswith(";") else text


def literal(text: str) -> str:
    """Return text that is safe for tmux: one line, without the `#` that starts a format.

    Doubling the `#` is not enough: each further expansion (`E:`, `T:`) halves it again.
    """
    return line(whole(text), 1000).replace("#", "\N{FULLWIDTH NUMBER SIGN}")


def folder_of(environ: Mapping[str, str]) -> Path:
    """Return the folder of the sockets of this user's servers."""
    return Path(environ.get("TMUX_TMPDIR") or "/tmp", f"tmux-{os.getuid()}")


def sockets(environ: Mapping[str, str]) -> list[str]:
    """Return the sockets of this user's servers, including stale ones."""
    folder = folder_of(environ)
    try:
        found = [str(folder / name) for name, s in entries(folder) if stat.S_ISSOCK(s.st_mode)]
    except OSError:
        return []
    return sorted(found)


def _panes(output: str) -> Iterator[Pane]:
    for row in output.splitlines():
        fields = row.split(" ")
        pid = decimal(fields[1]) if len(fields) == 8 else None
        if pid is not None and PANE.fullmatch(fields[0]):
            astray = MODE if fields[6] > "0" else SHARED if fields[7] > "0" else ""
            session, window, tty = fields[3:6]
            yield Pane(fields[0], pid, fields[2] == "1", session, window, tty, astray)


def _clients(output: str) -> Iterator[Client]:
    for row in output.splitlines():
        fixed, _, name = row.partition("|")
        fields = fixed.split(" ")
        seen, pid = decimal(fields[0]), decimal(fields[-2]) if len(fields) == 8 else None
        if fields[1:2] != ["1"] and seen is not None and pid is not None:
            focused = "focused" in fields[2].split(",")
            session, pane, back = fields[3:6]
            yield Client(name, fields[7], seen, focused, session, pane, back, pid)


def _plain(row: str) -> str:
    return "".join(c if c.isprintable() else " " for c in row).rstrip()
