"""A fake model endpoint on loopback, for CLIs of the APIs of OpenAI and Gemini.

`script.py` says what it replies.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from rig.agents import script
from rig.agents.script import Call, Json

KINDS: Final = {400: "invalid_request_error", 401: "invalid_api_key", 429: "rate_limit_exceeded"}
#: What Gemini CLI asks a model besides the turn: whether it is the user's turn, which model to use.
CHOICE: Final = {"reasoning": "fake", "next_speaker": "user", "model_choice": "flash"}


class Refused(Exception):
    """The script refuses a request, with a status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Dropped(Exception):
    """The script breaks the connection."""


class Model:
    """The endpoint, while open; `requests` are the bodies that it was sent."""

    def __init__(self) -> None:
        self.requests: list[Json] = []
        self.serial = itertools.count(1)
        self.refused: Counter[str] = Counter()  # step → how often
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def heard(self) -> list[str]:
        """Return what tools reported to the model, oldest first."""
        if not self.requests:
            return []
        said: list[str] = []
        for body in self.requests:
            said += [
                _text(item.get("output"))
                for item in body.get("input") or []
                if str(item.get("type")).endswith("_output")
            ]
            said += [_text(m["content"]) for m in body.get("messages") or [] if m["role"] == "tool"]
        return list(dict.fromkeys(said))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(x.get("text", "")) for x in content or [] if isinstance(x, dict))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        listed = [{"id": "fake-model", "object": "model", "slug": "fake-model"}]
        self._reply({"object": "list", "data": listed, "models": []})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        self.model.requests.append(body)
        path = self.path.partition("?")[0]
        try:
            if path.endswith("/responses"):
                self._responses(body)
            elif "enerateContent" in path:
                self._gemini(body, is_stream="stream" in path)
            elif path.endswith(":countTokens"):
                self._reply({"totalTokens": 10})
            else:
                self._chat(body)
        except Refused as refused:
            kind = KINDS.get(refused.status, "server_error")
            code: object = refused.status if "enerateContent" in path else kind
            said = {"message": f"fake error {refused.status}", "type": kind, "code": code}
            self._reply({"error": {**said, "status": "INTERNAL"}}, refused.status)
        except (BrokenPipeError, ConnectionResetError, Dropped):
            self.close_connection = True

    # ---------------------------------------------------------------- what to say

    def _step(self, said: list[tuple[str, str]], tools: dict[str, str]) -> tuple[str, list[Call]]:
        """Return the reply; raise for one that fails."""
        step, calls = script.next_step(said, tools, next(self.model.serial))
        if step.startswith("err "):
            _, status, *times = step.split()
            if not times or self.model.refused[step] < int(times[0]):
                self.model.refused[step] += 1
                raise Refused(int(status))
            return "say All done.", []
        return step, calls

    def _words(self, step: str) -> Iterator[str]:
        for word in script.words(step):
            yield word
            if step == "drop":
                raise Dropped

    # ---------------------------------------------------------------- how to say it

    def _responses(self, body: Json) -> None:
        said: list[tuple[str, str]] = []
        tools: dict[str, str] = {}
        spaces: dict[str, str] = {}
        listed = list(body.get("tools") or [])
        for item in body.get("input") or []:
            kind = item.get("type") or "message"
            if kind == "additional_tools":
                listed += item.get("tools") or []
            elif kind == "message":
                said.append((item.get("role"), _text(item.get("content"))))
            elif kind == "agent_message":
                pieces = item.get("content") or []
                said.append(
                    (
                        "user",
                        "".join(x.get("text") or x.get("encrypted_content") or "" for x in pieces),
                    )
                )
            elif kind in ("function_call", "custom_tool_call"):
                said.append(("call", ""))
        if any("Generate a concise" in text for role, text in said):  # a title
            listed = []
        for tool in listed:
            for inner in tool.get("tools") or []:
                tools[inner["name"]], spaces[inner["name"]] = inner.get("type"), tool.get("name")
            tools[tool.get("name") or tool.get("type")] = tool.get("type")
        step, calls = self._step(said, tools)
        n = next(self.model.serial)
        self._open()
        self._event("response.created", response={"id": f"resp_{n}", "status": "in_progress"})
        text = ""
        place = {"item_id": f"msg_{n}", "output_index": 0, "content_index": 0}
        message = {"type": "message", "id": f"msg_{n}", "role": "assistant", "content": []}
        self._event("response.output_item.added", output_index=0, item=message)
        for word in self._words(step):
            text += word
            self._event("response.output_text.delta", **place, delta=word)
        content = [{"type": "output_text", "text": text, "annotations": []}]
        items: list[Json] = [{**message, "status": "completed", "content": content}]
        for i, (name, given) in enumerate(calls):
            call: Json = {"call_id": f"call_{n}_{i}", "name": name, "status": "completed"}
            if isinstance(given, str):
                call |= {"type": "custom_tool_call", "id": f"ctc_{n}_{i}", "input": given}
            else:
                call |= {"type": "function_call", "id": f"fc_{n}_{i}"}
                call["arguments"] = json.dumps(given)
            if spaces.get(name) not in (None, "functions"):
                call["namespace"] = spaces[name]
            items.append(call)
        for i, item in enumerate(items):
            self._event("response.output_item.done", output_index=i, item=item)
        usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
        done = {"id": f"resp_{n}", "status": "completed", "output": items, "usage": usage}
        self._event("response.completed", response=done)
        self._chunk("")

    def _chat(self, body: Json) -> None:
        said: list[tuple[str, str]] = []
        for m in body.get("messages") or []:
            said.append((m.get("role"), _text(m.get("content"))))
            said += [("call", "")] * len(m.get("tool_calls") or [])
        tools = {t["function"]["name"]: "function" for t in body.get("tools") or []}
        step, calls = self._step(said, tools)
        n = next(self.model.serial)
        base = {"id": f"chat-{n}", "created": int(time.time()), "model": body.get("model")}
        listed = [
            {
                "index": i,
                "id": f"call_{n}_{i}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(given)},
            }
            for i, (name, given) in enumerate(calls)
        ]
        reason = "tool_calls" if calls else "stop"
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        if not body.get("stream"):
            message = {"role": "assistant", "content": "".join(self._words(step))}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._reply({**base, "object": "chat.completion", "usage": usage, "choices": [choice]})
            return
        self._open()

        def piece(delta: Json, reason: str | None = None, **more: Any) -> None:
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            what = {**base, "object": "chat.completion.chunk", "choices": [choice], **more}
            self._chunk(f"data: {json.dumps(what)}\n\n")

        piece({"role": "assistant", "content": ""})
        for word in self._words(step):
            piece({"content": word})
        for call in listed:
            piece({"tool_calls": [call]})
        piece({}, reason, usage=usage)
        self._chunk("data: [DONE]\n\n")
        self._chunk("")

    def _gemini(self, body: Json, is_stream: bool) -> None:
        said: list[tuple[str, str]] = []
        for item in body.get("contents") or []:
            for part in item.get("parts") or []:
                is_call = "functionCall" in part
                said.append(("call", "") if is_call else (item.get("role"), part.get("text", "")))
        declared = [t.get("functionDeclarations") or [] for t in body.get("tools") or []]
        tools = {tool["name"]: "function" for tools in declared for tool in tools}
        step, calls = self._step(said, tools)
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}

        def answer(parts: list[Json], reason: str = "") -> Json:
            content = {"index": 0, "content": {"role": "model", "parts": parts}}
            ended = {"finishReason": reason} if reason else {}
            return {"candidates": [{**content, **ended}], "usageMetadata": usage}

        if not is_stream:
            form = body.get("generationConfig") or {}
            is_form = form.get("responseMimeType") == "application/json"
            text = json.dumps(CHOICE) if is_form else "".join(self._words(step))
            self._reply(answer([{"text": text}], "STOP"))
            return
        self._open()
        for word in self._words(step):
            self._chunk(f"data: {json.dumps(answer([{'text': word}]))}\r\n\r\n")
        made = [{"functionCall": {"name": name, "args": given}} for name, given in calls]
        self._chunk(f"data: {json.dumps(answer(made or [{'text': ''}], 'STOP'))}\r\n\r\n")
        self._chunk("")

    def _reply(self, body: Json, status: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _open(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _event(self, kind: str, **what: Any) -> None:
        self._chunk(f"event: {kind}\ndata: {json.dumps({'type': kind, **what})}\n\n")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()
