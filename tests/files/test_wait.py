"""`bellboard wait`: what counts, at once and later, with and without a host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from bellboard.cli.wait import BEGINS
from rig.host.far_feed import FarFeed
from rig.shell import Shell, fill
from rig.waiting import PATIENCE, eventually

NONE = "no session matches {0}; run `bellboard list` to see them all"


def waiting(shell: Shell, *args: str) -> subprocess.Popen[str]:
    """Start to wait for what has not been reached yet."""
    return shell.start("wait", *args, stderr=subprocess.PIPE)


def ended(waits: subprocess.Popen[str]) -> tuple[int, str, str]:
    shown, said = waits.communicate(timeout=PATIENCE)
    return waits.returncode, shown, said.replace("bellboard: ", "")


@pytest.mark.parametrize(
    ("args", "code", "shown", "said"),
    [
        ("b1", 0, "b1 completed web: All done.\n", ""),
        ("web a1", 0, "b1 completed web: All done.\na1 blocked api: rm -rf build\n", ""),
        ("a2 a1 --any", 0, "a1 blocked api: rm -rf build\n", ""),
        ("c1 --for idle,background", 0, "c1 background docs: mkdocs serve\n", ""),
        ("a1 c1 --timeout 0", 124, "a1 blocked api: rm -rf build\n", "c1 is still background"),
        (
            "c1 --timeout 4.5",
            124,
            "",
            "c1 is background; add background to --for if that is to count\n"
            "bellboard: c1 is still background",
        ),
        ("b1 --for error --timeout 0.2", 124, "", "b1 is still completed"),
        ("gone", 0, "gone ended gone\n", ""),
        ("gone --for completed", 3, "", "gone has ended"),
        ("b1 nobody", 3, "", NONE.format("nobody")),
        ("b1 nobody --any", 0, "b1 completed web: All done.\n", NONE.format("nobody")),
        ("api", 1, "", "2 sessions match api: a1 (title 0), a2 (title 1); give one of these ids"),
    ],
)
def test_what_is_so_already_counts_at_once(
    shell: Shell, args: str, code: int, shown: str, said: str
) -> None:
    fill(shell)
    shell.emitted(50, "gone", "SessionStart", cwd="/w/gone")
    shell.emitted(40, "gone", "SessionEnd", reason="logout")
    done = shell.bellboard("wait", *args.split(), code=code)
    assert (done.stdout, done.stderr) == (shown, f"bellboard: {said}\n" if said else "")


def test_it_says_which_of_a_project_it_is(shell: Shell) -> None:
    fill(shell)
    shell.bellboard("name", "b1", "shop")
    assert shell.bellboard("wait", "shop").stdout == "b1 completed web shop: All done.\n"


@pytest.mark.parametrize(
    "options", ["--for done", "--for=", "--for idle,", "--timeout -1", "--timeout nan"]
)
def test_what_no_session_can_come_to_is_refused(shell: Shell, options: str) -> None:
    assert "usage: bellboard wait" in shell.bellboard("wait", "a", *options.split(), code=2).stderr


Scene = Callable[[Shell], None]


def ends(shell: Shell) -> None:
    shell.emit("Stop", session_id="s")


def asks(shell: Shell) -> None:
    ask = {"tool_name": "Bash", "tool_input": {"command": "make"}}
    shell.emit("PermissionRequest", session_id="s", **ask)


def leaves(shell: Shell) -> None:
    shell.emit("SessionEnd", session_id="s", reason="logout")


def goes_on(shell: Shell) -> None:
    """/clear: the next session of the process is the one that is waited for."""
    shell.emit("SessionEnd", os.getpid(), session_id="s", reason="clear")
    shell.emit("SessionStart", os.getpid(), session_id="t", source="clear", cwd="/w/api")
    shell.emit("UserPromptSubmit", os.getpid(), session_id="t", prompt="again")
    shell.emit("Stop", os.getpid(), session_id="t")


@pytest.mark.parametrize("hosted", [False, True], ids=["no host", "a host"])
@pytest.mark.parametrize(
    ("happens", "args", "outcome"),
    [
        (ends, "s", (0, "s completed api\n", "")),
        (asks, "api", (0, "s blocked api: make\n", "")),
        (leaves, "s", (0, "s ended s\n", "")),
        (leaves, "s --for completed,error", (3, "", "s has ended\n")),
        (leaves, "s b1 --for error", (3, "", "s has ended\n")),
        (
            leaves,
            "s b1 --for error --any --timeout 2",
            (124, "", "s has ended\nb1 is still idle\n"),
        ),
        (goes_on, "s --for completed", (0, "t completed api\n", "")),
    ],
)
def test_it_waits_for_what_happens(
    shell: Shell, hosted: bool, happens: Scene, args: str, outcome: tuple[int, str, str]
) -> None:
    shell.emit("SessionStart", os.getpid(), session_id="s", cwd="/w/api")
    shell.emit("UserPromptSubmit", os.getpid(), session_id="s", prompt="x")
    shell.emit("SessionStart", session_id="b1", cwd="/w/web")
    if hosted:
        shell.start("serve")
    waits = waiting(shell, *args.split())
    happens(shell)
    assert ended(waits) == outcome


def test_two_wait_for_one_session_and_a_killed_host_is_not_missed(shell: Shell) -> None:
    """Whoever folds the end, both hear of it; the host is not needed, nor is the other one."""
    shell.emit("UserPromptSubmit", session_id="s", prompt="x", cwd="/w/api")
    serve = shell.start("serve")
    waits = [waiting(shell, "s", "--for", "completed") for _ in range(3)]
    for killed in (serve, waits.pop()):
        killed.kill()
        killed.communicate(timeout=PATIENCE)
    ends(shell)
    assert [ended(one) for one in waits] == [(0, "s completed api\n", "")] * 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_without_a_result(shell: Shell, number: int) -> None:
    shell.emit("UserPromptSubmit", session_id="s", prompt="x", cwd="/w/api")
    waits = waiting(shell, "s")
    waits.send_signal(number)
    assert ended(waits) == (128 + number, "", "")
    assert list((shell.home.bellboard / "hosts").iterdir()) == []


def test_what_was_seen_since_has_still_completed(shell: Shell) -> None:
    """It is idle on the board; an interrupted turn is so, too, and has not completed."""
    for sid in ("seen", "broken"):
        shell.emitted(9, sid, "UserPromptSubmit", prompt="x", cwd=f"/w/{sid}")
    shell.emitted(8, "seen", "Stop")
    shell.spool.write({"t": shell.now - 7, "goto": {"session_id": "seen"}})
    shell.spool.write({"t": shell.now - 7, "set": {"session_id": "broken", "status": "idle"}})
    assert {p["status"] for p in shell.sessions().values()} == {"idle"}
    for sid, wanted, code in (
        ("seen", "completed", 0),
        ("seen", "idle", 0),
        ("seen", "error", 124),
        ("broken", "idle", 0),
        ("broken", "completed", 124),
    ):
        told = shell.bellboard("wait", sid, "--json", "--timeout=0", "--for", wanted, code=code)
        assert json.loads(told.stdout)["status"] == ("idle" if code else wanted)


class Sent:
    """A session whose turn is over, and a prompt that was submitted to it after that."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        shell.emitted(20, "s", "UserPromptSubmit", prompt="one", cwd="/w/api")
        shell.emitted(10, "s", "Stop", last_assistant_message="one")
        shell.spool.write({"t": shell.now, "submit": {"session_id": "s", "by": "a shell"}})

    def wait(self, *args: str) -> dict[str, Any]:
        return dict(json.loads(self.shell.bellboard("wait", "s", "--json", *args).stdout))


