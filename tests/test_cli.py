"""The command line: real processes on a real spool, mostly without a host."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest

from bellboard import __version__
from bellboard.core import words
from bellboard.storage.spool import Spool
from rig import tmux as tmuxes
from rig import warm
from rig.home import Home
from rig.waiting import PATIENCE, eventually

pytestmark = pytest.mark.files

ROOT = Path(__file__).resolve().parents[1]
EMIT = ROOT / "hooks/emit"
Answer = subprocess.CompletedProcess[str]


class Shell:
    """A shell in a home of its own: runs `bellboard`, and emits events of agents."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.env = home.env | {"PYTHONPATH": str(ROOT / "rplugin/python3"), "TZ": "UTC"}
        self.argv = (sys.executable, "-m", "bellboard")
        self.spool = Spool(home.bellboard)
        self.now = time.time()
        self.running: list[subprocess.Popen[str]] = []

    def bellboard(self, *args: str, input: str = "", code: int = 0, **env: str) -> Answer:
        """Run a command; check its exit code, and that a success prints no error."""
        done = warm.run(["-m", "bellboard", *args], env=self.env | env, input=input)
        assert done.returncode == code, done.stderr or done.stdout
        assert "Traceback" not in done.stderr
        return done

    def fails(self, *args: str, **env: str) -> str:
        """Run a command that must fail; return its message."""
        done = self.bellboard(*args, code=1, **env)
        assert done.stdout == ""
        return done.stderr

    def start(self, *args: str, **streams: Any) -> subprocess.Popen[str]:
        """Start a command that keeps running."""
        started = subprocess.Popen(
            [*self.argv, *args], env=self.env, text=True, stdout=subprocess.PIPE, **streams
        )
        self.running.append(started)
        hosts = self.home.bellboard / "hosts"
        eventually(lambda: (hosts / str(started.pid)).exists(), "a host")
        return started

    def emit(self, event: str, pid: int = 0, **payload: Any) -> None:
        """Run the hook."""
        told = {"session_id": "s", "hook_event_name": event, **payload}
        subprocess.run(
            ["sh", str(EMIT), event, str(pid)],
            env=self.env,
            input=json.dumps(told),
            text=True,
            check=True,
        )

    def emitted(self, ago: float, session: str, event: str, /, **payload: Any) -> None:
        """Write a hook event from some time ago."""
        hook = {"session_id": session, "hook_event_name": event, **payload}
        self.spool.write({"t": self.now - ago, "hook": hook, "origin": payload.pop("origin", {})})

    def sessions(self) -> dict[str, dict[str, Any]]:
        listed = json.loads(self.bellboard("list", "--json").stdout)["sessions"]
        return {p["session_id"]: p for p in listed}


@pytest.fixture
def shell(home: Home) -> Iterator[Shell]:
    made = Shell(home)
    made.spool.prepare()
    yield made
    for process in made.running:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def fill(shell: Shell) -> None:
    """Make a session in every status that hooks can report."""
    for n, (sid, folder) in enumerate(
        {"a1": "api", "a2": "api", "b1": "web", "c1": "docs"}.items()
    ):
        shell.emitted(400 + n, sid, "SessionStart", cwd=f"/w/{folder}", session_title=f"title {n}")
        shell.emitted(390 + n, sid, "UserPromptSubmit", prompt="do it")
    ask = {"tool_name": "Bash", "tool_input": {"command": "rm -rf build"}}
    shell.emitted(131, "a1", "PermissionRequest", **ask)
    shell.emitted(320, "b1", "Stop", last_assistant_message="All done.")
    listed = [{"id": "x", "type": "shell", "command": "mkdocs serve", "status": "running"}]
    shell.emitted(370, "c1", "Stop", background_tasks=listed)


# ---------------------------------------------------------------- help


def test_without_arguments_it_prints_help(shell: Shell) -> None:
    """One short line for each command."""
    shown = shell.bellboard().stdout
    assert shown == shell.bellboard("--help").stdout
    commands = re.findall(r"^    (\w+) +(\S.*)$", shown, re.M)
    assert {"list", "status", "watch", "history", "explain", "record", "replay"} <= dict(
        commands
    ).keys()
    assert max(map(len, shown.splitlines())) <= 100


def test_it_prints_its_version(shell: Shell) -> None:
    assert shell.bellboard("--version").stdout == f"bellboard {__version__}\n"


def test_bad_usage_exits_with_2(shell: Shell) -> None:
    done = shell.bellboard("lits", code=2)
    assert "invalid choice: 'lits'" in done.stderr


# ---------------------------------------------------------------- list, status


