"""Answer the requests of Codex and OpenCode by their servers.

Each scene proves what was answered with the model's next request, or with what the CLI did.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from bellboard.agents.agent import Agent, OpenRequest, Unanswered
from bellboard.agents.registry import agent_of
from bellboard.core.events import Origin
from bellboard.core.request import Answer, Request, check
from bellboard.core.session import Block, Session
from bellboard.hosting.turn import SharedBoard
from bellboard.storage.spool import Spool
from bellboard.storage.store import Store
from rig import home as homes
from rig.agents import codex, opencode
from rig.agents.model import Model
from rig.home import Home
from rig.tmux import Pane, Server
from rig.waiting import eventually, rest


class Board:
    """A board of its own, folded on demand."""

    def __init__(self, home: Home) -> None:
        self.spool = Spool(home.bellboard)
        self.spool.prepare()
        self.shared = SharedBoard(self.spool, Store(home.bellboard))

    def asks(self) -> list[tuple[Session, Block]]:
        """Return the open questions, oldest first."""
        while self.shared.turn(time.time()).more:
            pass
        found = [
            (s, b)
            for s in self.shared.board.sessions.values()
            for b in s.blocks.values()
            if b.shown
        ]
        return sorted(found, key=lambda x: x[1].since)

    def waits(self, count: int = 1) -> list[Asking]:
        """Wait until that many questions are open."""
        eventually(lambda: len(self.asks()) == count, f"{count} questions")
        return [Asking(self, s, b) for s, b in self.asks()]

    def rests(self) -> None:
        """Wait until nothing is open."""
        eventually(lambda: not self.asks(), "no question")


class Asking:
    """A request that stands, and how to answer it."""

    def __init__(self, board: Board, s: Session, b: Block) -> None:
        kept = board.spool.home / "answers" / b.request
        payload = kept.read_bytes().partition(b"\0\0")[2]
        self.cli: Agent = agent_of(s.agent)
        self.dialect = agent_of(s.agent)
        pid = next(iter(s.processes))
        self.asked = OpenRequest(s.session_id, pid, b.tool_id, payload, board.spool.home)
        made = self.dialect.request(payload, b.request, b.since, Origin(s.agent, pid))
        assert made is not None
        self.request: Request = made

    def says(self, choice: str, **more: Any) -> str:
        """Answer it; return why that did not count, or ""."""
        answer = Answer(choice, **more)
        assert check(self.request, answer) == ""
        try:
            self.cli.answer(self.asked, self.dialect.reply(self.asked.payload, answer))
        except Unanswered as reason:
            return str(reason)
        return ""


def say(pane: Pane, text: str) -> None:
    """Give a prompt."""
    pane.type(text)
    pane.shows(re.escape(text[-12:]))
    rest(0.3)  # what is typed fast counts as pasted, and Enter then as a line break
    pane.press("Enter")


@dataclass(frozen=True)
class Answered:
    """A question, its answer, and what must come of that."""

    cli: str
    name: str
    script: str  # of the model
    choice: str
    more: dict[str, Any] = field(default_factory=dict)  # of the answer
    hears: str = ""  # what the model gets
    then: str = ""  # what the terminal shows
    made: str = ""  # a file
    unmade: str = ""  # a file that is not there
    again: str = ""  # another script, which is not asked about


ROWS: Final = tuple(
    Answered(**json.loads(text))
    for text in Path(__file__).with_name("served.jsonl").read_text().splitlines()
)


@dataclass
class Answering:
    """A CLI in its terminal, its model, and a board."""

    pane: Pane
    home: Home
    model: Model
    board: Board
    dialog: str  # what it shows when it asks
    bullet: str  # what stands before the words of the model
    hides: bool = False  # its plugin is hidden when it asks

    def asks(self, name: str, script: str) -> Asking:
        """Make it ask; return the question, which is open."""
        say(self.pane, f"DO: {script}")
        asking = self.board.waits()[0]
        if self.hides:
            (self.home.bellboard / "opencode" / str(asking.asked.pid)).unlink(missing_ok=True)
        self.pane.shows(self.dialog)
        asking.cli.find(asking.asked)
        print(f"{name}: {asking.request.title}", [c.id for c in asking.request.choices])
        return asking

    def shows(self, words: str) -> None:
        """Wait until the model has said this."""
        self.pane.shows(f"{self.bullet}{words}|Conversation {words}")

    def has(self, name: str) -> bool:
        """Return whether a file is there."""
        return (self.home.project / name).exists()

    def play(self, row: Answered) -> Asking:
        """Answer a question; check what comes of it."""
        asking = self.asks(row.name, row.script)
        before, since = len(self.model.requests), time.monotonic()
        assert asking.says(row.choice, **row.more) == ""
        print(f"  taken after {time.monotonic() - since:.3f} s")
        if row.hears:
            told(self.model, row.hears)
        if row.then:
            self.shows(row.then)
        self.board.rests()
        assert not row.made or self.has(row.made)
        assert not row.unmade or not self.has(row.unmade)
        if row.then == "interrupted":
            assert not [r for r in self.model.requests[before:] if r.get("tools")]
        if row.again:
            say(self.pane, f"DO: {row.again}; say Not asked again")
            self.shows("Not asked again")
            self.board.rests()
        return asking

    def user_first(self, script: str, key: str, choice: str) -> None:
        """The user answers in the terminal; an answer that follows is refused."""
        asking = self.asks("the user first", f"{script} e1; say After e1")
        self.pane.press(key)
        self.shows("After e1")
        print("  refused:", why := asking.says(choice))
        assert why and self.has("e1")
        self.board.rests()

    def at_once(self, script: str, n: int, no: str, most: int) -> None:
        """Three answers at the same moment: what counts is what happens."""
        asking = self.asks("several at once", f"{script} f{n}; say After f{n} again")
        said = at_once([partial(asking.says, choice) for choice in ("allow", no, "allow")])
        print("  ", said)
        assert 1 <= said.count("") <= most
        allowed = "" in (said[0], said[2])
        if no == "deny":
            self.shows(f"After f{n} again")
        self.board.rests()
        eventually(lambda: allowed == self.has(f"f{n}"))
        rest(0.5)


def at_once(work: list[Callable[[], str]]) -> list[str]:
    """Do several things at once."""
    with ThreadPoolExecutor(len(work)) as pool:
        return list(pool.map(lambda each: each(), work))


def told(model: Model, text: str) -> bool:
    """Wait until the model got this from a tool."""
    return bool(
        eventually(lambda: [x for x in model.heard() if text in x], f"the model hears {text}")
    )


@contextmanager
def place() -> Iterator[tuple[Home, Server, Board]]:
    home = homes.build()
    tmux = Server(home)
    try:
        yield home, tmux, Board(home)
    finally:
        tmux.close()
        homes.remove(home)


def of_codex() -> None:
    with place() as (home, tmux, board), codex.running(home, tmux) as (cli, model):
        pane = cli.pane
        made = Answering(pane, home, model, board, "Would you like|Which colour", "• ")
        first, *_ = [made.play(row) for row in ROWS if row.cli == "codex"]
        assert first.says("allow") in (
            "it has already been answered",
            "Codex now asks something else",
        )
        made.user_first("esc touch", "y", "deny")
        for n in range(10):
            made.at_once("esc touch", n, "deny", most=3)
        asking = made.asks("the user and we at once", "esc touch g1; say After g1")
        said = at_once([lambda: asking.says("allow"), lambda: pane.press("Escape") or ""])
        print("  ", said, made.has("g1"))
        rest(1)
        board.rests()

        asking = made.asks("two in a row", "esc touch h1 & esc touch h2; say After h")
        assert asking.request.parts[0].text == "touch h1"
        assert asking.says("allow") == ""
        eventually(lambda: [a for a in board.waits() if a.request.parts[0].text == "touch h2"])
        second = board.waits()[0]
        assert asking.says("allow")  # the first is over
        assert second.says("deny") == ""
        made.shows("After h")
        assert made.has("h1") and not made.has("h2")
        board.rests()

        asking = made.asks("terminal killed", "esc touch j1; say After j1")
        os.kill(pane.pid, 9)
        eventually(lambda: pane.dead)
        print("  after the kill:", asking.says("allow") or "taken")
        eventually(lambda: made.has("j1"))
        board.rests()
        other = cli.open()
        say(other, "DO: esc touch k1; say After k1")
        asking = board.waits()[0]
        cli.close()
        print("  server killed:", asking.says("allow"))
        assert not made.has("k1")
    print("codex: done")


def of_opencode(args: tuple[str, ...] = (), plugin: bool = True) -> None:
    """Without the plugin, by HTTP, which the server then listens to."""
    with place() as (home, tmux, board), opencode.running(home, tmux, args) as (pane, model):
        asks = "Permission required|Which colour"
        made = Answering(pane, home, model, board, asks, "(?m)^ +", hides=not plugin)
        *rows, always = (row for row in ROWS if row.cli == "opencode")  # it then asks less
        first, *_ = map(made.play, rows)
        assert first.says("allow")
        made.user_first("run touch", "Enter", "stop")
        for n in range(10):
            made.at_once("run touch", n, "stop", most=1)
        say(pane, "DO: run touch h1 & run touch h2; say After h")
        waiting = {a.request.parts[0].text: a for a in board.waits(2)}
        assert waiting["touch h2"].says("allow") == ""
        assert waiting["touch h1"].says("allow") == ""
        made.shows("After h")
        print("two requests at once")
        board.rests()

        asking = made.asks("subagent", "spawn DO+ run touch i1 ~ say Sub done; say Parent done")
        print("  ", asking.request.thread, asking.request.session_id)
        assert asking.says("allow") == ""
        eventually(lambda: made.has("i1"))
        made.shows("Parent done")
        board.rests()
        made.play(always)
        asking = made.asks("killed", "edit j1; say After j1")
        os.kill(asking.asked.pid, 9)
        eventually(lambda: pane.dead)
        print("  refused:", why := asking.says("allow"))
        assert why
        print("  left:", [p.name for p in (home.bellboard / "opencode").iterdir()])
    print("opencode: done")


def by_http() -> None:
    """OpenCode without its plugin, whose server then listens."""
    of_opencode(("--port", "0"), plugin=False)


SERVED: Final[dict[str, Callable[[], None]]] = {
    "codex": of_codex,
    "opencode": of_opencode,
    "http": by_http,
}
