"""A fake Anthropic Messages API on loopback that plays scenarios.py.

In a test: `with Api() as api: …`. By hand: `python -m rig.agents.api`.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rig.agents.scenarios import COMPACT, ERRAND, SCENARIOS, Failure, Scenario, Text, Tool, Turn
from rig.beside import Beside

TASK = re.compile(r"(?:agentId|with ID): ?([A-Za-z0-9_-]+)")
MARKER = re.compile(r"play:([a-z0-9]+)")
# How requests for a summary begin in the known versions (2.0.76 to 2.1.332).
SUMMARY = ("summary of the conversation", "detailed summary")
CACHED = {"cache_creation_input_tokens": 300, "cache_read_input_tokens": 9000}


@dataclass(frozen=True)
class Request:
    """An answered request; its kind is main, errand, compact, count or unknown."""

    time: float
    method: str
    path: str
    kind: str
    scenario: str = ""
    step: int = 0
    model: str = ""
    tools: tuple[str, ...] = ()
    prompt: str = ""  # the end of what was said last
    said: str = ""  # all that was said since the last answer
    results: tuple[str, ...] = ()  # of tools, since the last answer, as JSON
    completed: bool = True  # False: the client hung up before the end


class Stopped(Exception):
    """The server was closed during an answer."""


class Api(Beside):
    """The server: `url` while it runs, `requests` so far."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(self._serve)
        self.requests: list[Request] = []
        self.scenarios: dict[str, Scenario] = dict(SCENARIOS)
        self.pace = 1.0  # every wait of a scenario is multiplied by this
        self._open = threading.Event()
        self._open.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _Conversation)
        self._server.daemon_threads = True
        self._server.api = self  # type: ignore[attr-defined]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def hold(self) -> None:
        """Make answers wait before their first word, until `release`."""
        self._open.clear()

    def release(self) -> None:
        """Release held answers."""
        self._open.set()

    def played(self, scenario: str) -> list[Request]:
        """Return the requests that a scenario answered."""
        return [request for request in self.requests if request.scenario == scenario]

    def wait(self, seconds: float) -> None:
        """Pause an answer; raise Stopped if the server is closed meanwhile."""
        while not self._open.wait(0.02):
            if self._over.is_set():
                raise Stopped
        if self._over.wait(seconds * self.pace):
            raise Stopped

    def __exit__(self, *_: object) -> None:
        self._over.set()  # ends pauses of answers
        self._server.shutdown()
        self._server.server_close()
        super().__exit__()

    def _serve(self) -> None:
        self._server.serve_forever(poll_interval=0.02)


def texts(message: dict[str, Any]) -> list[str]:
    """Return the plain texts of a message."""
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content or [] if block.get("type") == "text"]


def chosen(messages: list[dict[str, Any]]) -> tuple[str, int]:
    """Return the scenario of the last marked prompt, and how many of its turns were played."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] != "user":
            continue
        if names := MARKER.findall(" ".join(texts(messages[index]))):
            after = messages[index + 1 :]
            return names[-1], sum(message["role"] == "assistant" for message in after)
    return "text", 0


def since(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages since the model's last one."""
    said = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    return messages[said[-1] + 1 if said else 0 :]


