"""An MCP server on stdio: `ask` and `order` show a form (elicitation), `wait` takes its time."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "description": "Any name"}},
    "required": ["name"],
}
ORDER = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name"},
        "count": {"type": "integer", "title": "How many", "minimum": 1},
        "size": {"type": "string", "enum": ["small", "large"]},
        "gift": {"type": "boolean", "title": "As a gift"},
        "note": {"type": "string", "description": "May be left out"},
    },
    "required": ["name", "count", "size", "gift"],
}
FORMS = {"ask": ("What name?", SCHEMA), "order": ("What is to be sent?", ORDER)}
TOOL = {
    "name": "ask",
    "description": "Asks the user for a name.",
    "inputSchema": {"type": "object", "properties": {}},
}
MANY = {**TOOL, "name": "order", "description": "Asks the user for an order."}
WAIT = {
    "name": "wait",
    "description": "Takes some seconds.",
    "inputSchema": {"type": "object", "properties": {"seconds": {"type": "number"}}},
}


def send(**message: Any) -> None:
    """Send a message to the client."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main() -> None:
    """Answer requests until the client closes."""
    waiting: Any = None  # the id of the call that waits for an elicitation
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                version = message["params"]["protocolVersion"]
                server = {"name": "rig", "version": "1"}
                result = {"protocolVersion": version, "capabilities": {"tools": {}}}
                send(id=message["id"], result={**result, "serverInfo": server})
            case "tools/list":
                send(id=message["id"], result={"tools": [TOOL, MANY, WAIT]})
            case "tools/call" if message["params"]["name"] == "wait":
                said = {"content": [{"type": "text", "text": "waited"}]}
                answer = {"id": message["id"], "result": said}
                threading.Timer(message["params"]["arguments"]["seconds"], send, (), answer).start()
            case "tools/call":
                waiting = message["id"]
                text, schema = FORMS[message["params"]["name"]]
                asked = {"message": text, "requestedSchema": schema}
                send(id="elicit", method="elicitation/create", params=asked)
            case None if message.get("id") == "elicit":
                said = json.dumps(message.get("result", message.get("error")))
                send(id=waiting, result={"content": [{"type": "text", "text": said}]})
            case method if method and "id" in message:
                send(id=message["id"], error={"code": -32601, "message": f"no {method}"})


if __name__ == "__main__":
    main()
