"""The command line: real processes on a real spool, mostly without a host."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial

import msgspec
import pytest

from bellboard import __version__
from bellboard.cli import parser
from bellboard.storage.store import Editor, Store
from rig import warm
from rig.home import Home
from rig.shell import ROOT, Shell, fill
from rig.waiting import eventually

# ---------------------------------------------------------------- help


def test_without_arguments_it_prints_help(shell: Shell) -> None:
    """The help has one short line for each command."""
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
    assert "invalid choice: 'lits'; did you mean list?" in done.stderr
    assert "; choose from list, status, show" in shell.bellboard("frobnicate", code=2).stderr


def test_a_mistyped_option_or_agent_is_named(shell: Shell) -> None:
    done = shell.bellboard("list", "--jsno", code=2)
    assert "unrecognized arguments: --jsno; did you mean --json?\n" in done.stderr
    alow = shell.bellboard("answer", "a1", "alow", code=2)
    assert "'alow' is no choice; did you mean allow?" in alow.stderr
    yes = shell.bellboard("answer", "a1", "yes", code=2)
    assert "'yes' is no choice; `bellboard answer SESSION` lists those" in yes.stderr
    assert 'unknown agent "cladue"; did you mean claude?' in shell.fails("new", "--agent", "cladue")


@pytest.mark.parametrize("command", ["list", "explain a1", "machine list", "hooks check"])
def test_an_unknown_option_shows_the_usage_of_its_command(shell: Shell, command: str) -> None:
    done = shell.bellboard(*command.split(), "--nope", code=2)
    assert done.stderr.startswith(f"usage: bellboard {command.removesuffix(' a1')} [-h]")
    assert "unrecognized arguments: --nope\n" in done.stderr


def test_every_argument_of_every_command_is_explained() -> None:
    left = [parser()]
    while left:
        for action in (made := left.pop())._actions:
            if isinstance(action, argparse._SubParsersAction):
                left += action.choices.values()
            else:
                assert action.help, f"{made.prog}: {action.dest}"


def test_credentials_say_what_their_member_does_in_the_fleet(home: Home) -> None:
    """So `fleet join` needs no options, and refuses settings that the server would refuse."""
    folder = home.root / "credentials {}"  # braces as in a template

    def fleet(*words: str) -> tuple[str, str]:
        done = warm.run(["-m", "bellboard", "fleet", *words], env=home.env, timeout=60)
        return done.stdout, done.stderr

    def join(member: str, *words: str) -> tuple[str, str]:
        return fleet("join", "tls://127.0.0.1:1", "--creds", f"{folder / member}.creds", *words)

    def setup(*members: str) -> list[str]:
        named = [word for member in members for word in ("--member", member)]
        only = ("--only", "bob=dev,box") * any(m.startswith("bob") for m in members)
        steps = fleet("setup", str(folder), "--team", "core", *named, *only)[1]
        assert "openssl req" in steps and "nats-server -c" in steps and "=DNS:HOST " in steps
        return (folder / "dev.creds").read_text().splitlines()

    seed = setup("dev=publish", "alice=read,answer")[-1]
    for member, *more, said in (
        ("dev", "this machine is dev: it publishes its sessions, follows nobody"),
        ("alice", "--machine", "box", "this machine is box: it follows others, and publishes"),
    ):
        out, why = join(member, *more)
        assert out == "" and why.startswith("bellboard: tls://127.0.0.1:1 cannot be reached"), out
        assert said in fleet("status")[0]
    for more, why in (
        (["--machine", "box"], "is for the machine dev, not box; leave out --machine"),
        (["--team", "other"], "is for the team core, not other; leave out --team"),
        (["--read-only"], "permits dev to publish; leave out"),
    ):
        done = join("dev", *more)
        assert done[0] == "" and why in done[1]
    *told, kept = setup("dev=publish,read", "alice=read,answer", "bob=read")
    assert "leave out --follow api" in join("bob", "--follow", "box", "--follow", "api")[1]
    for more, follows in (([], ["dev", "box"]), (["--follow", "box"], ["box"])):
        join("bob", *more)
        with closing(Store(home.bellboard)) as store:
            assert follows == store.option("fleet")["follow"]
    assert kept == seed and "# may: publish, read" in told


# ---------------------------------------------------------------- list, status


def test_without_sessions_list_says_how_to_start_and_status_prints_nothing(shell: Shell) -> None:
    """Whichever agent the user has; `new` alone starts Claude Code."""
    shell.env["PATH"] = str(shell.home.bin)
    assert shell.bellboard("status").stdout == ""
    first, missing, _, start, *rest = shell.bellboard("list").stdout.splitlines()
    assert (first, missing) == (" No sessions yet.", " There is no claude on PATH.")
    assert start.endswith("  :Bellboard new --agent NAME")
    (shell.home.bin / "claude").write_text("#!/bin/sh\n")
    (shell.home.bin / "claude").chmod(0o755)
    said = shell.bellboard("list").stdout.splitlines()
    assert said == [first, "", start.removesuffix(" --agent NAME"), *rest]
    assert "hooks:   bellboard hooks install" in said[-3] and ":Bellboard demo" in said[-1]


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
    picture = ROOT / f"tests/data/screens/cli-shell-{columns}.txt"
    shown = shell.bellboard("list", COLUMNS=str(columns)).stdout
    if request.config.getoption("--update-screens"):
        picture.write_text(shown)
    assert shown == picture.read_text()
    counted = "!1 api: rm -rf build 2m  +1 ~1 &1  stale 6m\n"
    assert shell.bellboard("status").stdout == counted
    assert shell.bellboard("status", "--width", "24").stdout == "!1 2m  +1 ~1 &1  stale 6m\n"


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
    assert list(told[0]) == ["v", "t", "session_id", "from", "to", "rule", "why"]
    shown = re.sub(r"\d\d:\d\d:\d\d", "00:00:00", shell.bellboard("history", "a1").stdout)
    lines = [line for line in shown.splitlines() if "→" in line]  # at midnight, of two days
    assert [line.split("  ")[:3] for line in lines] == [
        [" 00:00:00", "api", "new → idle"],
        [" 00:00:00", "api", "idle → working"],
        [" 00:00:00", "api", "working → blocked"],
    ]
    assert {"api title 0", "api title 1", "web", "docs"} == {
        line.split("  ")[1].strip()
        for line in shell.bellboard("history").stdout.splitlines()
        if "→" in line
    }
    story = shell.bellboard("explain", "a1").stdout
    assert re.search(r"PermissionRequest +.*\(Bash: rm -rf build\)$", story, re.M)
    assert re.search(r"question stood +working → blocked  ", story)
    since = shell.bellboard("history", "--since", "5", "--json").stdout.splitlines()
    assert [json.loads(x)["session_id"] for x in since] == ["a1", "a2"]  # a2: see `look`


def test_explain_says_whether_the_float_lists_a_session(shell: Shell) -> None:
    """Of one that is blocked: in which Neovim, or why not."""
    fill(shell)

    def said(sid: str = "a1") -> str:
        first, second, *_ = shell.bellboard("explain", sid).stdout.splitlines()
        assert re.match(r" \w+ since [\d:]+: hooks say so", first)
        return second.strip()

    assert said() == "not in the float: no Neovim with a screen is open"
    with closing(Store(shell.home.bellboard)) as store, store.transaction() as tx:
        tx.set_editor(Editor(os.getpid(), "/tmp/nvim.1", "", "", shell.now - 9))
        tx.set_editor(Editor(os.getppid(), "/tmp/nvim.2", "", "", 0.0))
    expected = "by default settings, in the float of /tmp/nvim.1, which had the focus last;"
    assert said().startswith(expected)
    shell.spool.write({"t": shell.now, "snooze": {"session_id": "a1", "until": shell.now + 900}})
    until = time.strftime("%H:%M:%S", time.localtime(shell.now + 900))
    assert said() == f"not in the float: snoozed until {until}"
    shell.spool.write({"t": shell.now, "park": {"session_id": "a1", "parked": True}})
    assert said() == "not in the float: parked"
    assert said("b1") == ""  # it has completed


def test_answers_on_says_that_no_hooks_would_wait(shell: Shell) -> None:
    """Until some are installed."""
    none = "answers on: no hooks yet; `bellboard hooks install`\n"
    assert shell.bellboard("answers", "on").stdout == none
    shell.bellboard("hooks", "install", "--agent", "codex", "--yes")
    on = "answers on: hooks wait for an answer from here\n"
    assert shell.bellboard("answers").stdout == on
    off = "answers off: an answer is typed into the terminal\n"
    assert shell.bellboard("answers", "off").stdout == off


def test_answers_are_in_the_history_and_rules_come_from_them(shell: Shell) -> None:
    """The history has who answered from where, and the outcome; no rule is added by itself."""
    fill(shell)
    rule = {"toolName": "Bash", "ruleContent": "make test"}
    ask = {
        "tool_name": "Bash",
        "tool_input": {"command": "make test"},
        "permission_suggestions": [{"type": "addRules", "rules": [rule], "behavior": "allow"}],
    }
    answer = {"session_id": "a2", "choice": "allow", "way": "hook", "by": "Neovim 4711"}
    for n in range(3):
        none = " No permission in the log was granted 3 times or more.\n"
        assert shell.bellboard("rules").stdout == none
        shell.emitted(60 - n, "a2", "PermissionRequest", **ask)
        shell.spool.write({"t": shell.now - 59.9 + n, "answer": answer})
        followed = {**answer, "outcome": "it went on after 0.1 s"}
        shell.spool.write({"t": shell.now - 59.8 + n, "answer": followed})
        shell.emitted(59.7 - n, "a2", "PostToolUse", **ask)
    assert shell.bellboard("rules").stdout.splitlines() == [
        " To be asked less often, add to permissions.allow in .claude/settings.local.json:",
        '   "Bash(make test)"  asked 3 times in /w/api',
    ]
    told = json.loads(shell.bellboard("rules", "--json").stdout)
    assert (told["rule"], told["count"], told["folders"]) == ("Bash(make test)", 3, ["/w/api"])
    said = "(allow, by hook, from Neovim 4711)"
    assert shell.bellboard("history", "a2").stdout.count(said) == 3
    story = shell.bellboard("explain", "a2").stdout
    assert story.count(said) == 3
    assert story.count("The outcome of your answer (it went on after 0.1 s)") == 3
    lines = map(json.loads, shell.bellboard("history", "a2", "--json").stdout.splitlines())
    answers = [line for line in lines if "answer" in line]
    assert [line["outcome"] for line in answers] == ["", "it went on after 0.1 s"] * 3
    assert {(line["answer"], line["way"], line["by"]) for line in answers} == {
        ("allow", "hook", "Neovim 4711")
    }


# ---------------------------------------------------------------- record, replay


def test_a_recording_replays_to_the_history(shell: Shell) -> None:
    fill(shell)
    shell.bellboard("list")  # looks at them
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
    trace = ROOT / "tests/data/traces/recordings/perm_yes.jsonl"
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
    file.write_text("\n")
    assert "mixed.jsonl: there is no trace in it; " in shell.fails("replay", str(file))


# ---------------------------------------------------------------- evidence by hand


def test_sessions_can_be_corrected_labelled_named_parked_snoozed_and_forgotten(
    shell: Shell,
) -> None:
    fill(shell)
    for command, said in (
        (("set", "a1", "working"), ""),
        (("label", "a1", "HEAVY"), "api: labeled HEAVY\n"),
        (("name", "a1", "my session"), "api: named my session\n"),
        (("park", "a1"), "api: parked; park again to unpark it\n"),
        (("snooze", "a1", "5"), "api: snoozed until "),
        (("forget", "c1"), ""),
    ):
        printed = shell.bellboard(*command).stdout
        assert printed.startswith(said) and bool(printed) == bool(said)
    sessions = shell.sessions()
    told = sessions["a1"]
    assert (told["status"], told["label"], told["name"]) == ("working", "HEAVY", "my session")
    assert "parked" in told["markers"]
    assert told["snoozed_until"] == pytest.approx(time.time() + 300, abs=30)
    assert "c1" not in sessions
    for what in ("label", "name"):
        assert shell.bellboard(what, "a1").stdout == f"api: {what} removed\n"
    assert shell.bellboard("park", "a1").stdout == "api: unparked\n"
    assert shell.bellboard("snooze", "a1").stdout == "api: snooze ended\n"
    assert shell.bellboard("snooze", "a1", "0").stdout == "api: not snoozed\n"
    told = shell.sessions()["a1"]
    assert not {"label", "name", "snoozed_until"} & told.keys()
    assert "parked" not in told["markers"]


def test_a_session_is_stopped_by_name_and_nothing_else_is(shell: Shell) -> None:
    """The process ends if it is proven to be the session's; any other is left alone."""
    fill(shell)
    assert shell.fails("stop", "b1") == (
        "bellboard: b1: its process is unknown; stop it in its terminal\n"
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


@pytest.mark.parametrize(
    "words",
    [
        *("answer @ allow", "answer @", "answer @ --popup", "answer a1 allow --digest @"),
        *("history @", "record --session @", "goto @ --next", "stop @", "forget @"),
        *("hooks uninstall --yes --agent @", "hooks install --yes --settings @"),
        *("hooks print --agent @", "hooks install --dry-run --cli @"),
        *("list --machine @", "list --ended --dir @", "status --dir @", "tmux --remove --socket @"),
        *("fleet join tls://h:1 --creds @", "fleet join tls://h:1 --follow @"),
    ],
)
def test_an_empty_name_never_stands_for_the_default(shell: Shell, words: str) -> None:
    """A shell passes an empty name for a variable that is not set."""
    fill(shell)
    said = shell.bellboard(*(word.strip("@") for word in words.split()), code=2)
    assert "it is empty" in said.stderr and not said.stdout


@pytest.mark.parametrize("minutes", ["inf", "nan", "-5", "x"])
@pytest.mark.parametrize("command", ["snooze a1", "history --since", "record --minutes"])
def test_minutes_are_a_length_of_time(shell: Shell, command: str, minutes: str) -> None:
    said = shell.bellboard(*command.split(), minutes, code=2).stderr
    assert f"not a number of minutes: {minutes}" in said


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("list --ended --all --machine dev", "--all and --machine list running sessions; leave"),
        ("list --ended --machine dev", "--all and --machine list running sessions; leave"),
        ("goto api --next", "give either a session or --next; "),
        ("goto", "give either a session or --next; "),
        ("serve --notices []", "--notices: expected a JSON object, not []"),
        ("serve --notices {", "--notices: expected a JSON object: "),
    ],
)
def test_no_option_is_ignored(shell: Shell, command: str, why: str) -> None:
    """An impossible option is refused, with the possible ones."""
    assert why in shell.fails(*command.split())


