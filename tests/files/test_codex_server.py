"""Answers to Codex through its shared server: found, given once, refused with a reason."""

from __future__ import annotations

import contextlib
import json
import os
import socket as sockets
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from bellboard.agents.agent import OpenRequest, Unanswered, Unclear, Unreachable
from bellboard.agents.codex import server
from bellboard.agents.codex.agent import Codex
from bellboard.agents.codex.request import runs_command, wanted_of
from bellboard.core.events import Origin
from bellboard.core.request import Answer, check
from bellboard.storage.spool import Spool
from rig.home import Home
from rig.host.desk import Desk
from rig.waiting import eventually

CODEX, SPEAKS = Codex(), Codex()
THREAD, TURN, ITEM = "01a1ffc4-27ac", "01a1ffc4-2eeb", "exec-59ee"
PAYLOAD = {
    "session_id": THREAD,
    "turn_id": TURN,
    "hook_event_name": "PermissionRequest",
    "tool_name": "Bash",
    "tool_input": {"command": "touch 'a b'", "description": "May it leave?"},
}
ASKS = {
    "method": "item/commandExecution/requestApproval",
    "id": 0,
    "params": {
        "threadId": THREAD,
        "turnId": TURN,
        "itemId": ITEM,
        "kind": "command",
        "startedAtMs": 1795292409851,
        "environmentId": "local",
        "reason": "May it leave?",
        "command": """/bin/bash -lc "touch 'a b'\"""",
        "cwd": "/srv",
        "commandActions": [],
        "availableDecisions": ["accept", "cancel"],
        "additionalPermissions": None,
    },
}
QUESTION = {
    "session_id": THREAD,
    "turn_id": TURN,
    "hook_event_name": "PreToolUse",
    "tool_name": "request_user_input",
    "tool_use_id": "call_1",
    "tool_input": {
        "questions": [
            {"id": "c", "question": "Which?", "options": [{"label": "Red"}, {"label": "Blue"}]}
        ]
    },
}
QUESTION_ASKS = {
    "method": "item/tool/requestUserInput",
    "id": 7,
    "params": {"threadId": THREAD, "turnId": TURN, "itemId": "call_1", "questions": []},
}