def test_without_sessions_list_says_how_to_start_and_status_prints_nothing(shell: Shell) -> None:
    """And what is missing for that: Claude Code itself."""
    shell.env["CLAUDE_CONFIG_DIR"] = "/"
    assert shell.bellboard("list").stdout == words.FIRST_RUN
    assert shell.bellboard("status").stdout == ""
    shell.env |= {"CLAUDE_CONFIG_DIR": "/nowhere", "PATH": "/nowhere"}
    assert shell.bellboard("list").stdout == words.MISSING


def test_without_a_host_waiting_events_are_folded(shell: Shell) -> None:
    shell.emit("SessionStart", cwd="/w/api")
    shell.emit("UserPromptSubmit", prompt="do it")
    assert shell.bellboard("status").stdout == "*1\n"
    assert shell.sessions()["s"]["status"] == "working"
    assert shell.spool.pending() == 0


def test_without_a_host_deadlines_still_apply(shell: Shell) -> None:
    """The last subagent never reports, and nothing else happens: the turn is over."""
    shell.emit("UserPromptSubmit", prompt="x")
    shell.emit("SubagentStart", agent_id="a1", agent_type="Explore")
    shell.emit("Stop")
    shell.emit("SubagentStop", agent_id="a1")
    shell.sessions()
    eventually(lambda: shell.sessions()["s"]["status"] == "completed")


@pytest.mark.parametrize("columns", [60, 200])
def test_list_and_status_fit_narrow_and_wide_terminals(
    shell: Shell, columns: int, request: pytest.FixtureRequest
) -> None:
    fill(shell)
    picture = ROOT / f"tests/screens/cli-shell-{columns}.txt"
    shown = shell.bellboard("list", COLUMNS=str(columns)).stdout
    if request.config.getoption("--update-screens"):
        picture.write_text(shown)
    assert shown == picture.read_text()
    assert shell.bellboard("status").stdout == "!1 api: rm -rf build 2m  +1 *1 &1\n"
    assert shell.bellboard("status", "--width", "24").stdout == "!1 api 2m  +1 *1 &1\n"


def test_piped_output_is_plain_and_complete(shell: Shell) -> None:
    shell.emitted(60, "s", "UserPromptSubmit", prompt="x", cwd="/w/api")
    shell.emitted(50, "s", "Stop", last_assistant_message="word " * 40)
    shown = shell.bellboard("list").stdout
    assert "word " * 39 in shown
    assert "\x1b" not in shown


def test_a_status_can_be_asked_for_a_folder(shell: Shell) -> None:
    work = shell.home.project
    (work / "api/src").mkdir(parents=True)
    (work / "other").mkdir()
    shell.emitted(9, "s", "UserPromptSubmit", prompt="x", cwd=str(work / "api"))
    ask = ("status", "--dir")
    assert shell.bellboard(*ask, str(work / "api")).stdout == "working\n"
    assert shell.bellboard(*ask, str(work)).stdout == "working\n"
    assert shell.bellboard(*ask, str(work / "other"), code=1).stdout == "none\n"
    # above only counts for a session known to live, and this one has no process
    assert shell.bellboard(*ask, str(work / "api/src"), code=1).stdout == "none\n"
    assert shell.fails(*ask, str(work / "gone")) == f"bellboard: {work}/gone is not a directory\n"


# ---------------------------------------------------------------- history, explain


def test_history_and_explain_agree(shell: Shell) -> None:
    fill(shell)
    told = [json.loads(x) for x in shell.bellboard("history", "--json").stdout.splitlines()]
    steps = [(c["from"], c["to"]) for c in told if c["session_id"] == "a1"]
    assert steps == [(None, "idle"), ("idle", "working"), ("working", "blocked")]
    assert list(told[0]) == ["t", "session_id", "from", "to", "rule", "why"]
    shown = re.sub(r"\d\d:\d\d:\d\d", "00:00:00", shell.bellboard("history", "a1").stdout)
    assert [line.split("  ")[:3] for line in shown.splitlines()[1:]] == [
        [" 00:00:00", "api", "new → idle"],
        [" 00:00:00", "api", "idle → working"],
        [" 00:00:00", "api", "working → blocked"],
    ]
    story = shell.bellboard("explain", "a1").stdout
    assert re.search(r"PermissionRequest +.*\(Bash: rm -rf build\)$", story, re.M)
    assert re.search(r"question stood +working → blocked  ", story)
    since = shell.bellboard("history", "--since", "5", "--json").stdout.splitlines()
    assert [json.loads(x)["session_id"] for x in since] == ["a1"]


