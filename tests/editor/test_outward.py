"""The board in the terminal around Neovim or `bellboard watch`, which may read it (OSC 7501)."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import signal
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from bellboard.core.outward import bodies_of, changes
from bellboard.core.program_status import Record, parsed, sequence, taken
from bellboard.core.published import Published
from bellboard.hosting.outward import name_of_board
from editor.test_live import hosted
from files.test_report_command import only
from rig import editor as editors
from rig import reaper
from rig.fetched import neovim
from rig.fixtures import Editors
from rig.shell import Shell
from rig.terminal import Terminal
from rig.tmux import Server
from rig.waiting import eventually

QUERY = sequence("?").encode()
REPORT = re.compile(rb"\x1b\]7501;([^\x1b\x07]*)\x1b\\")
HEARD = re.compile(REPORT.pattern + rb"|\x1b\[c")  # or the name of the terminal is asked
HOSTILE = "\x1b]7501;state=clear\x1b\\\x07\x9c:state=error;\u202eab\nrm -rf /"
TOKEN = "ghp_" + "a1B2" * 9


class Around:
    """A terminal around a program; `reads` reports, or not."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], reads: bool = True) -> None:
        self.pid, self._fd = pty.fork()
        if not self.pid:
            outside = {k: v for k, v in env.items() if k not in ("TMUX", "STY", "NVIM")}
            os.execvpe(argv[0], [*argv], {"TERM": "xterm-256color", **outside})
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("4H", 24, 90, 0, 0))
        self._reads = reads
        self.said = b""
        self.records: dict[str, Record] = {}
        self._read = 0
        self.asked = 0
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            try:
                data = os.read(self._fd, 65536)
            except OSError:
                return
            self.said += data
            for found in HEARD.finditer(self.said, self._read):
                self._read = found.end()
                body = (found[1] or b"").decode()
                if not body:
                    self.types(b"\x1b[?62c")
                elif body == "?":
                    self.asked += 1
                    if self._reads:
                        self.types(QUERY)
                else:
                    self.records = taken(self.records, parsed(body), time.time())

    def types(self, text: bytes) -> None:
        os.write(self._fd, text)

    def states(self) -> dict[str, str]:
        """Return the state of the root, and that of each other record by its text."""
        return {r.title if id else "": r.state for id, r in list(self.records.items())}

    def becomes(self, expected: Mapping[str, str]) -> None:
        def agrees() -> bool:
            assert expected == self.states(), self.said[-999:]
            return True

        eventually(agrees)

    def ended(self) -> None:
        """Wait until the program has ended, and all was read."""
        self._thread.join(20)
        assert not self._thread.is_alive()

    def close(self) -> None:
        reaper.end(reaper.family([self.pid]))
        os.waitpid(self.pid, 0)
        self._thread.join(5)
        os.close(self._fd)


Open = Callable[..., Around]


@pytest.fixture
def around() -> Iterator[Open]:
    """around(argv, env, reads=True): a terminal, closed at the end of the test."""
    opened: list[Around] = []

    def make(argv: Sequence[str], env: Mapping[str, str], reads: bool = True) -> Around:
        opened.append(Around(argv, env, reads))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def asks(shell: Shell, session: str = "s", command: str = "rm -rf build", **fields: str) -> None:
    shell.emitted(9, session, "SessionStart", cwd=f"/w/{session}", **fields)
    shell.emitted(8, session, "UserPromptSubmit", prompt="do it")
    tool = {"tool_name": "Bash", "tool_input": {"command": command}}
    shell.emitted(7, session, "PermissionRequest", **tool)


def nvim_argv(shell: Shell, version: str, **config: object) -> list[str]:
    return editors.command(version, shell.home, "tui", config=config)


def watch_argv(shell: Shell) -> list[str]:
    return [*shell.argv, "watch"]


def argv_of(what: str, shell: Shell, version: str) -> list[str]:
    return nvim_argv(shell, version) if what == "nvim" else watch_argv(shell)


def quits(terminal: Around, what: str) -> None:
    """Quit what runs in a terminal."""
    terminal.types(b":qa!\r" if what == "nvim" else b"q")
    terminal.ended()


@pytest.mark.parametrize("what", ["nvim", "watch"])
def test_the_terminal_around_shows_the_board(
    around: Open, shell: Shell, version: str, what: str
) -> None:
    """The root is what needs you most; each session has a record, and all end with the program."""
    argv = argv_of(what, shell, version)
    terminal = around(argv, shell.env)
    shell.emitted(20, "b", "SessionStart", cwd="/w/web")
    shell.emitted(19, "b", "UserPromptSubmit", prompt="add a test")
    terminal.becomes({"": "working", "web add a test": "working"})
    asks(shell, "s", session_title=HOSTILE)
    eventually(lambda: terminal.records[""].state == "blocked", "a root that asks")
    board = name_of_board(shell.home.bellboard)
    asking = next(r for id, r in terminal.records.items() if id and r.state == "blocked")
    assert {"", board} == {id.partition("/")[0] for id in terminal.records}
    root = terminal.records[""]
    assert (board, "permission", "Bash rm -rf build") == (root.app, root.kind, root.msg)
    assert ("claude", root.title, root.msg) == (asking.app, asking.title, asking.msg)
    assert root.title.startswith("s ")
    assert root.title.isprintable()
    assert "\u202e" not in root.title
    shell.emit("SessionEnd", reason="other")
    terminal.becomes({"": "working", "web add a test": "working"})
    assert terminal.asked == 1
    quits(terminal, what)
    assert terminal.records == {}


