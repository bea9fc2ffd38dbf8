"""The shared server of Codex: find a request that waits there, and answer it.

Where Codex runs with its shared server, threads, hooks and dialogs belong to that server, and each
terminal is a client of it.  A client that resumes a thread is sent its pending requests again, and
the first answer counts, whoever gives it.  A thread is resumed only while the server has it loaded:
otherwise that would start it.
"""

from __future__ import annotations

import time
from typing import Final

import msgspec

from ...core.untrusted import Facts, list_of
from ..cli import Unanswered, Waiting, sent
from .dialect.pending import contradicts, is_resolved, waits, wanted_of
from .talking import Talk, conversation

PATIENCE: Final = 2.5  # seconds for everything; a server takes 10 ms
SETTLE: Final = 0.1  # seconds in which it sends what is pending; it takes 1 ms
VERDICT: Final = 0.3  # seconds in which a refused tool or turn ends; it takes 5 ms
LIMIT: Final = 8 << 20  # bytes of a conversation; a thread without its turns has 10 kB
ELSEWHERE: Final = "it was answered elsewhere first"


def find(asked: Waiting) -> None:
    """Find the request; raise `Unanswered` if it does not wait there."""
    with conversation(asked.pid, PATIENCE, LIMIT) as talk:
        _found(talk, asked)


def answer(asked: Waiting, reply: bytes) -> None:
    """Answer the request; raise `Unanswered` if that did not count, or may not have."""
    result = msgspec.json.decode(reply)
    with conversation(asked.pid, PATIENCE, LIMIT) as talk:
        _answer(talk, _found(talk, asked), result)


def _found(talk: Talk, asked: Waiting) -> Facts:
    """Return the request that the payload is about, while it waits."""
    wanted = wanted_of(asked.payload, asked.tool_id)
    if wanted is None:
        raise Unanswered("its request is not known exactly")
    if wanted.thread not in _loaded(talk):
        raise Unanswered("Codex's server no longer has this thread")
    resumed = talk.call("thread/resume", {"threadId": wanted.thread, "excludeTurns": True})
    if not waits(resumed):
        raise Unanswered("it has already been answered")
    found = wanted.among(talk.said)
    until = time.monotonic() + SETTLE
    while talk.hears(0.0 if wanted.item and found else until):
        talk.hear()
        found = wanted.among(talk.said)
    if not found:
        raise Unanswered("Codex now asks something else")
    if len(found) > 1:
        raise Unanswered("Codex asks the same thing more than once; answer in its terminal")
    return found.popitem()[1]


def _answer(talk: Talk, request: Facts, result: object) -> None:
    """Answer it; only the first answer counts, and what follows may show that another was first."""
    talk.said.clear()
    talk.send({"id": request["id"], "result": result})
    try:
        with sent("Codex's server"):
            while not any(is_resolved(message, request) for message in talk.said):
                talk.hear()
            until = time.monotonic() + VERDICT
            while talk.hears(until):
                talk.hear()
    finally:
        if any(contradicts(message, request, result) for message in talk.said):
            raise Unanswered(ELSEWHERE)


def _loaded(talk: Talk) -> list[object]:
    """Return the threads that the server has loaded."""
    found: list[object] = []
    cursor: object = None
    while True:
        page = talk.call("thread/loaded/list", {"cursor": cursor} if cursor else {})
        data, cursor = page.get("data"), page.get("nextCursor")
        found += list_of(data)
        if not cursor:
            return found