def test_answers_are_in_the_history_and_rules_come_from_them(shell: Shell) -> None:
    """Who answered what, from where, and what followed; nothing is allowed by itself."""
    fill(shell)
    rule = {"toolName": "Bash", "ruleContent": "make test"}
    ask = {
        "tool_name": "Bash",
        "tool_input": {"command": "make test"},
        "permission_suggestions": [{"type": "addRules", "rules": [rule], "behavior": "allow"}],
    }
    answer = {"session_id": "a2", "choice": "allow", "way": "hook", "by": "Neovim 4711"}
    for n in range(3):
        assert shell.bellboard("rules").stdout.startswith(" No permission was asked for and given")
        shell.emitted(60 - n, "a2", "PermissionRequest", **ask)
        shell.spool.write({"t": shell.now - 59.9 + n, "answer": answer})
        followed = {**answer, "outcome": "it went on after 0.1 s"}
        shell.spool.write({"t": shell.now - 59.8 + n, "answer": followed})
        shell.emitted(59.7 - n, "a2", "PostToolUse", **ask)
    assert shell.bellboard("rules").stdout.splitlines() == [
        " To be asked less, add to permissions.allow in .claude/settings.local.json:",
        '   "Bash(make test)"  asked 3 times in /w/api',
    ]
    told = json.loads(shell.bellboard("rules", "--json").stdout)
    assert (told["rule"], told["count"], told["folders"]) == ("Bash(make test)", 3, ["/w/api"])
    said = "(allow, by hook, from Neovim 4711)"
    assert shell.bellboard("history", "a2").stdout.count(said) == 3
    story = shell.bellboard("explain", "a2").stdout
    assert story.count(said) == 3
    assert story.count("What followed your answer (it went on after 0.1 s)") == 3
    lines = map(json.loads, shell.bellboard("history", "a2", "--json").stdout.splitlines())
    answers = [line for line in lines if "answer" in line]
    assert [line["outcome"] for line in answers] == ["", "it went on after 0.1 s"] * 3
    assert {(line["answer"], line["way"], line["by"]) for line in answers} == {
        ("allow", "hook", "Neovim 4711")
    }


# ---------------------------------------------------------------- record, replay


def test_a_recording_replays_to_the_history(shell: Shell) -> None:
    fill(shell)
    history = shell.bellboard("history", "--json").stdout.splitlines()
    recorded = shell.bellboard("record").stdout
    assert "rm -rf" not in recorded
    assert "rm -rf" in shell.bellboard("record", "--full").stdout
    *changes, last = shell.bellboard("replay", "--json", input=recorded).stdout.splitlines()
    keys = ("t", "session_id", "from", "to", "rule")
    assert [[json.loads(c)[k] for k in keys] for c in changes] == [
        [json.loads(c)[k] for k in keys] for c in history
    ]
    final = {s["session_id"]: s["status"] for s in json.loads(last)["sessions"]}
    assert final == {sid: p["status"] for sid, p in shell.sessions().items()}


def test_a_recording_of_one_session_contains_no_other(shell: Shell) -> None:
    fill(shell)
    recorded = shell.bellboard("record", "--session", "b1").stdout
    lines = [json.loads(x) for x in recorded.splitlines()]
    assert {line["decoded"]["session_id"] for line in lines if "decoded" in line} == {"b1"}


def test_a_recording_of_minutes_holds_its_sessions_from_their_start(shell: Shell) -> None:
    fill(shell)
    recorded = shell.bellboard("record", "--minutes", "4").stdout
    told = [x["decoded"] for x in map(json.loads, recorded.splitlines()) if "decoded" in x]
    assert [(x["session_id"], x["name"]) for x in told] == [
        ("a1", "SessionStart"),
        ("a1", "UserPromptSubmit"),
        ("a1", "PermissionRequest"),
    ]


def test_replay_prints_a_readable_history(shell: Shell) -> None:
    trace = ROOT / "tests/traces/recordings/perm_yes.jsonl"
    shown = shell.bellboard("replay", str(trace)).stdout
    assert re.search(r"^ \d\d:\d\d:\d\d  \S+ +working → blocked ", shown, re.M)


def test_an_unreadable_trace_is_reported(shell: Shell) -> None:
    gone = shell.home.project / "gone.jsonl"
    assert shell.fails("replay", str(gone)) == (
        f"bellboard: cannot read the trace {gone}: No such file or directory\n"
    )
    assert "Is a directory" in shell.fails("replay", str(shell.home.project))