#: A server in a process of its own, as the socket has to be that process's; it speaks as recorded.
FAKE = """
import base64, hashlib, json, socket, struct, sys, threading, time

path, plan = sys.argv[1], json.loads(sys.argv[2])
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
print("up", flush=True)


def need(n):
    data = b""
    while len(data) < n:
        data += (piece := connection.recv(n - len(data)))
        if not piece:
            raise EOFError
    return data


def read():
    first, second = need(2)
    size = second & 127
    if size == 126:
        (size,) = struct.unpack(">H", need(2))
    elif size == 127:
        (size,) = struct.unpack(">Q", need(8))
    mask, data = need(4), None
    data = bytes(x ^ mask[i % 4] for i, x in enumerate(need(size)))
    return read() if first == 0x8A else json.loads(data)  # the answer to a ping


def framed(message):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    size = len(data)
    head = bytes([size]) if size < 126 else bytes([126]) + struct.pack(">H", size)
    return bytes([0x81]) + head + data


def write(*messages):
    connection.sendall(b"".join(map(framed, messages)))  # so that they arrive together


def play():
    request = b""
    while b"\\r\\n\\r\\n" not in request:
        request += connection.recv(4096)
    if plan.get("mute"):
        time.sleep(60)
    key = [x for x in request.split(b"\\r\\n") if x.startswith(b"Sec-WebSocket-Key")][0].split()[1]
    proof = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    proof = b"wrong" if plan.get("no_proof") else base64.b64encode(proof)
    head = b"HTTP/1.1 101 Switching\\r\\nSec-WebSocket-Accept: "
    connection.sendall(head + proof + b"\\r\\n\\r\\n")
    while True:
        said = read()
        method = said.get("method")
        if method and method in plan.get("refuse", ()):
            write({"id": said["id"], "error": {"code": -32601, "message": "unknown method"}})
        elif method and method == plan.get("close_at"):
            return
        elif method == "initialize":
            connection.sendall(bytes([0x89, 2]) + b"hi")  # a ping
            write({"id": said["id"], "result": {}})
        elif method == "thread/loaded/list":
            write({"id": said["id"], "result": {"data": plan["loaded"], "nextCursor": None}})
        elif method == "thread/read" and said["params"]["threadId"] in plan["loaded"]:
            status = plan.get("status")
            status = status.pop(0) if isinstance(status, list) else status
            thread = {"id": said["params"]["threadId"], "status": status}
            write({"id": said["id"], "result": {"thread": thread}})
        elif method == "thread/read":
            write({"id": said["id"], "error": {"code": -32600, "message": "not loaded"}})
        elif method == "thread/resume":
            flags = ["waitingOnApproval"] if plan["asks"] else []
            status = {"type": "active", "activeFlags": flags}
            if plan.get("flood"):
                connection.sendall(bytes([0x81, 127]) + struct.pack(">Q", 100 << 20))
                for _ in range(1600):
                    connection.sendall(b" " * 65536)
            result = {"thread": {"id": "t", "status": status}}
            write({"id": said["id"], "result": result}, *plan["asks"])
        elif method in plan.get("results", ()):
            print(json.dumps(said), flush=True)
            write({"id": said["id"], "result": plan["results"][method]})
        elif "result" in said and "method" not in said:
            print(json.dumps(said), flush=True)
            asked = next(x for x in plan["asks"] if x.get("id") == said["id"])
            given = asked["params"]
            if not plan.get("busy"):
                done = {"threadId": given["threadId"], "requestId": said["id"]}
                write({"method": "serverRequest/resolved", "params": done})
            elif "fate" not in plan:
                continue
            fate = plan.get("fate", "declined" if said["result"].get("decision") in
                            ("decline", "cancel") else "")
            if fate:
                item = {"id": given["itemId"], "status": fate}
                write({"method": "item/completed", "params": {"item": item}})


def pump():
    for line in sys.stdin:  # what it is to say
        said = json.loads(line)
        if said == "hang up":
            connection.shutdown(socket.SHUT_RDWR)
        else:
            connection.sendall(framed(said.encode() if isinstance(said, str) else said))


threading.Thread(target=pump, daemon=True).start()
terminals = []
while True:
    connection, _ = listener.accept()
    if connection.recv(3, socket.MSG_PEEK) == b"TUI":
        terminals.append(connection)
        continue
    try:
        play()
    except (EOFError, OSError):
        pass
    connection.close()
"""


