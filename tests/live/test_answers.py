"""What is answered and what is sent is what the real CLI takes: the model's next request has it.

A hook that waits never holds it up. One session and a few of each; `make live ONLY=answers` and
`ONLY="answers sending"` do them all.
"""

from __future__ import annotations

import json
import shlex

import pytest

from live.answers.giving import CASES, give
from live.answers.place import PROGRAM, place, serving
from live.answers.sending import works
from rig.agents.scenarios import Turn, say, shell
from rig.fetched import claude_code
from rig.waiting import eventually

pytestmark = [pytest.mark.live, pytest.mark.tmux, pytest.mark.timeout(300)]

SOME = (
    *("permission: stop", "permission: edit", "permission: allow"),
    *("make: always", "touch: edits", "questions: choose"),
)
ALLOW = (
    b'{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}'
)


def wrong(*names: str) -> dict[str, str]:
    cases = [case for case in CASES if case.name in names]
    assert len(cases) == len(names)
    return {case.name: why for case, why in give(claude_code.VERSION, cases) if why}


@pytest.mark.smoke
def test_the_model_gets_why_it_may_not() -> None:
    assert wrong("permission: deny with a message") == {}


def test_the_model_gets_what_was_answered() -> None:
    """Each choice has its own effect, and none is asked for twice."""
    assert wrong(*SOME) == {}


def test_a_prompt_is_queued_while_it_works_and_esc_interrupts() -> None:
    with place() as made:
        told = dict(works(made))
    assert told == dict.fromkeys(told, "")
    assert {"queued", "interrupted"} <= told.keys()


@pytest.mark.parametrize("version", [claude_code.VERSION, "2.1.76"])
def test_a_permission_is_answered_by_the_hook_or_in_the_terminal(version: str) -> None:
    """The dialog shows meanwhile; the question's end releases the hook; /exit does not wait."""
    with place(version) as made, serving(made):
        cli, spool = made.start("session"), made.spool

        def waiting() -> list[str]:
            return [name for name in made.left() if spool.pipes.is_read(name)]

        def asks() -> str:
            cli.submit("play:perm please")
            cli.shows(r"❯ 1\. Yes")
            return eventually(waiting, "a hook that waits")[0]

        channel = asks()
        # A hook takes its pipe before its event is there.
        item = eventually(lambda: spool.questions.read(spool.pipes.owner(channel)), "its event")
        assert spool.pipes.send(channel, item.name, item.payload, ALLOW)
        cli.happens("PostToolUse")
        assert (cli.launch.cwd / "made.txt").exists()
        cli.happens("Stop")
        asks()
        cli.answer("Enter")
        eventually(lambda: not waiting(), "the end of the hook")
        cli.happens("Stop", 2)
        asks()
        cli.answer("Escape")
        eventually(lambda: not waiting(), "the end of the hook")
        cli.shows("Interrupted|rejected|denied")
        cli.exit()


def test_an_agent_may_ask_and_wait_and_not_answer() -> None:
    """A real tree: the CLI, the shell of its Bash tool, and our command, about another session."""
    with place() as made:
        asks = made.start("asks")
        asks.submit("play:perm please")
        digest = made.asked(asks)["digest"]
        sid, bellboard = made.session(asks), shlex.join(PROGRAM)
        answer = f"{bellboard} answer {sid} allow --digest {digest}; echo code $?"
        wait = f"{bellboard} wait {sid} --timeout 60; {bellboard} send {sid} x --submit"
        made.api.scenarios["meddle"] = (*(Turn((shell(x),)) for x in (answer, wait)), say("Done."))
        other = made.start("other", args=("--allowedTools", "Bash"))
        other.submit("play:meddle please")
        other.happens("Stop")
        said = ["".join(r.results) for r in made.api.requests if r.scenario == "meddle"]
        assert "only a person answers, and claude, process " in said[1]
        assert "code 1" in said[1]
        assert f"{sid} blocked asks: touch made.txt" in said[2]
        assert "it asks something: answer that first" in said[2]
        asks.shows("Do you want to")
        assert not (asks.launch.cwd / "made.txt").exists()


def test_what_is_sent_is_waited_for_and_not_the_turn_before_it() -> None:
    """At rest, and in the queue of a turn that is not yet over."""
    with place() as made:
        for name in ("one", "two", "three"):
            made.api.scenarios[name] = (Turn((shell("echo x; sleep 1"),)), say(f"That was {name}."))
        cli = made.start("sent", args=("--allowedTools", "Bash"))
        sid = made.session(cli)

        def send(name: str) -> str:
            said = made.run("send", sid, f"play:{name} please", "--submit", "--json")
            return str(json.loads(said).get("outcome"))

        def waited(*more: str) -> str:
            said = made.run("wait", sid, "--for", "completed", "--timeout", "60", "--json", *more)
            told = json.loads(said)
            return f"{told['outcome']}: {told['session'].get('last_message')}"

        assert send("one") == "taken"
        assert waited() == "reached: That was one."
        assert send("two") == "taken"
        assert send("three") == "queued"
        assert waited() == "reached: That was three."
        assert waited("--timeout", "0") == "reached: That was three."
