"""The scenes: what a user does with a CLI."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Final

from live.clis.stage import PASTE, STANDS, Stage
from rig.waiting import eventually, leniency, rest

Scene = Callable[[Stage], None]
NAP: Final = "perl -e 'sleep 3'"
RETRIES: Final = 12.0  # seconds after which a CLI that goes on trying is stopped


def text(s: Stage) -> None:
    s.start()
    s.prompt("slow 3")
    s.becomes("completed")


def tool(s: Stage) -> None:
    s.start()
    s.prompt(f"run {NAP}; run ls /nonexistent; edit {s.home.project}/hello.txt; say Done")
    s.becomes("completed")


def approve(s: Stage) -> None:
    s.start()
    s.asks()
    s.press(*s.stand.allow)
    s.becomes("completed")


def always(s: Stage) -> None:
    s.start()
    s.asks()
    s.press(*s.stand.always)
    s.becomes("completed")


def deny(s: Stage) -> None:
    s.start()
    s.asks()
    s.press(*s.stand.deny)
    s.becomes("idle|completed|error")


def escape(s: Stage) -> None:
    s.start()
    s.asks()
    s.press("Escape")
    s.becomes("idle|completed|error")


def interrupt(s: Stage) -> None:
    s.start()
    s.prompt("slow 20")
    s.becomes("working")
    s.press(*s.stand.stop)
    s.becomes("idle")
    s.press("C-u")
    s.prompt("run perl -e 'sleep 60'; say Done")
    s.becomes("working")
    s.press(*s.stand.stop)
    s.becomes("idle")


def question(s: Stage) -> None:
    s.start()
    s.prompt("ask; slow 3")
    s.becomes("blocked")
    s.press("Enter")
    rest(STANDS)
    if s.now.status == "blocked":
        s.press("Enter")
    s.becomes("completed")
    s.prompt("ask; slow 3")
    s.becomes("blocked")
    s.press("Escape")
    s.becomes("idle|completed")


def error(step: str) -> Scene:
    def play(s: Stage) -> None:
        s.start()
        s.prompt(step)
        try:
            s.becomes("error|completed", RETRIES)
        except AssertionError:  # it tries again and again
            s.press(*s.stand.stop)
            s.becomes("idle|error|completed")

    return play


def clear(s: Stage) -> None:
    s.start()
    s.prompt("say First")
    s.becomes("completed")
    s.enter(s.stand.clear)
    eventually(lambda: "say First" not in s.now.screen, "a new session")
    rest(STANDS)
    s.becomes("idle|completed")  # OpenCode then shows no session, and the last one stays
    s.prompt("slow 3")
    s.becomes("completed")


def resume(s: Stage) -> None:
    s.start()
    s.prompt("say First")
    s.becomes("completed")
    s.leave()
    s.start(*s.stand.resume)
    s.prompt("slow 3")
    s.becomes("completed")


def subagent(s: Stage) -> None:
    s.start()
    s.prompt(s.stand.spawn.format(asks=f"{s.stand.asking} {NAP}"))
    s.becomes("blocked")
    s.press(*s.stand.allow)
    rest(STANDS)
    s.becomes("blocked|completed")
    if s.now.status == "blocked":  # Qwen first asks whether it may run one
        s.press(*s.stand.allow)
    s.becomes("completed")


def queued(s: Stage) -> None:
    s.start()
    s.prompt("slow 5")
    s.becomes("working")
    s.enter("DO: slow 4")
    s.becomes("completed", 20.0 * leniency())


def compacted(s: Stage) -> None:
    s.start()
    s.prompt("slow 2")
    s.becomes("completed")
    s.prompt("say Second")
    s.becomes("completed")
    s.enter("/compact")
    rest(PASTE)
    s.becomes("completed|error|idle")


def typed(s: Stage) -> None:
    s.start()
    s.prompt("say First")
    s.becomes("completed")
    s.write("a half-written prompt")
    s.becomes("completed")
    s.press("C-u")
    s.becomes("completed")


def two(s: Stage) -> None:
    s.start()
    s.start()
    s.asks() if "approve" not in s.stand.lacks else s.prompt("slow 9")
    s.turn_to(0)
    s.prompt("slow 5")
    s.becomes("completed")
    s.turn_to(0)
    if s.now.status == "blocked":
        s.press(*s.stand.allow)
    s.becomes("completed")


def killed(s: Stage) -> None:
    s.start()
    s.prompt("slow 20")
    s.becomes("working")
    os.kill(s.now.pane.pid, signal.SIGKILL)
    s.ends()


SCENES: Final[dict[str, Scene]] = {
    "text": text,
    "tool": tool,
    "approve": approve,
    "always": always,
    "deny": deny,
    "Esc in a dialog": escape,
    "Esc while it works": interrupt,
    "question": question,
    "error 401": error("err 401"),
    "error 400": error("err 400"),
    "error 429": error("err 429"),
    "error 500": error("err 500"),
    "broken stream": error("drop"),
    "clear": clear,
    "resume": resume,
    "subagent": subagent,
    "two at once": two,
    "kill -9": killed,
}
#: And of what a CLI reports of itself.
SPOKEN: Final[dict[str, Scene]] = {
    **SCENES,
    "error 529": error("err 529"),
    "error 529, then not": error("err 529 2"),
    "queued prompt": queued,
    "compaction": compacted,
    "typing after a turn": typed,
}
FREE: Final = frozenset({"text", "tool", "Esc while it works"})  # in which nothing is asked
GONE: Final = frozenset({"kill -9"})  # that end it themselves