def test_lines_that_are_not_evidence_are_counted(shell: Shell) -> None:
    file = shell.home.file("mixed.jsonl", '{"t": 1, "tick": {}}\nnot JSON\n')
    done = shell.bellboard("replay", "--json", str(file))
    assert done.stderr == f"bellboard: {file}: 1 of 2 lines are invalid; is this a trace?\n"
    file.write_bytes(b"\x7fELF\n\x00\n")
    done = shell.bellboard("replay", "--json", str(file), code=1)
    assert done.stderr == f"bellboard: {file}: all lines are invalid; is this a trace?\n"


# ---------------------------------------------------------------- evidence by hand


def test_sessions_can_be_corrected_labelled_named_parked_snoozed_and_forgotten(
    shell: Shell,
) -> None:
    fill(shell)
    for command in (
        ("set", "a1", "working"),
        ("label", "a1", "HEAVY"),
        ("name", "a1", "my session"),
        ("park", "a1"),
        ("snooze", "a1", "5"),
        ("forget", "c1"),
    ):
        printed = shell.bellboard(*command).stdout
        assert printed.startswith("a1: ") == (command[0] in ("park", "snooze"))
    sessions = shell.sessions()
    told = sessions["a1"]
    assert (told["status"], told["label"], told["name"]) == ("working", "HEAVY", "my session")
    assert "parked" in told["markers"]
    assert told["snoozed_until"] == pytest.approx(time.time() + 300, abs=30)
    assert "c1" not in sessions
    for command in (("label", "a1"), ("name", "a1")):
        shell.bellboard(*command)
    assert shell.bellboard("park", "a1").stdout == "a1: unparked\n"
    assert shell.bellboard("snooze", "a1").stdout == "a1: snooze ended\n"
    told = shell.sessions()["a1"]
    assert not {"label", "name", "snoozed_until"} & told.keys()
    assert "parked" not in told["markers"]


def test_a_session_is_stopped_by_name_and_nothing_else_is(shell: Shell) -> None:
    """Its process ends; one that is not proven to be its process is left alone."""
    fill(shell)
    assert shell.fails("stop", "b1") == (
        "bellboard: b1: its process is unknown, so it cannot be stopped\n"
    )
    shell.start("serve")
    for name in ("claude", "vim"):
        process = subprocess.Popen([name, "600"], executable=shutil.which("sleep"), env=shell.env)
        try:
            shell.emit("UserPromptSubmit", process.pid, session_id=name, cwd=f"/w/{name}")
            if name == "claude":
                eventually(partial(shell.bellboard, "stop", name), "its start time and its end")
                assert process.poll() is not None
            else:
                assert f"bellboard: {name}: " in shell.fails("stop", name)
                assert process.poll() is None
        finally:
            process.kill()
            process.wait()


def test_a_session_can_be_named_by_id_prefix_project_or_name(shell: Shell) -> None:
    fill(shell)
    shell.bellboard("name", "b1", "the site")
    for called in ("b1", "b", "web", "the site"):
        assert "the site  new → idle" in shell.bellboard("history", called).stdout
    assert shell.fails("explain", "api") == (
        "bellboard: 2 sessions match api: a1, a2; give the id of one\n"
    )
    assert shell.fails("explain", "nobody") == (
        "bellboard: no session matches nobody; run `bellboard list` to see them all\n"
    )
    assert "no session matches ;" in shell.fails("forget", "")


def test_an_invalid_correction_is_reported(shell: Shell) -> None:
    fill(shell)
    assert shell.fails("set", "a1", "dancing") == (
        "bellboard: cannot set the status dancing; use one of "
        "blocked, error, completed, working, background, idle\n"
    )
    shell.bellboard("forget", "b1")
    assert "bellboard: session b1: refused: " in shell.fails("set", "b1", "idle")


# ---------------------------------------------------------------- odd homes


def test_a_relative_home_is_refused(shell: Shell) -> None:
    for command in ("list", "status", "watch", "serve"):
        assert shell.fails(command, BELLBOARD_HOME="here") == (
            "bellboard: not an absolute path: here; "
            "set BELLBOARD_HOME to an absolute path, or unset it\n"
        )


def test_a_home_that_cannot_be_created_is_reported(shell: Shell) -> None:
    file = shell.home.file("file", "")
    said = shell.fails("list", BELLBOARD_HOME=f"{file}/home")
    assert said.startswith(f"bellboard: cannot create {file}/home: {file}: ")
    assert "set BELLBOARD_HOME to a writable folder" in said
    said = shell.fails("watch", "--json", BELLBOARD_HOME=f"{file}/home")
    assert said.startswith(f"bellboard: cannot start in {file}/home: {file}: ")


