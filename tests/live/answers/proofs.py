"""Proofs with several sessions: `python -m live answers proofs`."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any, Final

import psutil

from bellboard.core.request import Answer
from live.answers.elsewhere import across
from live.answers.leaving import first, held, leaving, runs
from live.answers.place import CAN, Place, answers_on, look, place, serving, shown
from live.report import figures
from rig.agents.agent import Agent
from rig.agents.scenarios import Tool, Turn, say, shell
from rig.editor import Editor
from rig.fetched import claude_code
from rig.waiting import GLANCE, eventually

TEN: Final = 10
SHOWS_ALL: Final = (2, 1, 200)  # shows a dialog for what a background subagent asks
WAYS: Final = """
local ways = {}
for _, way in ipairs(require('bellboard.answer.keys').now().request.ways or {}) do
  ways[#ways + 1] = way.name
end
return table.concat(ways, ' ')
"""
CLOSED: Final = "return require('bellboard.answer.keys').now() == nil"


def ten(version: str) -> None:
    """Ten sessions blocked at once, answered in one triage with one key each."""
    with place(version) as made:
        names = [f"p{n}" for n in range(TEN)]
        for name in names:
            turn = Turn((shell(f"touch {name}.txt"),))
            made.api.scenarios[name] = (turn, say(f"Done {name}."))
        editor = Editor("0.12", made.home, "nvim", **look())
        try:
            editor.shows("~")
            answers_on(made)
            for start in (made.prepare, made.start):  # trusted before one runs, as in `own`
                for name in names:
                    start(name)
            made.api.hold()
            for name, cli in zip(names, made.started, strict=True):
                cli.submit(f"play:{name} please")
            eventually(lambda: len([r for r in made.api.requests if r.scenario]) >= TEN)
            made.api.release()
            for cli in made.started:
                cli.shows(r"❯ 1\. Yes")
            eventually(lambda: blocked(editor) == TEN, "ten blocked")
            triaged(made, editor)
        finally:
            editor.close()


def triaged(made: Place, editor: Editor) -> None:
    editor.lua("vim.keymap.set('i', '<C-g>', '<Plug>(bellboard-triage)')")
    editor.press("ihello<C-g>")
    times, ways, begun, before = [], [], time.time(), ""
    for n in range(TEN):
        command = eventually(lambda b=before: shown(editor, b), f"request {n}")
        before, name = command, command.removeprefix("touch ").removesuffix(".txt")
        way = editor.lua(WAYS)
        eventually(lambda: editor.lua(CAN), "keys that count")
        key = "D" if n % 3 == 2 else "A"
        at = time.time()
        editor.press(key)
        next_ = made.next(name)
        there = (made.home.project / name / f"{name}.txt").exists()
        heard = next_.results
        assert there == (key == "A"), (name, key, heard)
        assert ("The user said no." in str(heard)) == (key == "D"), (name, key, heard)
        times.append(next_.time - at)
        ways.append(way)
        print(f"{name:4} {key} {way:14} {next_.time - at:6.3f} s  {heard}", flush=True)
    total = time.time() - begun
    print(f"{figures('each', times)}; all ten {total:.1f} s")
    eventually(lambda: editor.lua(CLOSED), "the end of the triage")  # until then it takes the keys
    assert "triage: 10 answered" in editor.messages()
    editor.press(" world")
    editor.shows("hello world")
    eventually(lambda: not made.left(), "no hook that waits")


def blocked(editor: Editor) -> int:
    count = "return vim.tbl_count(vim.tbl_filter(function(s) return s.status == 'blocked' end,"
    return int(editor.lua(f"{count} require('bellboard.sessions').list()))"))


def own(version: str) -> None:
    """Two sessions, two subagents, two equal calls in a row: each answer reaches its own."""
    equal = Turn((shell("touch same.txt"),))
    with place(version) as made, serving(made):
        made.api.scenarios |= {
            "equal": (equal, equal, say("Touched twice.")),
            "helpers": (Turn((helper("one"), helper("two"))), say("Both done."), say("Heard.")),
            "subone": (Turn((shell("touch one.txt"),)), say("One done.")),
            "subtwo": (Turn((shell("touch two.txt"),)), say("Two done.")),
            "first": (Turn((shell("touch first.txt"),)), say("First done.")),
            "second": (Turn((shell("touch second.txt"),)), say("Second done.")),
        }
        for name in "abc":  # trusted before one runs, which writes the same file
            made.prepare(name)
        a, b = made.start("a"), made.start("b")
        a.submit("play:first please")
        b.submit("play:second please")
        first, second = made.asked(a), made.asked(b)
        report("two sessions", made.give(second, Answer("allow")), made.give(first, Answer("deny")))
        assert "The user said no." in str(made.next("first").results)
        assert "no output" in str(made.next("second").results)
        a.submit("play:equal please")
        one = made.asked(a)
        said = made.give(one, Answer("deny", "Not the first"))
        two = eventually(lambda: other(made.asked(a), {one["id"]}), "the second call")
        again = made.give(one, Answer("allow"))
        assert one["digest"] != two["digest"] and not again["ok"], again
        report("two equal calls", said, made.give(two, Answer("allow")))
        assert "Not the first" in str(made.next("equal").results)
        assert "no output" in str(made.next("equal", 2).results)
        if claude_code.numbers(version) >= SHOWS_ALL:
            subagents(made, b, "background")
        else:
            unasked(made, b)
        one_by_one = {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}
        c = made.start("c", env=one_by_one)
        made.api.requests.clear()
        subagents(made, c, "foreground")
        eventually(lambda: not made.left(), "no hook that waits")


def subagents(made: Place, cli: Agent, how: str) -> None:
    """Deny what the first asks, and allow what the second asks."""
    cli.submit("play:helpers please")
    given: set[str] = set()
    for _ in range(2):
        request = eventually(lambda: other(made.asked(cli), given), "another question")
        given.add(request["id"])
        text = request["parts"][0]["text"]
        is_one = text == "touch one.txt"
        answer = Answer("stop" if is_one else "allow")
        report(f"{how} subagent: {text}, {answer.choice}", made.give(request, answer))
    eventually(lambda: (cli.launch.cwd / "two.txt").exists(), "what was allowed")
    assert not (cli.launch.cwd / "one.txt").exists()


def unasked(made: Place, cli: Agent) -> None:
    """An old CLI shows no dialog of a background subagent: what it asks is denied at once."""
    cli.submit("play:helpers please")
    for name in ("one", "two"):
        said = str(made.next(f"sub{name}").results)
        assert "Permission to use Bash has been denied" in said, said
        assert not (cli.launch.cwd / f"{name}.txt").exists()
    eventually(lambda: "not asking anything" in made.run("answer", made.session(cli)))
    print("background subagents: denied by the CLI, which asks nothing", flush=True)


def helper(name: str) -> Tool:
    kind = {"subagent_type": "general-purpose", "run_in_background": True}
    return Tool("Agent", {"description": name, "prompt": f"play:sub{name}", **kind})


def other(request: dict[str, Any], known: set[str]) -> dict[str, Any]:
    return request if request["id"] not in known else {}


def report(what: str, *said: dict[str, Any]) -> None:
    """Print the outcomes of answers; each must have been taken."""
    for each in said:
        assert each.get("outcome") == "taken", (what, each)
    print(f"{what}: " + ", ".join(f"{x['way']}, {x['text']}" for x in said), flush=True)


def killed(version: str) -> None:
    """Kill the CLI, and the host, while a hook waits: nothing is left two seconds later."""
    with place(version) as made:
        for what in ("CLI", "host"):
            with serving(made) as host:
                cli = made.start(f"killed-{what}")
                cli.submit("play:perm please")
                assert made.asked(cli)["way"] == "hook"
                family = [p.pid for p in psutil.Process(cli.pid).children(recursive=True)]
                hooks = [p for p in family if "emit" in " ".join(psutil.Process(p).cmdline())]
                (channel,) = made.left()
                assert hooks
                os.kill(cli.pid if what == "CLI" else host.pid, signal.SIGKILL)
                since = time.monotonic()
                eventually(lambda h=hooks: not any(map(runs, h)), "no hook", pause=GLANCE)
                gone = time.monotonic() - since
                eventually(lambda c=channel: c not in made.spool.pipes.found(), "no pipe")
                print(f"{what} killed: no hook after {gone:.2f} s,", end=" ")
                print(f"no pipe after {time.monotonic() - since:.2f} s", flush=True)
                if what == "host":  # the dialog is still there, and works
                    cli.answer("Enter")
                    cli.happens("Stop")


PROOFS: Final[dict[str, Callable[[str], None]]] = {
    "ten": ten,
    "own": own,
    "across": across,
    "killed": killed,
    "leaving": leaving,
    "held": held,
    "first": first,
}