class Fake:
    """The fake server, and requests to it."""

    def __init__(self, home: Home, **plan: Any) -> None:
        folder = home.root / ".codex/app-server-control"
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "app-server-control.sock"
        self.home = home
        plan = {"loaded": [THREAD], "asks": [ASKS], **plan}
        argv = ["codex", "-c", textwrap.dedent(FAKE), str(self.path), json.dumps(plan)]
        env = {"HOME": str(home.root)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        how: dict[str, Any] = {"executable": sys.executable, **pipes}
        self.process = subprocess.Popen(argv, env=env, text=True, **how)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "up\n"
        self.asked = self.about(PAYLOAD)

    def about(self, payload: Any, tool_id: str = ITEM) -> OpenRequest:
        data = json.dumps(payload).encode()
        return OpenRequest(THREAD, self.process.pid, tool_id, data, self.home.bellboard)

    def heard(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def says(self, message: Any) -> None:
        """Make the server send a message to all clients."""
        assert self.process.stdin is not None
        print(json.dumps(message), file=self.process.stdin, flush=True)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def fake(home: Home, **plan: Any) -> Iterator[Fake]:
    made = Fake(home, **plan)
    try:
        yield made
    finally:
        made.close()


def said(choice: str, payload: Any = PAYLOAD, **more: Any) -> bytes:
    return SPEAKS.reply(json.dumps(payload).encode(), Answer(choice, **more))


def refused(asked: OpenRequest, reply: bytes = b'{"decision":"accept"}') -> str:
    with pytest.raises(Unanswered) as caught:
        CODEX.answer(asked, reply)
    return str(caught.value)


@pytest.mark.parametrize(
    ("choice", "decision"),
    [
        ("allow", "accept"),
        ("always", "acceptForSession"),
        ("deny", "decline"),
        ("stop", "cancel"),
    ],
)
def test_a_command_is_answered(home: Home, choice: str, decision: str) -> None:
    """Each choice sends the decision that its words name."""
    with fake(home) as codex:
        CODEX.find(codex.asked)
        CODEX.answer(codex.asked, said(choice))
        assert codex.heard() == {"id": 0, "result": {"decision": decision}}


def test_questions_are_answered_by_their_ids(home: Home) -> None:
    """Labels, or a text that somebody typed."""
    asked_text = {"Which?": ["Blue"]}
    with fake(home, asks=[QUESTION_ASKS]) as codex:
        asked = codex.about(QUESTION, "")
        CODEX.answer(asked, said("choose", QUESTION, answers=asked_text))
        assert codex.heard() == {"id": 7, "result": {"answers": {"c": {"answers": ["Blue"]}}}}


def test_only_the_same_request_is_answered(home: Home) -> None:
    """Not another thread, turn, tool or command, nor one of two that are the same."""
    other = {**ASKS, "params": {**ASKS["params"], "command": "/bin/bash -lc 'rm -r /'"}}  # type: ignore
    twice = [ASKS, {**ASKS, "id": 1}]
    for asks, tool, why in (
        ([other], ITEM, "Codex now asks something else"),
        ([ASKS], "exec-other", "Codex now asks something else"),
        ([{**ASKS, "method": "item/fileChange/requestApproval"}], ITEM, "something else"),
        (twice, "", "the same thing more than once"),
        ([], ITEM, "already been answered"),
    ):
        with fake(home, asks=asks) as codex:
            assert why in refused(codex.about(PAYLOAD, tool))
            codex.path.unlink()
    turned = {**PAYLOAD, "turn_id": "another"}
    with fake(home) as codex:
        assert "something else" in refused(codex.about(turned))
        patch = {**PAYLOAD, "tool_name": "apply_patch"}
        assert "something else" in refused(codex.about(patch, ""))  # without its id: any patch
        assert "not known exactly" in refused(codex.about({"session_id": THREAD}))


@pytest.mark.parametrize(
    "more",
    [
        {"additionalPermissions": {"network": {"enabled": True}}},
        {"networkApprovalContext": {"host": "example.org"}},
        {"approvalId": "a"},
        {"kind": "writeStdin"},
        {"cwd": "/etc"},
        {"of a next version": True},
    ],
    ids=lambda more: next(iter(more)),
)
def test_more_than_was_shown_is_not_granted(home: Home, more: dict[str, Any]) -> None:
    """The hook reports the command only."""
    asks = {**ASKS, "params": {**ASKS["params"], **more}}  # type: ignore[dict-item]
    with fake(home, asks=[asks]) as codex:
        assert "something else" in refused(codex.about({**PAYLOAD, "cwd": "/srv"}, ITEM))


def test_a_change_of_files_grants_no_folder(home: Home) -> None:
    params = {"threadId": THREAD, "turnId": TURN, "itemId": ITEM, "grantRoot": "/"}
    asks = {"method": "item/fileChange/requestApproval", "id": 0, "params": params}
    patch = {**PAYLOAD, "tool_name": "apply_patch"}
    with fake(home, asks=[asks]) as codex:
        assert "something else" in refused(codex.about(patch, ITEM))


def test_a_request_sent_twice_counts_once(home: Home) -> None:
    """A client that subscribes while a request is open gets it again."""
    with fake(home, asks=[ASKS, ASKS]) as codex:
        CODEX.answer(codex.asked, said("allow"))


def test_another_answer_was_first(home: Home) -> None:
    """The outcome of the tool shows whose answer counted."""
    with fake(home, fate="declined") as codex:
        assert refused(codex.asked, said("allow")) == server.ELSEWHERE
        codex.path.unlink()
    with fake(home, fate="completed") as codex:
        assert refused(codex.asked, said("deny")) == server.ELSEWHERE
        codex.path.unlink()
    codex_done = {"method": "serverRequest/resolved", "params": {"requestId": 0}}
    with fake(home, asks=[ASKS, codex_done]) as codex:
        assert "something else" in refused(codex.asked)


def test_an_answer_that_a_busy_server_has_taken_is_not_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server says later that the request is resolved."""
    monkeypatch.setattr(server, "PATIENCE", 1.0)
    with fake(home, busy=True) as codex:
        with pytest.raises(Unclear, match="Codex's server: it does not respond in time"):
            CODEX.answer(codex.asked, said("allow"))
        assert codex.heard()["result"] == {"decision": "accept"}


def test_another_answer_was_first_at_a_busy_server(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server reports the tool's result first, and only then that the request is resolved."""
    monkeypatch.setattr(server, "PATIENCE", 1.0)
    with fake(home, busy=True, fate="declined") as codex:
        assert refused(codex.asked, said("allow")) == server.ELSEWHERE


def test_a_thread_that_is_not_loaded_is_not_resumed(home: Home) -> None:
    """Resuming would start the thread."""
    with fake(home, loaded=["another"], refuse=["thread/resume"]) as codex:
        assert refused(codex.asked) == "Codex's server no longer has this thread"


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ({"mute": True}, "it does not respond in time"),
        ({"no_proof": True}, "it does not speak WebSocket"),
        ({"flood": True}, "it announces a message that is too long"),
        ({"close_at": "thread/resume"}, "it closed the connection"),
        ({"refuse": ["thread/resume"]}, "it refused thread/resume: unknown method"),
        ({"refuse": ["initialize"]}, "it refused initialize: unknown method"),
    ],
)
def test_a_failing_server_is_refused_with_a_reason(
    home: Home, plan: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server hangs, lies, sends 100 MB, hangs up, or is of another version."""
    monkeypatch.setattr(server, "PATIENCE", 0.3 if "mute" in plan else 20.0)
    with fake(home, **plan) as codex:
        assert refused(codex.asked) == f"Codex's server: {why}"


def test_only_the_sessions_own_process_is_asked(home: Home) -> None:
    """The address comes from its environment, and the listener has to be it."""
    with fake(home) as codex, sockets.socket(sockets.AF_UNIX) as mine:
        other = subprocess.Popen(["sleep", "60"], env={"HOME": str(home.root)})
        try:
            asked = codex.asked._replace(pid=other.pid)
            eventually(lambda: server.home_of(other.pid) == f"{home.root}/.codex")
            assert "another process listens there" in refused(asked)
        finally:
            other.kill()
            other.wait()
        codex.path.unlink()
        assert refused(codex.asked) == "this Codex runs without its shared server"
        mine.bind(str(codex.path))
        assert "refused" in refused(codex.asked)  # nobody listens
        codex.path.unlink()
    with fake(home) as codex:
        codex.path.parent.chmod(0o777)
        assert "others may write to" in refused(codex.asked)


def test_an_answer_from_anywhere_takes_the_server(home: Home) -> None:
    """The server is the best way while it has the request; otherwise it says why not."""
    asks = {**ASKS, "params": {**ASKS["params"], "threadId": "s"}}  # type: ignore[dict-item]
    with fake(home, loaded=["s"], asks=[asks]) as codex:
        desk = Desk(home, codex.process.pid)
        desk.asks("codex", **{k: v for k, v in PAYLOAD.items() if k != "session_id"})
        desk.s = desk.session_of(agent="codex")
        shown = desk.request()["request"]
        assert [way["name"] for way in shown["ways"]] == ["server", "go"]
        desk.answer("deny")
        assert codex.heard()["result"] == {"decision": "decline"}
        assert [x["way"] for x in desk.told] == ["server", "server"]
        block = replace(desk.s.blocks[":"], tool_id="exec-other")
        desk.s = desk.session_of(agent="codex", blocks={":": block})
        digest = shown["digest"]
        eventually(lambda: "something else" in desk.answer(digest=digest)["why"])  # a claim is old


BUSY, IDLE = {"type": "active", "activeFlags": []}, {"type": "idle"}
QUEUED = {"thread/queue/add": {"queuedSubmission": {"id": "q1"}}}
TURNS = {"thread/turns/list": {"data": [{"id": TURN, "status": "inProgress"}]}}
TEXT = 'two\nlines \t "quoted" \\n 你 🙂' + "x" * 50_000


def session(home: Home, codex: Fake) -> Any:
    return replace(Desk(home, codex.process.pid).session_of(agent="codex"), session_id=THREAD)


@pytest.mark.parametrize(
    ("status", "method"),
    [
        (IDLE, "turn/start"),
        ({"type": "systemError"}, "turn/start"),
        (BUSY, "thread/queue/add"),
    ],
)
def test_a_prompt_begins_a_turn_or_waits_in_the_threads_queue(
    home: Home, status: Any, method: str
) -> None:
    """Of that thread, whole and once; to steer a turn would cut off what the model is saying."""
    with fake(home, status=status, results={"turn/start": {}, **QUEUED}) as codex:
        CODEX.say(session(home, codex), codex.process.pid, TEXT, home.bellboard)
        said = codex.heard()
        assert said["method"] == method
        assert said["params"].pop("clientUserMessageId").startswith("bellboard-")
        assert said["params"] == {"threadId": THREAD, "input": [{"type": "text", "text": TEXT}]}


@pytest.mark.parametrize("deleted", [True, False])
def test_no_prompt_waits_in_the_queue_of_a_thread_that_rests(home: Home, deleted: bool) -> None:
    """After an interrupt it would run some day: it is taken out, or has been started."""
    results = {**QUEUED, "thread/queue/delete": {"deleted": deleted}}
    with fake(home, status=[BUSY, IDLE], results=results) as codex:
        s = session(home, codex)
        with pytest.raises(Unanswered) if deleted else contextlib.nullcontext():
            CODEX.say(s, codex.process.pid, "on", home.bellboard)
        assert codex.heard()["method"] == "thread/queue/add"
        gone = {"threadId": THREAD, "queuedSubmissionId": "q1"}
        assert codex.heard()["params"] == gone


@pytest.mark.parametrize("name", ["bellboard-1", "another"])
def test_a_turn_of_a_thread_is_interrupted(home: Home, name: str) -> None:
    """The one that runs, by its id; of its queue, what we have put there is taken out."""
    queue = {"thread/queue/list": {"data": [{"id": "q1", "clientUserMessageId": name}]}}
    results = {**TURNS, **queue, "turn/interrupt": {}, "thread/queue/delete": {"deleted": True}}
    with fake(home, status=BUSY, results=results) as codex:
        said = CODEX.interrupt(session(home, codex), codex.process.pid, home.bellboard)
        is_ours = name != "another"
        assert said == (server.TAKEN_OUT if is_ours else "")
        heard = [codex.heard() for _ in range(4 if is_ours else 3)]
        named = ["thread/turns/list", "turn/interrupt", "thread/queue/list"]
        assert [x["method"] for x in heard] == [*named, *(["thread/queue/delete"] * is_ours)]
        assert heard[1]["params"] == {"threadId": THREAD, "turnId": TURN}


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ({"loaded": ["another"]}, server.UNLOADED),
        ({"status": {"type": "active", "activeFlags": ["waitingOnApproval"]}}, "it asks something"),
        ({"status": {"type": "of a next version"}}, "does not say whether it works"),
        ({"status": BUSY, "refuse": ["thread/queue/add", "turn/interrupt"]}, "it refused t"),
        ({"status": IDLE, "refuse": ["turn/start"]}, "it "),
        ({"mute": True}, "it does not respond in time"),
    ],
)
def test_a_thread_that_takes_no_prompt_is_given_none(
    home: Home, plan: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is its turn interrupted."""
    monkeypatch.setattr(server, "PATIENCE", 0.3 if "mute" in plan else 20.0)
    with fake(home, results=TURNS, **plan) as codex:
        s, pid = session(home, codex), codex.process.pid
        for order in (
            partial(CODEX.say, s, pid, "on", home.bellboard),
            partial(CODEX.interrupt, s, pid, home.bellboard),
        ):
            with pytest.raises(Unanswered, match=why) as caught:
                order()
            assert not isinstance(caught.value, (Unclear, Unreachable))


def test_a_prompt_that_may_have_been_taken_is_not_refused(home: Home) -> None:
    """What the session does next shows it; without a server, its terminal is tried."""
    with fake(home, status=IDLE, close_at="turn/start") as codex:
        s = session(home, codex)
        with pytest.raises(Unclear):
            CODEX.say(s, codex.process.pid, "on", home.bellboard)
        codex.path.unlink()
        with pytest.raises(Unreachable, match="without its shared server"):
            CODEX.say(s, codex.process.pid, "on", home.bellboard)


@pytest.mark.core
def test_requests_are_read_in_full() -> None:
    """No part of the payload is left out, and the choices say what they do."""
    data = json.dumps(PAYLOAD).encode()
    made = SPEAKS.request(data, "name", 5.0, Origin("codex", 7))
    assert made is not None
    assert (made.kind, made.session_id, made.title) == ("permission", THREAD, "Run a command")
    assert [p.text for p in made.parts] == ["touch 'a b'", "May it leave?"]
    words = {c.id: c.words for c in made.choices}
    assert words["deny"] == "No; the turn goes on"
    assert words["stop"] == "No, and stop the turn"
    extra = {**PAYLOAD, "tool_input": {**PAYLOAD["tool_input"], "workdir": "/"}}  # type: ignore
    other = SPEAKS.request(json.dumps(extra).encode(), "name", 5.0, Origin("codex", 7))
    assert other is not None
    assert "workdir" in other.parts[-1].text
    assert other.digest != made.digest
    assert SPEAKS.request(data, "name", 5.0, Origin("codex", 8)).digest != made.digest  # type: ignore
    assert check(made, Answer("deny", message="why")) == "“deny” takes no message"


@pytest.mark.core
def test_commands_are_compared_whole() -> None:
    """A shell around one is the same, anything else is not."""
    assert runs_command("/bin/bash -lc 'touch a'", "touch a")
    assert runs_command("touch a", "touch a")
    assert not runs_command("/bin/bash -lc 'touch a' b", "touch a")
    assert not runs_command("/bin/bash -lc 'touch a; touch b'", "touch a")
    assert not runs_command("'", "touch a")
    for folder in ("/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin"):
        assert runs_command(f"{folder}/zsh -lc 'touch a'", "touch a"), folder
    for folder in (
        "/tmp/evil",
        "/srv/bin",
        "/bin/..",
        "/opt/../tmp/bin",
        "./bin",
        "/nix/store/bin",
    ):
        assert not runs_command(f"{folder}/bash -lc 'touch a'", "touch a"), folder
    for program in ("python3 -c", "/tmp/bash-like -lc", "bash -x", "env bash", "/tmp/x/../bash x"):
        assert not runs_command(f"{program} 'touch a'", "touch a"), program
    assert wanted_of(b"\xff", "") is None


def test_the_printed_hooks_report_to_the_spool(home: Home) -> None:
    """A shell of Codex runs them, with its own process, and as hooks of Codex."""
    argv = [sys.executable, "-m", "bellboard", "hooks", "print", "--agent", "codex"]
    printed = subprocess.run(argv, env=home.env, capture_output=True, text=True, check=True)
    hooks = json.loads(printed.stdout)["hooks"]
    assert {hooks[event][0]["hooks"][0]["timeout"] for event in ("Interrupt", "SessionEnd")} == {3}
    line = hooks["PermissionRequest"][0]["hooks"][0]["command"]
    subprocess.run(["sh", "-c", line], env=home.env, input=json.dumps(PAYLOAD).encode(), check=True)
    spool = Spool(home.bellboard)
    (name,) = spool.scan()
    item = spool.read(name)
    assert item is not None and item.origin is not None
    assert (item.origin["agent"], item.origin["pid"]) == ("codex", os.getpid())
    event = SPEAKS.event(item.payload, item.t, item.t, Origin("codex"))
    assert (event.kind, event.session_id, event.detail) == ("request", THREAD, "touch 'a b'")
    argv[-1] = "opencode"
    plugin = subprocess.run(argv, env=home.env, capture_output=True, text=True, check=True)
    assert "export const Bellboard" in plugin.stdout
