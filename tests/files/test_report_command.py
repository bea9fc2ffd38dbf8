"""`bellboard report` in real terminals: of Neovim, of tmux, of others, and without any."""

from __future__ import annotations

import os
import pty
import select
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from bellboard.core.program_status import sequence
from editor.test_live import hosted
from rig.fixtures import Editors
from rig.shell import Shell
from rig.terminal import Terminal
from rig.tmux import Server
from rig.waiting import PATIENCE, eventually

COMMAND = shlex.join([sys.executable, "-m", "bellboard", "report"])
#: A build that reports what it does, and goes on once somebody presses ENTER.
BUILD = f"""#!/bin/bash
report() {{ {COMMAND} "$@" || echo "failed: $?"; }}
report working --app build --progress 40 --msg "compiles"
read -r _
report blocked --kind question --msg "Deploy it?" --app build
read -r _
[ "$1" = silent ] || report done --app build --msg "deployed"
"""


@pytest.fixture
def build(shell: Shell) -> Path:
    script = shell.home.file("build.sh", BUILD)
    script.chmod(0o755)
    return script


def only(shell: Shell, **wanted: Any) -> dict[str, Any]:
    """Wait until there is one session with these facts; return it."""

    def is_so() -> Any:
        found = list(shell.sessions().values())
        is_wanted = len(found) == 1 and wanted.items() <= found[0].items()
        return found[0] if is_wanted else None

    return dict(eventually(is_so, str(wanted)))


def gone(shell: Shell) -> None:
    eventually(lambda: not shell.sessions(), "no session")


@pytest.mark.tmux
def test_a_build_in_tmux_is_on_the_board(shell: Shell, tmux: Server, build: Path) -> None:
    """Its row is that of the script, in its pane: it ends with it, and a result stays."""
    shell.start("serve")
    pane = tmux.open(["bash", "--norc"], env={"PYTHONPATH": shell.env["PYTHONPATH"]})
    pane.shows("[$#]")
    pane.type(f"{build} silent\n")
    only(shell, status="working")
    pane.press("Enter")
    only(shell, status="blocked")
    pane.press("Enter")
    gone(shell)
    pane.type(f"{build}\n")
    working = only(shell, status="working", agent="build", detail="compiles", progress="40%")
    assert (pane.id, pane.tty) == (working["pane"], working["tty"])
    assert working["pid"] != pane.pid
    pane.press("Enter")
    assert only(shell, status="blocked", kind="question")["detail"] == "Deploy it?"
    pane.press("Enter")
    only(shell, status="completed", last_message="deployed")
    assert "7501" not in pane.text()


@pytest.mark.tmux
def test_a_shell_in_tmux_reports_for_itself(shell: Shell, tmux: Server) -> None:
    """Without a script, the row is the shell's, until it clears it or ends."""
    shell.start("serve")
    pane = tmux.open(["bash", "--norc"], env={"PYTHONPATH": shell.env["PYTHONPATH"]})
    pane.shows("[$#]")
    pane.type(f"{COMMAND} working --title Deploy\n")
    assert pane.pid == only(shell, status="working", title="Deploy")["pid"]
    pane.type(f"{COMMAND} clear\n")
    gone(shell)
    pane.type(f"{COMMAND} working\n")
    only(shell, status="working")
    pane.type("exit\n")
    gone(shell)


@pytest.mark.editor
def test_a_build_in_a_terminal_of_neovim(
    nvim: Editors, version: str, shell: Shell, build: Path
) -> None:
    """The sequence itself reports it, and nothing else does."""
    editor = hosted(nvim(version, {}, env={"PYTHONPATH": shell.env["PYTHONPATH"]}))
    terminal = Terminal(editor, ["bash", "--norc"], shell.home.project)
    terminal.shows("[$#]")
    terminal.type(f"{build}\r")
    working = only(shell, status="working", agent="build", detail="compiles", progress="40%")
    assert working["pid"] != terminal.pid
    terminal.press("Enter")
    only(shell, status="blocked", detail="Deploy it?")
    terminal.press("Enter")
    only(shell, status="completed", last_message="deployed")
    assert "7501" not in terminal.text()
    assert "failed" not in terminal.text()
    terminal.close()
    gone(shell)


