"""The far end of a link, as a test writes it: `far_feed.py FOLDER [words that are ignored]`.

It prints what FOLDER/says holds and goes on with what is appended to it, replies to each request
with FOLDER/reply, and notes in FOLDER/heard how it was started and what it was asked.  With
FOLDER/dead it ends at once and says why.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

WRITING = threading.Lock()  # a reply must not come into the middle of a line


class FarFeed:
    """The folder of such a feed, and the messages that a test makes."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.n = folder, 0
        self.now = time.time
        self.rows: dict[str, dict[str, Any]] = {}
        self.moves: list[dict[str, Any]] = []

    @property
    def command(self) -> list[str]:
        return [sys.executable, str(Path(__file__)), str(self.folder)]

    def say(self, *messages: dict[str, Any] | bytes) -> None:
        raw = [m if isinstance(m, bytes) else json.dumps(m).encode() + b"\n" for m in messages]
        with (self.folder / "says").open("ab") as file:
            file.write(b"".join(raw))

    def hello(self, **more: Any) -> dict[str, Any]:
        return {"feed": 1, "type": "hello", "version": "0", "now": self.now(), **more}

    def moved(self, sid: str, status: str, live: bool = True, **more: Any) -> dict[str, Any]:
        """Change a session; return the message that says so."""
        t, before = self.now(), self.rows.get(sid, {}).get("status")
        row = {"session_id": sid, "agent": "claude", "status": status, "since": t, "updated": t}
        self.rows[sid] = {**row, **more}
        self.n += 1
        move = {"id": self.n, "t": t, "session_id": sid, "from": before, "to": status, "live": live}
        self.moves.append({**move, "why": "so"})
        message = {"type": "change", "now": t, "cursor": f"d.{self.n}", "removed": []}
        return {**message, "sessions": [self.rows[sid]], "transitions": [self.moves[-1]]}

    def state(self, since: int | None = None) -> dict[str, Any]:
        """Return the state for a reader that has a cursor."""
        missed = [] if since is None else [m for m in self.moves if m["id"] > since]
        message = {"type": "state", "now": self.now(), "cursor": f"d.{self.n}"}
        message |= {"all": list(self.rows), "sessions": list(self.rows.values())}
        return {**message, "transitions": missed, "whole": since is not None}

    def restart(self, *messages: dict[str, Any] | bytes) -> None:
        """Replace what the next reader gets."""
        (self.folder / "says").write_bytes(b"")
        self.say(*messages)

    @property
    def heard(self) -> list[dict[str, Any]]:
        with contextlib.suppress(FileNotFoundError):
            text = (self.folder / "heard").read_text()
            return [json.loads(x) for x in text.splitlines(keepends=True) if x[-1] == "\n"]
        return []

    @property
    def pids(self) -> list[int]:
        """Return the processes that were started, the last one last."""
        return [x["pid"] for x in self.heard if "pid" in x]

    @property
    def since(self) -> list[str]:
        """Return the cursor that each of them was asked from."""
        words = [x["argv"].split() for x in self.heard if "pid" in x]
        return [w[w.index("--since") + 1] if "--since" in w else "" for w in words]

    @property
    def asked(self) -> list[dict[str, Any]]:
        """Return what it was asked, except the time."""
        asked = [x["asked"] for x in self.heard if "asked" in x]
        return [x for x in asked if x["do"] != "clock"]


def main() -> None:
    folder = Path(sys.argv[1])
    note(folder, {"pid": os.getpid(), "argv": " ".join(sys.argv[2:])})
    if (folder / "dead").exists():
        sys.exit((folder / "dead").read_text())
    threading.Thread(target=obey, args=(folder,), daemon=True).start()
    with (folder / "says").open("rb") as says:
        while True:
            if data := says.read():
                told(data)
            elif (folder / "endless").exists():
                sys.stdout.buffer.write((folder / "endless").read_bytes())
            else:
                time.sleep(0.01)


def obey(folder: Path) -> None:
    for raw in sys.stdin.buffer:
        asked = json.loads(raw)
        note(folder, {"asked": asked})
        with contextlib.suppress(FileNotFoundError):
            is_clock = asked["do"] == "clock"
            reply = {"ok": True} if is_clock else json.loads((folder / "reply").read_text())
            data = json.dumps({"type": "reply", "id": asked["id"], **reply}).encode() + b"\n"
            told(data)


def told(data: bytes) -> None:
    with WRITING:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def note(folder: Path, said: dict[str, Any]) -> None:
    with (folder / "heard").open("a") as file:
        file.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
