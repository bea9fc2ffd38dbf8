"""A desk at which answers are given, without a host: the session is what the test says."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellboard.core.events import Event
from bellboard.core.session import Block, Process, Session
from bellboard.hosting.answering import Answering
from bellboard.hosting.asked import RequestReader
from bellboard.hosting.errands import Errands
from bellboard.hosting.keyboard import Terminal
from bellboard.storage.answers import REPLY, TAKEN
from bellboard.storage.spool import Spool
from bellboard.storage.store import Logged
from bellboard.system.failures import Declined
from bellboard.system.processes import started_of
from rig.home import Home
from rig.waiting import eventually

SLEEP = shutil.which("sleep") or "/bin/sleep"
NAME = "00004711.1.PermissionRequest"
INPUT = {"command": "make all", "description": "Build it"}


class Desk:
    """A session whose process asks to run `make all`, in an event that is kept."""

    def __init__(self, home: Home, pid: int, **payload: Any) -> None:
        self.spool = Spool(home.bellboard)
        self.spool.prepare()
        self.home, self.pid = home, pid
        self.folder = home.bellboard / "answers"
        self.claim, self.pipe = self.folder / f"{NAME}.answer", self.folder / "1.1"
        self.told: list[dict[str, Any]] = []
        self.goes_on = True  # the agent, once it is answered
        self.then: Callable[[], None] = lambda: None  # before it goes on
        self.terminal: Terminal | None = None
        self.asks(**payload)
        self.s = self.session_of()

    def asks(self, agent: str = "claude", pid: int | None = None, **payload: Any) -> None:
        """Write the event that asked."""
        given = {"session_id": "s", "hook_event_name": "PermissionRequest", "tool_name": "Bash"}
        text = json.dumps({**given, "tool_input": INPUT, **payload})
        head = f"bellboard 1\0agent={agent}\0event=PermissionRequest\0pid={pid or self.pid}\0\0"
        path = self.folder / NAME
        path.write_bytes(head.encode() + text.encode())
        path.chmod(0o600)

    def session_of(self, **facts: Any) -> Session:
        """Return the session, as hosts know it."""
        block = Block("permission", 1.0, tool="Bash", detail="make all", request=NAME, shown=True)
        process = Process(self.pid, started_of(self.pid))
        given = {"processes": {self.pid: process}, "pid": self.pid, "blocks": {":": block}}
        return Session(session_id="s", turn="working", **{**given, **facts})

    def writes(self, *blocks: Mapping[str, Any], **facts: str) -> str:
        """Write a transcript with these blocks, and facts of each entry; return its path."""
        path = self.home.root / "transcript.jsonl"
        entry = {"type": "assistant", **facts}
        entries = [{**entry, "message": {"content": [block]}} for block in blocks]
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        return str(path)

    def becomes(self, **facts: Any) -> None:
        """Change the question that stands."""
        block = replace(self.s.blocks[":"], **facts)
        self.s = self.session_of(blocks={":": block})

    def changes(self, **facts: Any) -> None:
        """Change the session, as hosts know it."""
        self.s = replace(self.s, **facts)

    # ----------------------------------------------------- see `RequestReader` and `Answering`

    def session(self, sid: str) -> Session | None:
        return self.s if sid == "s" else None

    def answers(self, sid: str) -> list[Logged]:
        return [logged(told) for told in self.told]

    def report(self, line: Mapping[str, Any]) -> str:
        self.told.append(dict(line["answer"]))
        return ""

    @property
    def requests(self) -> RequestReader:
        return RequestReader(self.spool, self.session, self.answers, self.home.env)

    def answering(self) -> Answering:
        return Answering(self.requests, self.report, "Neovim 1", terminal=lambda run: self.terminal)

    # ------------------------------------------------------------ what a person does

    def _do(self, what: str, given: Mapping[str, Any]) -> dict[str, Any]:
        answering = self.answering()
        known = {"request": answering.show, "answer": answering.answer}
        try:
            return asyncio.run(known[what](given))
        except Declined as why:
            return {"why": str(why)}

    def request(self, **given: Any) -> dict[str, Any]:
        return self._do("request", {"session_id": "s", "request": NAME, **given})

    def answer(self, choice: str = "allow", **given: Any) -> dict[str, Any]:
        """Answer what is shown now, unless a digest is given."""
        if "digest" not in given:
            given["digest"] = self.request().get("request", {}).get("digest", "")
        shown = {"session_id": "s", "request": NAME, "choice": choice}
        return self._do("answer", {**shown, **given})

    # ------------------------------------------------------------ what a hook does

    def waits(self, name: str = "1.1", mode: int = 0o600) -> PlayedHook:
        """Let the hook that asked wait on a pipe."""
        os.mkfifo(self.folder / name, mode)
        (self.folder / f"{name}{TAKEN}").write_text(f"{NAME}\n")
        hook = PlayedHook(self, self.folder / name)
        self.becomes(pipe=name)
        return hook


def logged(told: Mapping[str, Any]) -> Logged:
    """Return an answer as the log has it."""
    facts = {
        "request": told.get("request", ""),
        "digest": told.get("digest", ""),
        "message": told.get("outcome", ""),
    }
    e = Event("answer", "answer", 1.0, 1.0, "s", source=told["way"], viewer=told["by"], **facts)
    return Logged(0, "", e, "s", "reply", True, "", None, None)


class PlayedHook:
    """A hook that waits; the agent goes on with what it says."""

    def __init__(self, desk: Desk, pipe: Path) -> None:
        self._desk = desk
        self.said: list[str] = []
        self._file = os.fdopen(os.open(pipe, os.O_RDWR), encoding="utf-8")
        self._reply = pipe.with_name(f"{pipe.name}{REPLY}")
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        line = self._file.readline().strip()
        with contextlib.suppress(FileNotFoundError):  # sent away
            line = self._reply.read_text().split("\n")[1] + "\n"
        self.said.append(line)
        self._file.close()
        self._desk.then()
        if self._desk.goes_on and line:
            self._desk.s = self._desk.session_of(blocks={})


def errands(home: Home, *sessions: Session, environ: Mapping[str, str] | None = None) -> Errands:
    """Return what carries out the errands of somebody who knows these sessions."""
    known = {s.session_id: s for s in sessions}.get
    env = home.env if environ is None else environ
    return Errands(
        RequestReader(Spool(home.bellboard), known, lambda sid: [], env), lambda line: ""
    )


@pytest.fixture
def processes(home: Home) -> Iterator[Callable[..., int]]:
    """processes(name, …): the id of a new process of that name, which only waits."""
    started: list[subprocess.Popen[bytes]] = []

    def one(name: str = "claude", **how: Any) -> int:
        started.append(subprocess.Popen([name, "600"], executable=SLEEP, env=home.env, **how))
        eventually(lambda: name in Path(f"/proc/{started[-1].pid}/cmdline").read_text())
        return started[-1].pid

    yield one
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def desk(home: Home, processes: Callable[..., int]) -> Desk:
    """A session whose process asks."""
    return Desk(home, processes())