def test_a_snooze_has_an_end(shell: Shell) -> None:
    fill(shell)
    said = shell.bellboard("snooze", "a1", "1e300", code=2).stderr
    assert "longer than a year: 1e300; park the session instead" in said
    assert "snoozed_until" not in shell.sessions()["a1"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("nobody", "no session matches nobody; run `bellboard list`"),
        ("webb", "no session matches webb; did you mean web?"),
        ("b1 allow", "b1 is not asking anything; "),
        ("allow", "name the session: "),
    ],
)
def test_an_answer_that_is_not_given_says_why_as_json_too(
    shell: Shell, words: str, why: str
) -> None:
    """The reason is on standard output, as for an answer that was declined."""
    fill(shell)
    assert why in shell.fails("answer", *words.split())
    done = shell.bellboard("answer", *words.split(), "--json", code=1)
    said = json.loads(done.stdout)
    assert (said.pop("why").startswith(why), said) == (True, {"v": 1, "ok": False})
    assert done.stderr == ""


def test_an_invalid_correction_is_reported(shell: Shell) -> None:
    fill(shell)
    assert shell.fails("set", "a1", "dancing") == (
        "bellboard: cannot set the status dancing; use one of "
        "blocked, error, completed, working, background, idle\n"
    )
    shell.bellboard("forget", "b1")
    assert "bellboard: session b1: not changed: " in shell.fails("set", "b1", "idle")