def test_the_turn_before_a_prompt_is_no_answer_to_it(shell: Shell) -> None:
    sent = Sent(shell)
    waits = waiting(shell, "s", "--timeout", str(PATIENCE))
    shell.emit("UserPromptSubmit", session_id="s", prompt="two")
    shell.emit("Stop", session_id="s", last_assistant_message="two")
    assert ended(waits) == (0, "s completed api: two\n", "")
    assert sent.wait("--timeout", "0")["session"]["last_message"] == "two"


def test_a_prompt_that_begins_no_turn_is_not_waited_for_for_ever(shell: Shell) -> None:
    """Such as a command of the CLI: it has the time that a prompt takes to begin one."""
    sent = Sent(shell)
    told = json.loads(shell.bellboard("wait", "s", "--timeout", "0", "--json", code=124).stdout)
    assert (told["outcome"], told["status"]) == ("timeout", "completed")
    told = sent.wait("--timeout", str(PATIENCE))
    assert told["outcome"] == "reached"
    assert told["t"] > shell.now + BEGINS


def test_a_queued_prompt_is_waited_for(shell: Shell) -> None:
    """Between the turn that it waited for and its own, the session may rest for a moment."""
    shell.emitted(20, "s", "UserPromptSubmit", prompt="one", cwd="/w/api")
    shell.spool.write({"t": shell.now, "submit": {"session_id": "s"}})
    waits = waiting(shell, "s", "--for", "completed")
    shell.emit("Stop", session_id="s", last_assistant_message="one")
    eventually(lambda: shell.sessions()["s"]["status"] == "completed")
    shell.emit("UserPromptSubmit", session_id="s", prompt="two")
    shell.emit("Stop", session_id="s", last_assistant_message="two")
    assert ended(waits) == (0, "s completed api: two\n", "")


def test_a_session_of_another_machine_is_waited_for_by_whoever_follows_it(
    shell: Shell, dev: FarFeed
) -> None:
    """The process that followed it is killed: the one that waits does so from then on."""
    serve = shell.start("serve")
    eventually(lambda: "dev/claude/s1" in shell.sessions(), "its row")
    waits = waiting(shell, "dev/claude/s1", "--for", "completed")
    serve.kill()
    serve.communicate(timeout=PATIENCE)
    dev.say(dev.moved("s1", "completed", submitted=dev.now()))  # that one has not begun yet
    dev.say(dev.moved("s1", "working"), dev.moved("s1", "completed", project="api"))
    assert ended(waits) == (0, "dev/claude/s1 completed dev:api\n", "")
