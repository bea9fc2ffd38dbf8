"""Answer the requests of Codex and OpenCode by their servers.

Each scene proves what was answered with the model's next request, or with what the CLI did.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from bellboard.agents.agent import Agent, OpenRequest, Unanswered
from bellboard.agents.registry import agent_of
from bellboard.core.events import Origin
from bellboard.core.request import Answer, Request, check
from bellboard.core.session import Block, Session
from bellboard.hosting.turn import SharedBoard
from bellboard.storage.spool import Spool
from bellboard.storage.store import Store
from rig import codex, opencode
from rig import home as homes
from rig.home import Home
from rig.model import Model
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


def both(work: list[Callable[[], str]]) -> list[str]:
    """Do several things at once."""
    said = [""] * len(work)

    def one(n: int) -> None:
        said[n] = work[n]()

    threads = [threading.Thread(target=one, args=(n,)) for n in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return said


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

        def scene(name: str, script: str) -> Asking:
            say(pane, f"DO: {script}")
            asking = board.waits()[0]
            pane.shows("Would you like|Which colour")
            asking.cli.find(asking.asked)
            print(f"codex: {name}: {asking.request.title}", [c.id for c in asking.request.choices])
            return asking

        first = scene("allow", "esc touch a1; say After a1")
        t = time.monotonic()
        assert first.says("allow") == ""
        print(f"  taken after {time.monotonic() - t:.3f} s")
        pane.shows("• After a1")
        assert (home.project / "a1").exists()
        board.rests()
        assert first.says("allow") in (
            "it has already been answered",
            "Codex now asks something else",
        )

        asking = scene("deny", "esc touch b1; say After b1")
        assert asking.says("deny") == ""
        pane.shows("• After b1")
        told(model, "rejected by user")
        assert not (home.project / "b1").exists()
        board.rests()

        asking = scene("stop", "esc touch c1; say After c1")
        before = len(model.requests)
        assert asking.says("stop") == ""
        pane.shows("Conversation interrupted")
        board.rests()
        assert len([r for r in model.requests[before:] if r.get("tools")]) == 0

        asking = scene("always", "esc touch d1; say After d1")
        assert asking.says("always") == ""
        pane.shows("• After d1")
        board.rests()
        say(pane, "DO: esc touch d1; say Not asked again")
        pane.shows("• Not asked again")
        board.rests()

        asking = scene("question", "ask; say Thanks")
        assert asking.says("choose", answers={"Which colour do you want?": ["Blue"]}) == ""
        told(model, '"answers":["Blue"]')
        pane.shows("• Thanks")
        board.rests()

        asking = scene("question, typed", "ask; say Thanks again")
        assert asking.says("choose", answers={"Which colour do you want?": "a pale green"}) == ""
        told(model, "a pale green")
        pane.shows("• Thanks again")
        board.rests()

        asking = scene("the user first", "esc touch e1; say After e1")
        pane.press("y")
        pane.shows("• After e1")
        why = asking.says("deny")
        print("  refused:", why)
        assert why and (home.project / "e1").exists()
        board.rests()

        counts: list[int] = []
        for n in range(10):
            asking = scene("several at once", f"esc touch f{n}; say After f{n} again")
            work = [partial(asking.says, c) for c in ("allow", "deny", "allow")]
            said = both(work)
            counts.append(said.count(""))
            print("  ", said, (home.project / f"f{n}").exists())
            allowed = said[0] == "" or said[2] == ""
            pane.shows(f"• After f{n} again")
            assert allowed == (home.project / f"f{n}").exists()
            board.rests()
        print("  counted:", counts)

        asking = scene("the user and we at once", "esc touch g1; say After g1")
        said = both([lambda: asking.says("allow"), lambda: pane.press("Escape") or ""])
        print("  ", said, (home.project / "g1").exists())
        rest(1)
        board.rests()

        asking = scene("two in a row", "esc touch h1 & esc touch h2; say After h")
        assert asking.request.parts[0].text == "touch h1"
        assert asking.says("allow") == ""
        eventually(lambda: [a for a in board.waits() if a.request.parts[0].text == "touch h2"])
        second = board.waits()[0]
        assert asking.says("allow")  # the first is over
        assert second.says("deny") == ""
        pane.shows("• After h")
        assert (home.project / "h1").exists() and not (home.project / "h2").exists()
        board.rests()

        asking = scene("terminal killed", "esc touch j1; say After j1")
        os.kill(pane.pid, 9)
        eventually(lambda: pane.dead)
        print(
            "  after the kill:", asking.says("allow") or "taken", board.shared.board.sessions.keys()
        )
        eventually(lambda: (home.project / "j1").exists())

        board.rests()
        other = cli.open()
        say(other, "DO: esc touch k1; say After k1")
        asking = board.waits()[0]
        cli.close()
        print("  server killed:", asking.says("allow"))
        assert not (home.project / "k1").exists()
    print("codex: done")


def of_opencode(args: tuple[str, ...] = (), plugin: bool = True) -> None:
    with place() as (home, tmux, board), opencode.running(home, tmux, args) as (pane, model):

        def scene(name: str, script: str) -> Asking:
            say(pane, f"DO: {script}")
            asking = board.waits()[0]
            if not plugin:
                (home.bellboard / "opencode" / str(asking.asked.pid)).unlink(missing_ok=True)
            pane.shows("Permission required|Which colour")
            asking.cli.find(asking.asked)
            print(f"opencode: {name}: {asking.request.title}", asking.request.choices)
            return asking

        asking = scene("allow", "run touch a1; say After a1")
        t = time.monotonic()
        assert asking.says("allow") == ""
        print(f"  taken after {time.monotonic() - t:.3f} s")
        pane.shows("(?m)^ +After a1")
        assert (home.project / "a1").exists()
        board.rests()
        assert asking.says("allow")

        asking = scene("deny", "run touch b1; say After b1")
        assert asking.says("deny", message="use another name") == ""
        told(model, "use another name")
        pane.shows("(?m)^ +After b1")
        assert not (home.project / "b1").exists()
        board.rests()

        asking = scene("stop", "edit c1; say After c1")
        assert asking.says("stop") == ""
        board.rests()
        assert not (home.project / "c1").exists()

        asking = scene("question", "ask; say Thanks")
        assert asking.says("choose", answers={"Which colour do you want?": ["Blue"]}) == ""
        told(model, "Blue")
        pane.shows("(?m)^ +Thanks")
        board.rests()

        asking = scene("question, not answered", "ask; say Never")
        assert asking.says("stop") == ""
        board.rests()

        asking = scene("the user first", "run touch e1; say After e1")
        pane.press("Enter")
        pane.shows("(?m)^ +After e1")
        print("  refused:", why := asking.says("stop"))
        assert why
        board.rests()

        for n in range(10):
            asking = scene("several at once", f"run touch f{n}; say After f{n} again")
            work = [partial(asking.says, c) for c in ("allow", "stop", "allow")]
            said = both(work)
            print("  ", said)
            assert said.count("") == 1
            board.rests()
            eventually(lambda n=n, said=said: (said[1] != "") == (home.project / f"f{n}").exists())
            rest(0.5)

        say(pane, "DO: run touch h1 & run touch h2; say After h")
        waiting = {a.request.parts[0].text: a for a in board.waits(2)}
        assert waiting["touch h2"].says("allow") == ""
        assert waiting["touch h1"].says("allow") == ""
        pane.shows("(?m)^ +After h")
        print("opencode: two requests at once")
        board.rests()

        asking = scene("subagent", "spawn DO+ run touch i1 ~ say Sub done; say Parent done")
        print("  ", asking.request.thread, asking.request.session_id)
        assert asking.says("allow") == ""
        eventually(lambda: (home.project / "i1").exists())
        pane.shows("(?m)^ +Parent done")
        board.rests()

        asking = scene("always", "run touch d1; say After d1")
        assert asking.says("always") == ""
        pane.shows("(?m)^ +After d1")
        say(pane, "DO: run touch d2; say Not asked")
        pane.shows("(?m)^ +Not asked")
        board.rests()

        asking = scene("killed", "edit j1; say After j1")
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