@pytest.mark.editor
def test_a_shell_in_a_terminal_of_neovim_reports_for_itself(
    nvim: Editors, version: str, shell: Shell
) -> None:
    """The command has ended when its report is read; again and again, it is the shell's."""
    editor = hosted(nvim(version, {}, env={"PYTHONPATH": shell.env["PYTHONPATH"]}))
    terminal = Terminal(editor, ["bash", "--norc"], shell.home.project)
    terminal.shows("[$#]")
    for n in range(5):
        terminal.type(f"{COMMAND} working --app deploy --title t{n}\r")
        assert terminal.pid == only(shell, status="working", title=f"t{n}")["pid"]
    terminal.type(f"{COMMAND} clear\r")
    gone(shell)
    terminal.type(f"{COMMAND} working\r")
    only(shell, status="working", agent="bash")
    terminal.type("exit\r")
    gone(shell)


class Bare:
    """A program in a terminal that does what a test says."""

    def __init__(self, shell: Shell, *args: str, term: str = "xterm-256color") -> None:
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            env = {k: v for k, v in shell.env.items() if k not in ("TMUX", "STY", "NVIM")}
            os.execvpe(sys.executable, [*shell.argv, *args], env | {"TERM": term})
        self.said = b""

    def says(self, wanted: bytes) -> None:
        """Read until it has said that."""
        while wanted not in self.said:
            assert select.select([self.terminal], [], [], PATIENCE)[0], self.said
            self.said += os.read(self.terminal, 4096)

    def types(self, text: bytes) -> None:
        os.write(self.terminal, text)

    def ends(self) -> int:
        """Read all that it says, and return how it ended."""
        try:
            while data := os.read(self.terminal, 4096):
                self.said += data
        except OSError:  # it has closed the terminal
            pass
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


QUERY, NAME = sequence("?").encode(), b"\x1b[c"


@pytest.mark.parametrize("has_host", [False, True])
def test_a_terminal_that_reads_reports_gets_one(shell: Shell, has_host: bool) -> None:
    """So does the board, if there is one: nobody else passes the report on to it."""
    if has_host:
        shell.start("serve")
    bare = Bare(shell, "report", "done", "--app", "make", "--msg", "\x1b]0;x\x07hi\n")
    bare.says(QUERY + NAME)
    bare.types(QUERY + b"\x1b[?62c")
    assert bare.ends() == 0
    assert bare.said == QUERY + NAME + sequence("state=done:app=make:msg=aGk=").encode()
    if has_host:
        only(shell, status="completed", agent="make", last_message="hi")


@pytest.mark.parametrize("reply", [b"\x1b[?62c", b"\x1b[?62c" + QUERY])
def test_where_no_terminal_reads_it_and_nobody_else_it_fails(shell: Shell, reply: bytes) -> None:
    """What comes first decides."""
    bare = Bare(shell, "report", "working")
    bare.says(NAME)
    bare.types(reply)
    assert bare.ends() == 1
    assert b"this terminal reads no reports, and no background process runs" in bare.said
    assert b"state=" not in bare.said


def test_a_simple_terminal_is_not_even_asked(shell: Shell) -> None:
    bare = Bare(shell, "report", "working", term="linux")
    assert bare.ends() == 1
    assert b"\x1b" not in bare.said


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("done", "--progress", "3"), "progress 3 is not valid with done"),
        (("working", "--kind", "auth"), "kind auth is not valid with working"),
        (("working", "--id", "a//b"), "id is no path of names"),
        (("working", "--app", "a b"), "app a b is not valid with working"),
    ],
)
def test_what_no_terminal_would_read_is_refused(
    shell: Shell, given: tuple[str, ...], why: str
) -> None:
    assert f"bellboard: cannot report that: {why}\n" == shell.fails("report", *given)