@pytest.mark.parametrize("what", ["nvim", "watch"])
def test_a_terminal_that_does_not_reply_gets_no_report(
    around: Open, shell: Shell, version: str, what: str
) -> None:
    argv = argv_of(what, shell, version)
    terminal = around(argv, shell.env, reads=False)
    asks(shell)
    eventually(lambda: b"rm -rf build" in terminal.said, "the session")
    quits(terminal, what)
    assert REPORT.findall(terminal.said) == [b"?"]


@pytest.mark.parametrize(
    ("env", "config"),
    [
        ({"TMUX": "/tmp/none,1,0"}, {}),
        ({"STY": "1.x"}, {}),
        ({"TERM": "screen-256color"}, {}),
        ({}, {"report": False}),
    ],
)
def test_where_it_is_not_wanted_nothing_is_asked(
    around: Open, shell: Shell, version: str, env: dict[str, str], config: dict[str, object]
) -> None:
    argv = nvim_argv(shell, version, **config)
    terminal = around(["env", *(f"{k}={v}" for k, v in env.items()), *argv], shell.env)
    asks(shell)
    eventually(lambda: b"rm -rf build" in terminal.said, "the session")
    assert REPORT.findall(terminal.said) == []


def test_the_board_is_cleared_while_no_process_runs(
    around: Open, shell: Shell, version: str
) -> None:
    """`process stop` and a crash; after that, all of it is reported again."""
    terminal = around(nvim_argv(shell, version), shell.env)
    asks(shell)
    eventually(lambda: "" in terminal.records, "a root")
    before = terminal.states()
    terminal.types(b":ClaudeSessions process stop\r")
    terminal.becomes({})
    terminal.types(b":ClaudeSessions process start\r")
    terminal.becomes(before)
    os.kill(int(next((shell.home.bellboard / "hosts").iterdir()).name), signal.SIGKILL)
    eventually(lambda: terminal.said.count(sequence("state=clear").encode()) == 2, "a clear")
    terminal.becomes(before)
    assert terminal.asked == 1


def test_two_terminals_of_one_neovim(around: Open, shell: Shell, version: str) -> None:
    """Only one that is alone is known to be the one that has replied."""
    first = around(nvim_argv(shell, version), shell.env)
    asks(shell)
    eventually(lambda: "" in first.records, "a root")
    before = first.states()
    socket = str(shell.home.root / "tui.sock")
    argv = [str(neovim.executable(version)), "--server", socket, "--remote-ui"]
    second = around(argv, shell.env, reads=False)
    first.becomes(before if version == "0.10" else {})  # 0.10 writes to the first one only
    os.kill(second.pid, signal.SIGKILL)
    first.becomes(before)
    assert (1, 0) == (first.asked, second.asked)


@pytest.mark.parametrize("what", ["nvim", "watch"])
def test_a_shell_in_front_has_no_board(around: Open, shell: Shell, version: str, what: str) -> None:
    """After CTRL-Z, the terminal is the shell's; the board comes back with its program."""
    argv = argv_of(what, shell, version)
    terminal = around(["bash", "--norc", "-i"], shell.env)
    terminal.types(shlex.join(argv).encode() + b"\r")
    asks(shell)
    eventually(lambda: "" in terminal.records, "a root")
    before = terminal.states()
    terminal.types(b"\x1a")
    terminal.becomes({})
    eventually(lambda: b"Stopped" in terminal.said, "the shell")
    asks(shell, "t", "make")
    eventually(lambda: len(shell.sessions()) == 2, "another session")
    assert terminal.states() == {}
    before["t do it"] = "blocked"
    terminal.types(b"fg\r")
    terminal.becomes(before)
    assert terminal.asked == 1


@pytest.mark.parametrize("after", [0.0, 0.01, 0.02, 0.03])
def test_a_host_that_is_suspended_holds_up_no_other(
    around: Open, shell: Shell, after: float
) -> None:
    """Whatever CTRL-Z meets it at, it stops between two steps, and so holds no lock."""
    terminal = around(["bash", "--norc", "-i"], shell.env)
    terminal.types(shlex.join(watch_argv(shell)).encode() + b"\r")
    eventually(lambda: b"\x1b[?1049h" in terminal.said, "its screen")
    for n in range(300):
        shell.emitted(0.0, "s", "PreToolUse", tool_use_id=f"{n}", tool_name="Read")
    time.sleep(after)
    terminal.types(b"\x1a")
    eventually(lambda: b"Stopped" in terminal.said, "the shell")
    shell.emitted(0.0, "t", "UserPromptSubmit", prompt="do it")
    eventually(lambda: "t" in shell.sessions(), "another session", 10.0)
    terminal.types(b"fg\r")
    eventually(lambda: terminal.said.count(b"\x1b[?1049h") == 2, "its screen again")


