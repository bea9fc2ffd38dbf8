"""Delays by a hook that waits: the end of a CLI, and its dialog, with the hook and without."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from typing import Final

import psutil

from bellboard.core.request import Answer
from live.answers.place import Place, place, serving
from live.report import figures
from rig.agents.agent import Agent, spoken
from rig.agents.scenarios import Tool, Turn, say, shell
from rig.fetched import claude_code
from rig.waiting import GLANCE, eventually

EACH: Final = 7  # with and without
ASKS: Final = "Do you want to proceed"
SOON: Final = 0.005


def leaving(version: str) -> None:
    """Type /exit after a yes in the terminal, and kill the pane while a dialog is open."""
    with place(version) as made, serving(made):
        ends: dict[str, Callable[[Agent], float]] = {"/exit": _exits, "kill-pane": _killed}
        for what, end in ends.items():
            times: dict[str, list[float]] = {"on": [], "off": []}
            for n in range(2 * EACH):
                answers = ("on", "off")[n % 2]
                made.run("answers", answers)
                eventually(lambda a=answers: bool(made.spool.pipes.found()) == (a == "on"))
                cli = made.start(f"{what.strip('/')}{n}")
                cli.submit("play:perm please")
                cli.shows(ASKS)
                eventually(lambda c=cli, a=answers: bool(hooks(c)) == (a == "on"), "its hook")
                times[answers].append(end(cli))
            report(what, "answers on", times["on"], "off", times["off"])
        eventually(lambda: not made.left(), "no hook that waits")


def _exits(cli: Agent) -> float:
    cli.answer("Enter")
    cli.happens("Stop")
    eventually(lambda: spoken(cli.text()) == "idle", "the end of the turn")
    cli.submit("/exit")
    return _gone(cli)


def _killed(cli: Agent) -> float:
    cli.pane.close()  # type: ignore[union-attr]
    return _gone(cli)


def _gone(cli: Agent) -> float:
    at = time.monotonic()
    eventually(lambda: not runs(cli.pid), "the end of the CLI", pause=SOON)
    return time.monotonic() - at


def hooks(cli: Agent) -> list[int]:
    """Return the hooks of a CLI that wait."""
    family = psutil.Process(cli.pid).children(recursive=True)
    return [p.pid for p in family if is_hook(p)]


def is_hook(process: psutil.Process) -> bool:
    try:
        command = " ".join(process.cmdline())  # empty if it has ended
    except psutil.NoSuchProcess:
        return False
    return "emit" in command and "PermissionRequest" in command


def runs(pid: int) -> bool:
    """Return whether a process runs: nobody may have waited yet for one that has ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def held(version: str) -> None:
    """Time the dialog of a background subagent from the model's request: with the hook, without."""
    helper = {"subagent_type": "general-purpose", "run_in_background": True}
    asks = Tool("Agent", {"description": "one", "prompt": "play:subone", **helper})
    with place(version) as bare, place(version) as made, serving(made):
        bare.hooked = False
        times: dict[str, list[float]] = {"with": [], "without": []}
        places = {"with": made, "without": bare}
        clis = {name: each.start("session") for name, each in places.items()}
        for n in range(2 * EACH):
            for name, each in places.items():
                each.api.scenarios |= {
                    f"go{n}": (Turn((asks,)), say("Started."), say("Heard.")),
                    "subone": (Turn((shell(f"touch h{n}.txt"),)), say("Done.")),
                }
                times[name].append(_dialog(each, clis[name], n))
        report("dialog of a background subagent", "hook", times["with"], "none", times["without"])


def _dialog(made: Place, cli: Agent, n: int) -> float:
    before = len(made.api.requests)
    cli.submit(f"play:go{n} please")
    eventually(lambda: ASKS in cli.text(), f"dialog {n}", pause=SOON)
    shown = time.time()
    asked = next(r for r in made.api.requests[before:] if r.scenario == "subone")
    cli.answer("Enter", dialog=ASKS)
    eventually(lambda: (cli.launch.cwd / f"h{n}.txt").exists(), "what was allowed", pause=GLANCE)
    eventually(lambda: _heard(made, f"go{n}"), "the end of the turn", pause=GLANCE)
    eventually(lambda: spoken(cli.text()) == "idle", "rest")
    return shown - asked.time


def _heard(made: Place, scenario: str) -> bool:
    return any(r.step >= 2 for r in made.api.played(scenario))


def first(version: str) -> None:
    """The user answers each kind of question in the terminal; an answer that follows is refused."""
    kinds = {
        "permission": ("perm", Answer("deny", "Not from here"), (), "Enter"),
        "question": ("ask", Answer("choose", answers={"Which colour?": ["Blue"]}), (), "Enter"),
        "plan": ("plan", Answer("keep", "Not from here"), ("--permission-mode", "plan"), "Enter"),
        "form": ("elicit", Answer("fill", content={"name": "Ada"}), None, "Escape"),
    }
    for kind, (scenario, answer, args, key) in kinds.items():
        if kind == "form" and claude_code.numbers(version) < (2, 1, 119):
            continue
        with place(version) as made, serving(made):
            cli = made.start("session", made.form() if args is None else args)
            cli.submit(f"play:{scenario} please")
            request = made.asked(cli)
            cli.answer(key)
            reply = made.give(request, answer)
            assert not reply["ok"], reply
            after = made.next(scenario)
            said = str(after.results)
            assert not re.search("Not from here|Blue|Ada", said), said
            cli.happens("Stop")
            eventually(lambda c=cli: not hooks(c), "no hook that waits")
            eventually(lambda m=made: not m.left(), "no pipe that is taken")
            assert not re.search("hook (error|failed|timed)", cli.text(), re.IGNORECASE)
            print(f"{version} {kind}: the user first; refused: {reply['why']}", flush=True)


def report(what: str, one: str, times: list[float], other: str, others: list[float]) -> None:
    """Print the medians of two, their ranges, and their ratio."""
    ratio = statistics.median(times) / statistics.median(others)
    print(f"{what}: ratio {ratio:.2f}; {figures(one, times)}; {figures(other, others)}", flush=True)