# ---------------------------------------------------------------- odd homes


def test_a_relative_home_is_refused(shell: Shell) -> None:
    for command in ("list", "status", "watch", "serve"):
        assert shell.fails(command, BELLBOARD_HOME="here") == (
            "bellboard: BELLBOARD_HOME is not an absolute path: here; "
            "set BELLBOARD_HOME to an absolute path\n"
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
    assert done.stdout == "!1 api: rm -rf build 2m  +1 ~1 &1  stale 6m\n"
    assert "board.db was written by a newer bellboard; the output may be out of date" in done.stderr
    assert shell.spool.pending() == 1
    with sqlite3.connect(shell.home.bellboard / "board.db") as db:
        db.execute("ALTER TABLE sessions RENAME TO somethings")
    assert "newer bellboard and cannot be read; update this bellboard" in shell.fails("list")


def test_a_tilde_before_no_user_is_part_of_a_name(shell: Shell) -> None:
    """A shell passes such a tilde on."""
    assert shell.fails("status", "--dir", "~nobodyxyz").endswith("~nobodyxyz is not a directory\n")


def test_what_would_change_a_newer_database_is_refused(shell: Shell) -> None:
    """One line says what to do."""
    shell.bellboard("list")
    with sqlite3.connect(shell.home.bellboard / "board.db") as db:
        db.execute("PRAGMA user_version = 99")
    said = shell.fails("answers", "on")
    assert "board.db was written by a newer bellboard; nothing in it was changed: update" in said
    assert "internal error" not in said


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


# ---------------------------------------------------------------- quick


#: Modules that take long to load, and parts of ours that few commands need.
HEAVY = {
    *("asyncio", "ssl", "socket", "subprocess", "logging", "dataclasses", "hashlib"),
    *("inspect", "typing_extensions"),
    *("psutil", "pynvim", "watchfiles", "asyncinotify"),
    *(f"bellboard.{name}" for name in ("agents.codex", "core.shellwords")),
    *(f"bellboard.cli.{name}" for name in ("answer", "doctor", "fleet", "hooks", "tmux")),
}
#: An answer is bound to digests, and its session to what its CLI says; its terminal is not asked.
NOT_FOR_ANSWERS = {"shutil", "bellboard.hosting.keyboard"}
FOR_ANSWERS = {"hashlib", "bellboard.cli.answer"}


def loaded(shell: Shell, *commands: str) -> set[str]:
    """Return the imports of a process after these commands."""
    code = (
        "import sys; from bellboard.cli import main\n"
        "for command in sys.argv[1:]: main(command.split())\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    argv = [sys.executable, "-c", code, *commands]
    done = subprocess.run(argv, env=shell.env, capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


def test_commands_load_nothing_heavy(shell: Shell) -> None:
    """While a host runs: people wait for them, and status bars run them every few seconds."""
    fill(shell)
    shell.start("serve")
    shell.bellboard("list")
    quick = ("list", "list --json", "status", "history", "history --json", "machine list")
    assert loaded(shell, *quick, "goto nobody") & HEAVY == set()


def test_only_the_agents_of_sessions_are_loaded(shell: Shell) -> None:
    """Each agent has a dialect of its own, and a session speaks one of them."""
    fill(shell)
    names = (name.split(".") for name in loaded(shell, "list"))
    agents = {name[2] for name in names if len(name) == 4 and name[3] in ("agent", "dialect")}
    assert agents == {"claude"}


def test_an_answer_needs_no_event_loop(shell: Shell) -> None:
    """Loading asyncio would take longer than giving the answer."""
    fill(shell)
    (asks,) = (p["session_id"] for p in shell.sessions().values() if p["status"] == "blocked")
    modules = loaded(shell, f"answer {asks} allow")
    assert "bellboard.hosting.answering" in modules
    assert modules & (HEAVY - FOR_ANSWERS | NOT_FOR_ANSWERS) == set()
    assert not {name for name in modules if name.startswith("bellboard.system.tmux")}


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


@pytest.mark.parametrize("command", ["list", "doctor", "hooks install"])
def test_without_its_packages_it_says_what_to_do(home: Home, command: str) -> None:
    """In one line, which Neovim shows as well."""
    entry = ROOT / "rplugin/python3/bellboard/__main__.py"
    argv = [sys.executable, "-S", "-E", str(entry), *command.split()]
    done = subprocess.run(argv, env=home.env, capture_output=True, text=True)
    what = f'{sys.executable} has no module "msgspec"'
    where = "install it there, or run `:Bellboard build` in Neovim if the option python is not set"
    assert done.stderr == f"bellboard: {what}; {where}\n"
    assert done.returncode == 1


def test_a_python_without_a_module_of_its_own_is_said_to_be_unfit(home: Home) -> None:
    """No build would help."""
    entry = ROOT / "rplugin/python3/bellboard/__main__.py"
    argv = [sys.executable, str(ROOT / "tests/rig/host/no_sqlite.py"), "-E", str(entry), "list"]
    done = subprocess.run(argv, env=home.env, capture_output=True, text=True)
    what = f'{sys.executable} was built without its module "_sqlite3"; use another Python'
    assert (done.returncode, done.stderr) == (1, f"bellboard: {what}\n")
