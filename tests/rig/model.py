"""A fake model endpoint on loopback for CLIs of OpenAI's APIs: Responses, and chat completions.

The last prompt with `DO:` in it is the script: `DO: esc touch a; ask; say Done`.  Its steps are
split by `;` and played one per request, `&` joins two tool calls of one reply.

    say TEXT | slow SECONDS | run COMMAND | esc COMMAND (asks to leave the sandbox) | edit FILE
    ask | spawn PROMPT (its own steps split by `~`, its marker `DO+`)

Requests without tools (for titles) get a plain line.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
QUESTION = {
    "id": "colour",
    "header": "Colour",
    "question": "Which colour do you want?",
    "options": [
        {"label": "Red", "description": "a warm one"},
        {"label": "Blue", "description": "a cold one"},
    ],
}
WORD = 0.25  # seconds between two words of a slow answer


def script_of(text: str) -> list[str]:
    """Return the steps of a prompt."""
    _, found, rest = text.rpartition("DO:")
    line = rest.split("\n")[0].split("</")[0].strip().strip('"')
    return [step.strip() for step in line.split(";") if step.strip()] if found else []


class Model:
    """The endpoint, while open; `requests` are the bodies that it was sent."""

    def __init__(self) -> None:
        self.requests: list[Json] = []
        self.serial = itertools.count(1)
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
        try:
            if self.path.split("?")[0].endswith("/responses"):
                self._responses(body)
            else:
                self._chat(body)
        except (BrokenPipeError, ConnectionResetError):
            pass

    # ---------------------------------------------------------------- what to say

    def _step(self, said: list[tuple[str, str]], tools: dict[str, str]) -> tuple[str, list[Any]]:
        """Return the text and the tool calls of the reply."""
        script: list[str] = []
        calls = 0
        for role, text in said:
            if role == "call":
                calls += 1
            elif role == "user" and script_of(text):
                script, calls = script_of(text), 0
        if not script or not tools:
            return "say A title", []
        done = 0
        for step in script:
            parts = [part.strip() for part in step.split("&")]
            if done == calls:
                if step.partition(" ")[0] in ("say", "slow"):
                    return step, []
                return "say Working on it.", [self._call(part, tools) for part in parts]
            done += len(parts)
        return "say All done.", []

    def _call(self, step: str, tools: dict[str, str]) -> tuple[str, Any]:
        """Return the name of a tool and its arguments, in the words of this CLI."""
        word, _, rest = step.partition(" ")
        if tools.get("exec") == "custom" and word in ("run", "esc", "edit"):  # Codex's code mode
            name, given = self._call(step, {"exec_command": "function", "apply_patch": "custom"})
            return "exec", f"text(await tools.{name}({json.dumps(given)}));"
        if word in ("run", "esc") and "exec_command" in tools:
            asks = {"sandbox_permissions": "require_escalated", "justification": "May it leave?"}
            return "exec_command", {"cmd": rest, **(asks if word == "esc" else {})}
        if word in ("run", "esc"):
            return "bash", {"command": rest, "description": "run a command"}
        if word == "edit" and "apply_patch" in tools:
            return "apply_patch", f"*** Begin Patch\n*** Add File: {rest}\n+hello\n*** End Patch\n"
        if word == "edit":
            return "write", {"filePath": rest, "content": "hello\n"}
        if word == "ask":
            known = ("request_user_input", "question")
            return next(name for name in known if name in tools), {"questions": [QUESTION]}
        script = rest.replace("DO+", "DO:").replace("~", ";")
        if "spawn_agent" in tools:
            return "spawn_agent", {
                "message": script,
                "task_name": f"helper{next(self.model.serial)}",
            }
        if word == "wait":
            return "wait_agent", {"timeout_ms": int(float(rest) * 1000)}
        return "task", {"description": "a helper", "prompt": script, "subagent_type": "general"}

    def _words(self, step: str) -> Iterator[str]:
        word, _, rest = step.partition(" ")
        if word != "slow":
            yield rest
            return
        for n in range(int(float(rest) / WORD)):
            yield f"word{n} "
            time.sleep(WORD)

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

    def _reply(self, body: Json) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
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