@pytest.mark.parametrize("what", ["nvim", "watch"])
def test_a_board_in_a_terminal_of_its_own_is_shown_once(
    nvim: Editors, shell: Shell, version: str, what: str
) -> None:
    outer = hosted(nvim(version, {}, env={"PYTHONPATH": shell.env["PYTHONPATH"]}))
    asks(shell)
    only(shell, status="blocked")
    count = "return require('bellboard.report.records').count()"
    argv = argv_of(what, shell, version)
    inner = Terminal(outer, argv, shell.home.project)
    inner.shows("rm -rf build")
    eventually(lambda: outer.lua(count) == 1, "a report")
    asks(shell, "t", "make")
    eventually(lambda: len(shell.sessions()) == 2, "another session")
    inner.shows("2")
    listed = outer.lua("return require('bellboard').sessions()")
    assert {"s", "t"} == {row["session_id"] for row in listed} == shell.sessions().keys()


@pytest.mark.tmux
@pytest.mark.parametrize("what", ["nvim", "watch"])
def test_a_board_in_tmux_asks_nothing(shell: Shell, tmux: Server, version: str, what: str) -> None:
    argv = argv_of(what, shell, version)
    late = ["sh", "-c", 'read -r _; exec "$@"', "sh", *argv]
    pane = tmux.open(late, env={"PYTHONPATH": shell.env["PYTHONPATH"]})
    printed = shell.home.root / "printed"
    tmux.run("pipe-pane", "-O", "-t", pane.id, f"cat >{printed}")
    asks(shell)
    pane.press("Enter")
    pane.shows("rm -rf build")
    eventually(lambda: b"rm -rf build" in printed.read_bytes(), "all of it")
    assert b"7501" not in printed.read_bytes()


# ---------------------------------------------------------------- what is reported

BOARD = "bellboard.00000000"


def row(session: str, status: str, urgency: int, **fields: object) -> Published:
    known = {"project": session, "hidden": False, "markers": [], "since": 1.0, "agent": "claude"}
    return {"session_id": session, "status": status, "urgency": urgency, **known, **fields}


def read(sessions: Sequence[Published], is_near: bool = True) -> dict[str, str]:
    """Return the states that are reported, by title."""
    bodies = bodies_of(BOARD, sessions, is_near).items()
    return {("" if not id else parsed(body).title): parsed(body).state for id, body in bodies}


@pytest.mark.core
def test_only_sessions_of_this_board_are_reported() -> None:
    """What another board has reported would go round between two that read each other."""
    shown = [row("a", "working", 4), row("b", "blocked", 0, board="bellboard.12345678")]
    shown += [row("c", "blocked", 0, hidden=True), row("d", "unknown", 3)]
    assert read(shown) == {"": "working", "a": "working"}


@pytest.mark.core
def test_sessions_of_other_machines_are_not_reported_over_ssh() -> None:
    """The terminal may be on one of these."""
    far = row("dev/claude/x", "error", 1, machine="dev", project="api")
    assert read([far]) == {"": "error", "dev:api": "error"}
    assert read([far], is_near=False) == {}


@pytest.mark.core
def test_a_parked_session_is_not_what_needs_you() -> None:
    shown = [row("a", "blocked", 0, markers=["parked"]), row("b", "idle", 6)]
    assert read(shown) == {"": "idle", "a": "blocked", "b": "idle"}


@pytest.mark.core
def test_no_text_is_sent_that_is_hidden_or_secret() -> None:
    """Nor can it be too long for the protocol, whatever it is."""
    fields = {"tool": "Bash", "title": HOSTILE + "\U0001f600" * 999, "agent": "x y" * 99}
    shown = row("a", "blocked", 0, detail=f"curl -H {TOKEN} x", kind="plan", **fields)
    for body in bodies_of(BOARD, [shown], True).values():
        report = parsed(body)
        assert ("blocked", "question") == (report.state, report.kind)
        assert TOKEN not in report.msg
        assert report.title.isprintable()


@pytest.mark.core
def test_a_terminal_has_after_each_change_what_is_so_now() -> None:
    one, two = row("a", "blocked", 0), row("b", "working", 4)
    boards = ([], [one], [one, two], [two], [{**two, "markers": ["parked"]}], [one, two], [])
    before: dict[str, str] = {}
    records: dict[str, Record] = {}
    for board in boards:
        now = bodies_of(BOARD, board, True)
        for body in changes(before, now):
            records = taken(records, parsed(body), 1.0)
        assert records.keys() == now.keys()
        assert changes(now, now) == []
        before = now
