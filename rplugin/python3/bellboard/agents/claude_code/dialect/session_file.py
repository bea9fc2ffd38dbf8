"""Decode a session file of the CLI: its own account of what a session does."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ....core.events import Event, Origin
from ....core.text import line
from ....core.untrusted import Facts, number_of, text_of
from .names import QUESTIONS

#: What kind of question `waitingFor` is; "dialog open" is not the agent's.
WAITING: Final = {
    "permission prompt": "permission",
    "sandbox request": "permission",
    "worker request": "permission",
    "input needed": "question",
    "goal proposal": "choice",
    "dialog open": "",
}


def account(record: Facts, about: Event) -> Event:
    """Return the event with the contents of a record."""
    status, waiting = text_of(record, "status"), text_of(record, "waitingFor")
    since = number_of(record.get("statusUpdatedAt"))
    moved = "parkedJobId" in record  # the conversation goes on in that job; the status stays behind
    if moved:
        status, waiting, since = "idle", "", number_of(record.get("updatedAt"))
    tool = waiting.removeprefix("approve ") if waiting.startswith("approve ") else ""
    asks = ""
    if status == "waiting":
        asks = WAITING.get(waiting, "choice" if waiting else "permission")
        asks = QUESTIONS.get(tool, "permission") if tool else asks
    env = {"job": "bg"} if record.get("kind") == "bg" else {}
    if entry := text_of(record, "entrypoint"):
        env["entrypoint"] = entry
    return replace(
        about,
        name=f"registry {status}".strip(),
        origin=Origin(pid=about.pid, env=env),
        started=text_of(record, "procStart"),
        status=status,
        spare=moved or record.get("spare") is True,
        asks=asks,
        tool=tool,
        at=since / 1000 if since else about.t,
        cwd=text_of(record, "cwd"),
        title=line(text_of(record, "name")) if record.get("nameSource") != "derived" else "",
        named=record.get("nameSource") not in (None, "derived"),
    )
