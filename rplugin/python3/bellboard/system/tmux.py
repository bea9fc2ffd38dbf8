"""tmux: list panes and clients, jump to a pane and remember from where, capture it, set an option.

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
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..core.text import line, whole
from ..core.untrusted import decimal
from . import gate
from .failures import described
from .files import entries
from .programs import run

PATIENCE: Final = 1.0  # seconds; an answer takes 3 ms
START: Final = 10.0  # seconds for a server to start, which reads the user's configuration
COLUMNS, ROWS = 160, 48  # of a session that no terminal shows; what is shown there is read
DEAF: Final = 20.0  # seconds to leave a server alone that did not respond

#: Keys that may be pressed in a pane.
KEYS: Final = frozenset({"Down", "Right", "Tab", "Enter", "Escape", "Space"})
PANE: Final = re.compile(r"%[0-9]{1,9}", re.ASCII)
_PANES: Final = (
    "#{pane_id} #{pane_pid} #{pane_dead} #{session_id} #{window_id} #{pane_tty} #{pane_in_mode} "
    "#{pane_synchronized}|#{session_name}:#{window_index}.#{pane_index} "
    "#{?automatic-rename,,#{window_name}}"
)
#: The name of a pane, and that of its window; there is no colon in that of a session.
_NAMED: Final = re.compile(r"([^:]*:\d+\.\d+) (.*)", re.ASCII)
#: What tmux does with the keys of a pane besides giving them to its program → in words.
MODE: Final = "is in copy mode, which would take the keys"
SHARED: Final = "shares its keys with other panes (synchronize-panes)"
#: Why a pane that was selected is not seen.
UNSEEN: Final = "selected, but no terminal is attached to that tmux server"
#: An option that keeps, for the process of each client, in which pane its jumps began, and to which
#: window the last one led, such as ` 4711=%0=@3 `.
BACK: Final = "@bellboard-back"
_ODD_IN_QUOTES: Final = re.compile(r"[\\']")
_BEGAN: Final = re.compile(r"(?<= )(\d+)=(%\d+)=(@\d+)(?= )", re.ASCII)
_CLIENTS: Final = (
    "#{client_activity} #{client_control_mode} #{client_flags} #{session_id} #{window_id} "
    "#{pane_id} #{client_pid} #{client_tty}|#{client_name}"
)


#: Runs a line in the user's own shell, interactively: it finds the same programs there, can be
#: suspended, and leaves a shell behind, as if it had been typed there. (Of other shells nobody
#: knows whether they can do that.)
IN_SHELL: Final = """\
case ${SHELL##*/} in
bash | dash | fish | ksh | mksh | sh | zsh) exec "$SHELL" -ic "$0" ;;
esac
SHELL=${SHELL:-/bin/sh}
eval "$0"
"""


class Pane(NamedTuple):
    """A pane in one tmux session; a shared window is in several."""

    id: str
    pid: int
    dead: bool
    session: str  # its id
    window: str
    tty: str
    name: str = ""  # for people: `work:2.1`
    astray: str = ""  # why keys typed into it would not reach its program, or not it alone
    window_name: str = ""  # if somebody gave its window one

    @property
    def session_name(self) -> str:
        return self.name.rpartition(":")[0]


class Client(NamedTuple):
    """A terminal attached to a tmux session."""

    name: str
    tty: str
    activity: int  # time of the last key press
    focused: bool  # if its terminal reports that
    session: str
    window: str
    pane: str  # the one that it shows
    pid: int  # of the process that draws it


class Landing(NamedTuple):
    """A pane that was selected, and the client that shows it now, as that was before."""

    pane: Pane
    client: Client | None  # none if no terminal is attached to the server


class NewPane(NamedTuple):
    """A pane that was opened, the process that runs in it, and its terminal."""

    pane: str
    pid: int
    tty: str


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

    def jump(self, pane: str, tty: str = "", client: str = "", at: str = "") -> Landing | None:
        """Show a pane on a client; on failure, return None and set `why`.

        With `tty`, only the pane of that terminal counts: a server that was started again gives
        numbers again.  The client is the one with that name, else one that shows the pane `at`,
        else one that has the focus, else the last used one.  If its session contains that window
        too, it stays in its session.  `BACK` keeps where it came from, for the key that goes back.
        """
        if not PANE.fullmatch(pane):
            self.why = f"not a pane: {line(pane, 40)}"
            return None
        output = self.ask(*_LOOK)
        if output is None:
            return None
        if not (places := self._places(output, pane, tty)):
            return None
        clients = sorted(_clients(output), key=lambda c: (c.pane == at, c.focused, c.activity))
        named = [c for c in clients if not client or client in (c.name, c.tty)]
        if client and not named:
            self.why = f"there is no client {line(client, 80)}"
            return None
        asking = named[-1] if named else None
        here = next((p for p in places if asking and p.session == asking.session), places[0])
        switch = ("switch-client", "-c", asking.name, "-t", here.session, ";") if asking else ()
        window = f"{here.session}:{here.window}"
        select = ("select-window", "-t", window, ";", "select-pane", "-Z", "-t", here.id)
        note = _note(output, clients, asking, here) if asking else ()
        if self.ask(*switch, *select, *note) is None:
            return None
        return Landing(here, asking)

    def own(self, pane: str, tty: str) -> Pane | None:
        """Return a pane if it still has that terminal, as in `jump`."""
        output = self.ask("list-panes", "-a", "-F", _PANES)
        places = self._places(output, pane, tty) if output is not None else []
        return places[0] if places else None

    def _places(self, output: str, pane: str, tty: str) -> list[Pane]:
        """Return the pane as it is in each session; set `why` if it is gone."""
        found = [
            p for p in _panes(output) if (p.tty == tty and not p.dead if tty else p.id == pane)
        ]
        self.why = self.why if found else f"its tmux pane {line(pane, 40)} is gone"
        return found

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

    def open(
        self, session: str, command: Sequence[str], name: str = "", is_shown: bool = True
    ) -> NewPane | None:
        """Run a command in a new window of a session."""
        where = ("-t", f"{session}:", *(() if is_shown else ("-d",)))
        return _opened(self.ask("new-window", *where, *_window(command, name)))

    def begin(
        self,
        session: str,
        command: Sequence[str],
        name: str,
        environ: Mapping[str, str],
        directory: str | None = None,
    ) -> NewPane | None:
        """Run a command in a new session that no terminal shows; start the server if none runs."""
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        words = ("new-session", "-d", *size, "-s", session, *_window(command, name))
        try:
            if (folder := Path(self.socket).parent) == folder_of(environ):
                folder.mkdir(0o700, exist_ok=True)  # as tmux itself would
            argv = gate.new_tmux(self.socket, *words)
            return _opened(self._run(argv, START, environ, directory))
        except OSError as why:
            self.why = f"cannot start tmux at {line(self.socket)}: {described(why)}"
            return None

    def pid(self) -> int:
        """Return the process of the server, or 0."""
        return decimal((self.ask("display-message", "-p", "#{pid}") or "").strip()) or 0

    def split(self, pane: str, command: Sequence[str]) -> NewPane | None:
        """Run a command in a new pane beside another one; all of that window get as much room."""
        even = (";", "select-layout", "-t", pane, "tiled")
        return _opened(self.ask("split-window", "-d", "-t", pane, *_window(command), *even))

    def capture(self, pane: str, most: int = 200) -> list[str]:
        """Return the contents of a pane as plain lines, without trailing empty ones."""
        if not PANE.fullmatch(pane):
            return []
        output = self.ask("capture-pane", "-p", "-t", pane) or ""
        rows = [_plain(row) for row in output.rstrip().split("\n")]
        return rows[-most:] if any(rows) else []

    def painted(self, pane: str) -> list[str]:
        """Return the rows of a pane with the sequences that color them."""
        return (self.ask("capture-pane", "-ep", "-t", pane) or "").split("\n")

    def type(self, pane: str, text: str) -> bool:
        """Type a text of one line into a pane; it is not searched for names of keys."""
        if not PANE.fullmatch(pane) or not (text and text.isprintable()):
            self.why = f"cannot type into {line(pane, 40)}"
            return False
        return self.ask("send-keys", "-t", pane, "-l", "--", argument(text)) is not None

    def paste(self, pane: str, pieces: Sequence[str]) -> bool:
        """Paste texts into a pane, one after the other, each as one piece if its program can."""
        if not PANE.fullmatch(pane):
            self.why = f"cannot paste into {line(pane, 40)}"
            return False
        name = f"bellboard-{os.getpid()}"
        into = ("paste-buffer", "-p", "-r", "-d", "-b", name, "-t", pane)
        commands: list[str] = []
        with tempfile.TemporaryDirectory() as folder:  # everybody can read arguments
            for n, piece in enumerate(pieces):
                file = Path(folder, str(n))
                file.write_bytes(piece.encode())
                commands += [";", "load-buffer", "-b", name, str(file), ";", *into]
            return self.ask(*commands[1:]) is not None

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
        return self._run(argv, self._patience or PATIENCE)

    def _run(
        self,
        argv: Sequence[str],
        patience: float,
        environ: Mapping[str, str] | None = None,
        directory: str | None = None,
    ) -> str | None:
        try:
            done = run(argv, patience, environ, directory)
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


def _window(command: Sequence[str], name: str = "") -> list[str]:
    """Return the arguments of a new window; `_opened` reads what tmux prints then."""
    named = ["-n", literal(name)] if name else []
    words = ["sh", "-c", 'exec "$@"', "sh", *command]  # a single word would pass a shell
    return ["-P", "-F", "#{pane_id} #{pane_pid} #{pane_tty}", *named, *map(argument, words)]


def _opened(output: str | None) -> NewPane | None:
    fields = (output or "").split()
    pid = decimal(fields[1]) if len(fields) == 3 else None
    return NewPane(fields[0], pid, fields[2]) if pid is not None else None


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


def in_shell(command: Sequence[str], directory: str) -> list[str]:
    """Return the words that run a command in the user's shell, which goes on after its end."""
    return ["sh", "-c", IN_SHELL, f'cd {quoted([directory])} && {quoted(command)}; exec "$SHELL"']