def results(messages: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the tool results since the model's last message, as JSON."""
    found = [
        block
        for message in since(messages)
        for block in (message["content"] if type(message["content"]) is list else ())
        if block.get("type") == "tool_result"
    ]
    return tuple(json.dumps(x.get("content"), ensure_ascii=False) for x in found)


def content(turn: Turn, places: dict[str, str]) -> list[dict[str, Any]]:
    """Return the turn's blocks in the form of the API."""
    blocks: list[dict[str, Any]] = []
    for block in turn.blocks:
        match block:
            case Text(text):
                blocks.append({"type": "text", "text": text})
            case Tool(name, given):
                text = json.dumps(given)
                for place, what in places.items():
                    text = text.replace(place, what)
                filled = json.loads(text)
                call = {"type": "tool_use", "id": _id("toolu"), "name": name, "input": filled}
                blocks.append(call)
    return blocks


def stream(turn: Turn, message: dict[str, Any], api: Api) -> Iterator[dict[str, Any]]:
    """Yield the events of a streamed answer, at the turn's pace."""
    usage = message["usage"]
    start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(message["content"]):
        empty: dict[str, Any] = {"text": ""} if block["type"] == "text" else {"input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        for delta in _deltas(block, turn, api):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    ending |= {"stop_details": message["stop_details"]} if "stop_details" in message else {}
    yield {"type": "message_delta", "delta": ending, "usage": usage}
    yield {"type": "message_stop"}


def _deltas(block: dict[str, Any], turn: Turn, api: Api) -> Iterator[dict[str, str]]:
    if block["type"] == "tool_use":
        yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        return
    for word in re.findall(r"\S+\s*", block["text"]) if turn.between else [block["text"]]:
        if turn.between:
            api.wait(turn.between)
        yield {"type": "text_delta", "text": word}


def _id(prefix: str) -> str:
    return f"{prefix}_fake{uuid.uuid4().hex[:16]}"


class _Conversation(BaseHTTPRequestHandler):
    """A connection of a client."""

    protocol_version = "HTTP/1.1"

    @property
    def api(self) -> Api:
        return self.server.api  # type: ignore[attr-defined, no-any-return]

    def log_message(self, *_: object) -> None:
        """Print nothing: `requests` is the log."""

    def do_GET(self) -> None:
        self._refuse({})

    do_HEAD = do_GET

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        asked = json.loads(raw or b"{}")
        path = self.path.partition("?")[0]
        if path == "/v1/messages/count_tokens":
            self._note("count")
            self._answer(200, {"input_tokens": 1234})
        elif path == "/v1/messages":
            self._play(asked)
        else:
            self._refuse(asked)

    def _note(self, kind: str, **more: Any) -> Request:
        request = Request(time.time(), self.command, self.path, kind, **more)
        self.api.requests.append(request)
        return request

    def _refuse(self, asked: dict[str, Any]) -> None:
        self._note("unknown", prompt=json.dumps(asked)[:300])
        self._answer(404, _error("not_found_error"))

    def _play(self, asked: dict[str, Any]) -> None:
        messages = asked.get("messages") or []
        last = " ".join(texts(messages[-1])) if messages else ""
        tools = tuple(str(tool.get("name")) for tool in asked.get("tools") or ())
        facts = {"model": asked.get("model", ""), "tools": tools, "prompt": last[-300:]}
        facts["results"] = results(messages)
        facts["said"] = "\n".join(t for message in since(messages) for t in texts(message))
        turn: Turn | Failure
        if any(phrase in last for phrase in SUMMARY):  # `/compact play:e500` names a scenario
            named = self.api.scenarios.get((MARKER.findall(last) or [""])[-1], (COMPACT,))
            turn, request = named[0], self._note("compact", **facts)
        elif not tools:
            turn, request = ERRAND, self._note("errand", **facts)
        else:
            name, step = chosen(messages)
            turns = self.api.scenarios.get(name) or self.api.scenarios["text"]
            turn = turns[min(step, len(turns) - 1)]
            failed = sum(before.step == step for before in self.api.played(name))
            if 0 < turn.times <= failed:
                turn = turns[step + 1]
            request = self._note("main", scenario=name, step=step, **facts)
        try:
            self.api.wait(turn.before if isinstance(turn, Turn) else 0)
            self._send(turn, asked)
        except (BrokenPipeError, ConnectionResetError, Stopped):
            index = self.api.requests.index(request)
            self.api.requests[index] = replace(request, completed=False)
            self.close_connection = True

    def _send(self, turn: Turn | Failure, asked: dict[str, Any]) -> None:
        if isinstance(turn, Failure):
            after = {"retry-after": str(turn.retry_after)} if turn.retry_after else {}
            error = _error(turn.type, turn.message)
            self._answer(turn.status, error, {**after, **dict(turn.headers)})
            return
        text = json.dumps(asked)
        cwd = re.search(r"[Ww]orking directory: ([^\n\\\"]+)", text)
        plan = re.search(r"/[^\s\\\"]+/plans/[^\s\\\"]+?\.md", text)
        task = TASK.findall(json.dumps(asked.get("messages")))
        places = {"$CWD": cwd[1].strip() if cwd else ".", "$PLAN": plan[0] if plan else ""}
        blocks = content(turn, {**places, "$TASK": task[-1] if task else ""})
        acts = any(block["type"] == "tool_use" for block in blocks)
        message = {
            "id": _id("msg"),
            "type": "message",
            "role": "assistant",
            "model": asked.get("model"),
            "content": blocks,
            "stop_reason": turn.stop or ("tool_use" if acts else "end_turn"),
            "stop_sequence": None,
            "usage": {"input_tokens": turn.tokens, **CACHED, "output_tokens": 42},
        }
        if turn.category:
            why = {"category": turn.category, "explanation": None}
            message["stop_details"] = {"type": "refusal", **why}
        if not asked.get("stream"):
            self._answer(200, message)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for count, event in enumerate(stream(turn, message, self.api), 1):
            if count == turn.breaks:
                raise BrokenPipeError
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()

    def _answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for key, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(key, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _error(kind: str, message: str = "") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message or f"fake {kind}"}}


def main() -> None:
    """Serve until interrupted and print each request as a line of JSON."""
    with Api(int(sys.argv[1]) if sys.argv[1:] else 0) as api:
        print(api.url, flush=True)
        shown = 0
        try:
            while True:
                for request in api.requests[shown:]:
                    print(json.dumps(asdict(request)), flush=True)
                    shown += 1
                time.sleep(0.2)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
