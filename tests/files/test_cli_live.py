"""Commands that run until they are stopped: watch, serve; and what they print to."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from bellboard.system.processes import started_of
from rig import ROOT, schema
from rig import tmux as tmuxes
from rig.shell import Shell, fill
from rig.waiting import PATIENCE, eventually


def read_line(stream: IO[str] | None) -> Any:
    assert stream is not None
    line = stream.readline()
    schema.check_line("watch", line)
    return json.loads(line)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_watch_streams_changes_until_a_signal(shell: Shell, number: int) -> None:
    watch = shell.start("watch", "--json", stderr=subprocess.PIPE)
    shell.emit("UserPromptSubmit", prompt="x")
    change = read_line(watch.stdout)
    assert (change["session_id"], change["from"], change["to"]) == ("s", None, "working")
    shell.emit("Stop")
    assert read_line(watch.stdout)["to"] == "completed"
    watch.send_signal(number)
    rest, said = watch.communicate(timeout=PATIENCE)
    assert (watch.returncode, rest, said) == (0, "", "")
    assert list((shell.home.bellboard / "hosts").iterdir()) == []


def test_watch_prints_a_line_per_change_when_piped(shell: Shell) -> None:
    watch = shell.start("watch")
    shell.emit("UserPromptSubmit", prompt="x", cwd="/w/api")
    assert watch.stdout is not None
    line = watch.stdout.readline()
    assert re.match(r" \d\d:\d\d:\d\d  api  new → working +\S", line)


def test_watch_ends_when_its_reader_ends(shell: Shell) -> None:
    """`bellboard watch --json | head -1` ends after the first line, not after the second."""
    watch = shell.start("watch", "--json", stderr=subprocess.PIPE)
    head = subprocess.Popen(["head", "-1"], stdin=watch.stdout, stdout=subprocess.PIPE, text=True)
    assert watch.stdout is not None
    watch.stdout.close()
    shell.emit("UserPromptSubmit", prompt="x")
    shown, _ = head.communicate(timeout=PATIENCE)
    assert json.loads(shown)["to"] == "working"
    assert watch.wait(PATIENCE) == 0
    assert watch.stderr is not None
    assert watch.stderr.read() == ""
    watch.stderr.close()


def test_serve_is_a_host_that_runs_commands(shell: Shell) -> None:
    mark = shell.home.project / "marks"
    script = shell.home.file("mark", f'#!/bin/sh\necho "$@" >>{mark}\n')
    script.chmod(0o755)
    serve = shell.start("serve", "--on", f"working={script} 'two words'")
    shell.emit("UserPromptSubmit", prompt="x", cwd="/w/api")
    eventually(lambda: mark.exists() and mark.read_text() == "two words none working s api\n")
    assert shell.sessions()["s"]["status"] == "working"
    serve.terminate()
    assert serve.wait(PATIENCE) == 0


def test_serve_says_which_command_cannot_run(shell: Shell) -> None:
    """No shell runs it, and a program that does not exist is named while it serves."""
    serve = shell.start("serve", "--on", "working=no-such-program a | b", stderr=subprocess.PIPE)
    assert serve.stderr is not None
    assert "no shell runs it, so | is an argument" in serve.stderr.readline()
    shell.emit("UserPromptSubmit", prompt="x")
    assert "no-such-program: command not found" in serve.stderr.readline()
    serve.terminate()
    assert serve.wait(PATIENCE) == 0
    serve.stderr.close()


def test_serve_rejects_what_is_not_a_command(shell: Shell) -> None:
    for spec in ("dancing=x", "working", "working=", "working='"):
        assert f"--on {spec}: " in shell.fails("serve", "--on", spec)


@pytest.mark.tmux
@pytest.mark.parametrize("columns", [60, 200])
def test_watch_shows_sessions_live(shell: Shell, tmux: tmuxes.Server, columns: int) -> None:
    """The view fits and follows the terminal, scrolls below its header, and ends with q."""
    fill(shell)
    argv = ("sh", "-c", f"'{sys.executable}' -m bellboard watch; echo left with $?; stty; sleep 99")
    pane = tmux.open(argv, env=shell.env, columns=columns, lines=12)
    # the one that was working is unknown: no host was running, and nothing proves more
    head = r"\A 3 repositories · 4 sessions   !1 \+1 ~1 &1 +q quit *\n"
    pane.shows(head + r".*\n !.*rm -rf build.*\n \+.*\n ~.*\n &")
    tmux.run("resize-window", "-t", pane.id, "-x", "60", "-y", "4")
    pane.shows(head + r" !.*\n \+.*\n 1-2 of 4 lines  j k scroll")
    pane.type("G")
    pane.shows(head + r" [~&].*\n")
    pane.type("gj")
    pane.shows(head + r" \+.*\n ~")
    tmux.run("resize-window", "-t", pane.id, "-x", "80", "-y", "12")
    shell.emitted(0, "a1", "PostToolUse", tool_name="Bash")
    pane.shows(r" 3 repositories · 4 sessions   \+1 ~1 \*1 &1 +q quit *\n")
    pane.type("q")
    # the previous screen is restored, and typed keys are shown
    shown = pane.shows(r"left with \d\n(.*\n)+")
    assert shown.startswith("left with 0")
    assert "-echo " not in shown


@pytest.mark.tmux
def test_watch_follows_the_terminal_although_nothing_changes(
    shell: Shell, tmux: tmuxes.Server
) -> None:
    """Without a session there is no age, either, that is drawn again."""
    argv = (sys.executable, "-m", "bellboard", "watch")
    pane = tmux.open(argv, env=shell.env, columns=80, lines=12)
    line = " 2  It appears here. If not:  bellboard doctor"
    for columns in (20, 80, 20, 80):
        tmux.run("resize-window", "-t", pane.id, "-x", f"{columns}", "-y", "12")
        pane.shows(f"(?m)^{line[:columns]}$")


@pytest.mark.tmux
def test_a_shell_calls_panes_what_people_call_them(shell: Shell, tmux: tmuxes.Server) -> None:
    """As Neovim does: by their number only while the server does not answer."""
    watch = ("sh", "-c", f"'{sys.executable}' -m bellboard watch")
    pane = tmux.open(watch, env=shell.env, session="work", columns=100, lines=12)
    at = {"tmux": str(tmux.socket), "pane": pane.id}
    origin = {"pid": pane.pid, "agent": "claude", "started": started_of(pane.pid), **at}
    shell.emitted(9, "a1", "SessionStart", cwd="/w/api", session_title="t", origin=origin)
    pane.shows(r"api .*tmux\.so…/work:0\.0")
    assert "/work:0.0\n" in shell.bellboard("list").stdout


@pytest.mark.tmux
def test_watch_gives_the_terminal_back_however_it_ends(shell: Shell, tmux: tmuxes.Server) -> None:
    """Ctrl-Z stops it until fg; Ctrl-C and signals end it."""
    fill(shell)
    pane = tmux.open(("sh",), env=shell.env | {"PS1": "$ "}, columns=80, lines=12)
    watching = r"\A 3 repositories"
    file = shell.home.project / "pid"
    watch = f"sh -c 'echo $$ >{file}; exec {sys.executable} -m bellboard watch'"
    pane.type(f"clear; {watch}\n")
    pane.shows(watching)
    pane.type("hidden")
    pane.press("C-z")
    assert "hidden" not in pane.shows(r"(?i)stopped")
    pane.type("stty -a | grep -o '.\\?icanon'; fg\n")
    pane.shows(watching)
    pane.press("C-c")
    assert "-icanon" not in pane.shows(r"icanon")
    for name in ("TERM", "HUP", "QUIT"):
        pane.type(f"clear; {watch}; stty -a | grep -o '.\\?icanon'\n")
        pane.shows(watching)
        os.kill(int(file.read_text()), signal.Signals[f"SIG{name}"])
        assert "-icanon" not in pane.shows(r"(?m)^ ?icanon")


@pytest.mark.tmux
def test_output_to_a_terminal_is_colored_unless_disabled(shell: Shell, tmux: tmuxes.Server) -> None:
    fill(shell)

    def shown(**env: str) -> str:
        argv = ("sh", "-c", f"'{sys.executable}' -m bellboard list; echo the end; sleep 99")
        pane = tmux.open(argv, env=shell.env | env)
        pane.shows("the end")
        return tmux.run("capture-pane", "-e", "-p", "-t", pane.id)

    assert "\x1b[1m\x1b[31m!" in shown()
    assert "\x1b" not in shown(NO_COLOR="1")
    assert "\x1b" not in shown(TERM="dumb")


@pytest.mark.tmux
@pytest.mark.parametrize("term", ["Dumb", "unknown", ""])
def test_a_terminal_whose_cursor_does_not_move_gets_lines(
    shell: Shell, tmux: tmuxes.Server, term: str
) -> None:
    """However its TERM is written; a screen would be a heap of escapes there."""
    fill(shell)
    run = f"'{sys.executable}' -m bellboard"
    script = f"{run} pick; {run} answer --popup; exec {run} watch"
    pane = tmux.open(("env", f"TERM={term}", "sh", "-c", script), env=shell.env, columns=200)
    for said in ("use `bellboard list` instead", "leave out --popup"):
        pane.shows(f"needs a terminal whose cursor can be moved; {said}")
    pane.shows(r"(?m)^ \d\d:\d\d:\d\d  api  working → blocked")


def test_unwritable_output_is_reported(shell: Shell) -> None:
    fill(shell)
    shell.bellboard("list")
    for command in ("list", "status", "history", "record", "feed"):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [*shell.argv, command],
                env=shell.env,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        said = "bellboard: cannot write to standard output: No space left on device\n"
        assert (done.returncode, done.stderr) == (1, said)


#: Ends with CTRL-C as soon as a module is looked for.  (In the background it would be ignored.)
INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Interrupter:
    def find_spec(name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupter)
"""


@pytest.mark.parametrize(
    ("how", "module"),
    [
        *(("module", m) for m in ("bellboard.cli", "argparse", "bellboard.storage.store")),
        *(("program", m) for m in ("bellboard.cli", "argparse", "bellboard.storage.store")),
        *(("path", m) for m in ("pynvim", "bellboard.remote", "bellboard.system.ending")),
    ],
)
def test_ctrl_c_at_the_start_is_silent(shell: Shell, tmp_path: Path, how: str, module: str) -> None:
    """Wherever it comes: the command line has not begun to catch it, or Neovim's half to serve."""
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED)
    package = ROOT / "rplugin/python3"
    ways = {
        "module": [sys.executable, "-m", "bellboard", "list"],
        "program": [str(Path(sys.executable).with_name("bellboard")), "list"],
        "path": [sys.executable, str(package / "bellboard/__main__.py")],
    }
    env = shell.env | {"PYTHONPATH": f"{tmp_path}:{package}", "INTERRUPTED_AT": module}
    done = subprocess.run(
        ways[how], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode in (130, -signal.SIGINT), done
    assert ("", "") == (done.stdout, done.stderr)