def quoted(words: Sequence[str]) -> str:
    """Return words as a line that any shell, also fish, takes for them."""
    return " ".join(f"'{re.sub(_ODD_IN_QUOTES, _outside, word)}'" for word in words)


def _outside(found: re.Match[str]) -> str:
    return f"'\\{found[0]}'"


def literal(text: str) -> str:
    """Return text that is safe for tmux: one line, without the `#` that starts a format.

    Doubling the `#` is not enough: each further expansion (`E:`, `T:`) halves it again.
    """
    return line(whole(text), 1000).replace("#", "\N{FULLWIDTH NUMBER SIGN}")


def folder_of(environ: Mapping[str, str]) -> Path:
    """Return the folder of the sockets of this user's servers."""
    return Path(environ.get("TMUX_TMPDIR") or "/tmp", f"tmux-{os.getuid()}")


def default_socket(environ: Mapping[str, str]) -> str:
    """Return the socket of the server that a `tmux` outside of any other speaks to."""
    return str(folder_of(environ) / "default")


def sockets(environ: Mapping[str, str]) -> list[str]:
    """Return the sockets of this user's servers, including stale ones."""
    folder = folder_of(environ)
    try:
        found = [str(folder / name) for name, s in entries(folder) if stat.S_ISSOCK(s.st_mode)]
    except OSError:
        return []
    return sorted(found)