def test_a_newer_database_is_shown_and_not_written(shell: Shell) -> None:
    """Corrections wait in the spool for a newer host."""
    fill(shell)
    shell.bellboard("list")
    with sqlite3.connect(shell.home.bellboard / "board.db") as db:
        db.execute("PRAGMA user_version = 99")
    shell.emit("Stop")
    done = shell.bellboard("status")
    assert done.stdout == "!1 api: rm -rf build 2m  +1 *1 &1\n"
    assert "board.db was written by a newer bellboard; the output may be out of date" in done.stderr
    assert shell.spool.pending() == 1
    with sqlite3.connect(shell.home.bellboard / "board.db") as db:
        db.execute("ALTER TABLE sessions RENAME TO somethings")
    assert "newer bellboard and cannot be read; update this bellboard" in shell.fails("list")


@pytest.mark.parametrize("damage", [b"no database" * 999, b"SQLite format 3\0" + b"\xff" * 9000])
def test_a_damaged_database_is_reported_and_left_alone(shell: Shell, damage: bytes) -> None:
    database = shell.home.bellboard / "board.db"
    database.write_bytes(damage)
    shell.emit("UserPromptSubmit", prompt="x")
    said = shell.fails("list")
    assert said.startswith(f"bellboard: {database}: ")
    assert "start Neovim or `bellboard serve` to replace it" in said
    assert database.read_bytes() == damage
    assert shell.spool.pending() == 1


# ---------------------------------------------------------------- live commands


def read_line(stream: IO[str] | None) -> Any:
    assert stream is not None
    return json.loads(stream.readline())


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


def test_serve_rejects_what_is_not_a_command(shell: Shell) -> None:
    for spec in ("dancing=x", "working", "working=", "working='"):
        assert f"--on {spec}: " in shell.fails("serve", "--on", spec)


@pytest.mark.tmux
@pytest.mark.parametrize("columns", [60, 200])
def test_watch_shows_sessions_live(shell: Shell, tmux: tmuxes.Server, columns: int) -> None:
    """It fits, follows the size of the terminal, scrolls below its header, and ends with q."""
    fill(shell)
    argv = ("sh", "-c", f"'{sys.executable}' -m bellboard watch; echo left with $?; stty; sleep 99")
    pane = tmux.open(argv, env=shell.env, columns=columns, lines=12)
    # the one that was working is unknown: no host was running, and nothing proves more
    head = r"\A 3 repositories · 4 sessions   !1 \+1 ~1 &1 +q quit *\n"
    pane.shows(head + r".*\n !.*rm -rf build.*\n \+.*\n ~.*\n &")
    tmux.run("resize-window", "-t", pane.id, "-x", "60", "-y", "4")
    pane.shows(head + r" !.*\n \+.*\n 1-2 of 4 lines  j k scroll", within=15)
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
def test_output_to_a_terminal_is_coloured_unless_disabled(
    shell: Shell, tmux: tmuxes.Server
) -> None:
    fill(shell)

    def shown(**env: str) -> str:
        argv = ("sh", "-c", f"'{sys.executable}' -m bellboard list; echo the end; sleep 99")
        pane = tmux.open(argv, env=shell.env | env)
        pane.shows("the end")
        return tmux.run("capture-pane", "-e", "-p", "-t", pane.id)

    assert "\x1b[1m\x1b[31m!" in shown()
    assert "\x1b" not in shown(NO_COLOR="1")
    assert "\x1b" not in shown(TERM="dumb")


def test_unwritable_output_is_reported(shell: Shell) -> None:
    fill(shell)
    shell.bellboard("list")
    for command in ("list", "status", "history", "record"):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [*shell.argv, command],
                env=shell.env,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        said = "bellboard: [Errno 28] No space left on device\n"
        assert (done.returncode, done.stderr) == (1, said)


# ---------------------------------------------------------------- quick


def test_status_and_json_load_nothing_heavy(shell: Shell) -> None:
    """Status bars run it every few seconds: 0.1 s, a fifth of it Python itself."""
    fill(shell)
    code = (
        "import sys; from bellboard.cli import main\n"
        "for args in (['status'], ['list', '--json'], ['history', '--json']): main(args)\n"
        "heavy = {'asyncio', 'rich', 'psutil', 'pynvim', 'watchfiles', 'asyncinotify', 'ssl'}\n"
        "print(sorted(heavy & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=shell.env, capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"


def test_list_json_is_what_is_published(shell: Shell) -> None:
    fill(shell)
    told = msgspec.json.decode(shell.bellboard("list", "--json").stdout)
    assert (told["v"], told["t"]) == (1, pytest.approx(time.time(), abs=30))
    first = told["sessions"][0]
    assert (first["status"], first["detail"], first["kind"]) == (
        "blocked",
        "rm -rf build",
        "permission",
    )