#: Lists panes and clients at once; each row says which it is.
_LOOK: Final = (
    *("list-panes", "-a", "-F", _PANES, ";", "list-clients", "-F", f"client {_CLIENTS}", ";"),
    *("show-options", "-gqv", BACK),
)


def _note(output: str, clients: Sequence[Client], asking: Client, to: Pane) -> tuple[str, ...]:
    """Return the command that keeps where a client came from, or nothing if it does not move.

    Jumps that go on in the window that the last one led to are one way, which begins where the
    first one did.
    """
    if asking.pane == to.id:
        return ()
    began = {int(pid): (pane, window) for pid, pane, window in _BEGAN.findall(output)}
    pane, window = began.get(asking.pid, ("", ""))
    origin = pane if window == asking.window else asking.pane
    began[asking.pid] = (origin, to.window)
    if origin == to.id:
        del began[asking.pid]
    here = {c.pid for c in clients}
    kept = (f"{n}={pane}={window} " for n, (pane, window) in began.items() if n in here)
    return (";", "set-option", "-g", BACK, f" {''.join(kept)}")


def _panes(output: str) -> Iterator[Pane]:
    for row in output.splitlines():
        fixed, _, rest = row.partition("|")
        fields = fixed.split(" ")
        named = _NAMED.fullmatch(rest)
        name, window_name = named.groups() if named else (rest, "")
        pid = decimal(fields[1]) if len(fields) == 8 else None
        if pid is not None and PANE.fullmatch(fields[0]):
            astray = MODE if fields[6] > "0" else SHARED if fields[7] > "0" else ""
            session, window, tty = fields[3:6]
            dead = fields[2] == "1"
            yield Pane(
                *(fields[0], pid, dead, session, window, tty, line(name, 80), astray),
                line(window_name, 80),
            )


def _clients(output: str) -> Iterator[Client]:
    for row in output.splitlines():
        fixed, _, name = row.removeprefix("client ").partition("|")
        fields = fixed.split(" ")
        seen, pid = decimal(fields[0]), decimal(fields[-2]) if len(fields) == 8 else None
        if fields[1:2] != ["1"] and seen is not None and pid is not None:
            focused = "focused" in fields[2].split(",")
            session, window, pane = fields[3:6]
            yield Client(name, fields[7], seen, focused, session, window, pane, pid)


def _plain(row: str) -> str:
    return "".join(c if c.isprintable() else " " for c in row).rstrip()


def has_pane(p: Mapping[str, Any]) -> bool:
    """Return whether a session names its pane; one around its Neovim is not its own."""
    return bool(p.get("pane")) and p.get("tmux", "").startswith("/")


def names_of(places: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return what people call the panes of these places, such as `work:2.1`. May block."""
    panes = {key: (p["tmux"], p["pane"]) for key, p in places.items() if has_pane(p)}
    found: dict[tuple[str, str], str] = {}
    for socket in {socket for socket, _ in panes.values()}:
        found.update({(socket, pane.id): pane.name for pane in Tmux(socket).panes() or ()})
    return {key: found[pane] for key, pane in panes.items() if pane in found}
