"""Answers to OpenCode through our plugin in it, or its HTTP: given once, refused with a reason."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from bellboard.agents.agent import OpenRequest, Unanswered, Unclear
from bellboard.agents.opencode import server
from bellboard.agents.opencode.agent import OpenCode
from bellboard.agents.parts import CUT
from bellboard.core.events import Origin
from bellboard.core.request import Answer
from bellboard.core.session import Session
from bellboard.storage.event_file import Item
from bellboard.storage.spool import Spool
from rig import ROOT
from rig.fetched import node
from rig.home import Home
from rig.host.desk import NAME, Desk
from rig.machines.mounts import sandboxed
from rig.waiting import eventually

OPENCODE, SPEAKS = OpenCode(), OpenCode()
SESSION = "ses_1"
PERMISSION: dict[str, Any] = {
    "type": "permission.asked",
    "properties": {
        "id": "per_1",
        "sessionID": SESSION,
        "permission": "bash",
        "patterns": ["touch a"],
        "metadata": {"command": "touch a"},
        "always": ["touch *"],
        "tool": {"messageID": "msg_1", "callID": "call_1"},
    },
}
QUESTION = {
    "type": "question.asked",
    "properties": {
        "id": "que_1",
        "sessionID": SESSION,
        "questions": [
            {"question": "Which?", "header": "", "options": [{"label": "Red", "description": ""}]}
        ],
    },
}
CHOSEN = {"agent": "plan", "model": {"providerID": "fake", "modelID": "m"}}
PROMPTED: dict[str, Any] = {
    "hook": "chat.message",
    "given": [{"sessionID": SESSION}, {"message": CHOSEN, "parts": [{"text": "Begin"}]}],
}
BUSY = {
    "type": "session.status",
    "properties": {"sessionID": SESSION, "status": {"type": "busy"}},
}
TEXT = 'two\nlines \t "quoted" \\n 你 🙂' + "x" * 50_000

#: Runs the plugin with a client that prints what it is asked to post, and events from its input.
PLAY = """
import readline from "node:readline"
import { Bellboard } from "./bellboard.mjs"
const [status, after] = process.argv.slice(2).map(Number)
const post = async ({ url, body }) => {
  console.log(JSON.stringify({ url, body }))
  await new Promise((done) => setTimeout(done, 1000 * after))
  return { response: { status } }
}
const plugin = await Bellboard({ client: status ? { _client: { post } } : {}, directory: "/srv" })
console.log("up")
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { hook, given, ...event } = JSON.parse(line)
  await (hook ? plugin[hook](...given) : plugin.event({ event }))
  console.log("heard")
}
await plugin.dispose()
process.exit(0)
"""
#: Replies as a plugin that knows requests only.
OLDER = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(f"{sys.argv[1]}/{os.getpid()}")
listener.listen()
print("up", flush=True)
while True:
    connection, _ = listener.accept()
    connection.recv(4096)
    connection.sendall(b'{"status":404,"written":true}\\n')
    connection.close()
"""
#: Serves the pending permission over HTTP, and prints what is posted; each takes its time.
HTTP = """
import http.server, json, sys, time

pending = json.loads(sys.argv[1])


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(pending, float(sys.argv[3]))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        print(json.dumps({"url": self.path, "body": body}), flush=True)
        self.reply(True, float(sys.argv[4]))

    def reply(self, value, after):
        time.sleep(after)
        data = json.dumps(value).encode()
        self.send_response(int(sys.argv[2]))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print("up", flush=True)
server.serve_forever()
"""


class Program:
    """A program that stands for OpenCode; it prints what it is told."""

    def __init__(self, home: Home, *argv: str) -> None:
        self.home = home
        how: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(argv, env=home.env, cwd=home.root, **how)
        assert self.line() == "up"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def told(self) -> Any:
        return json.loads(self.line())

    def hears(self, event: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(event) + "\n")
        self.process.stdin.flush()
        assert self.line() == "heard"

    def about(self, payload: Any) -> OpenRequest:
        data = json.dumps(payload).encode()
        return OpenRequest(SESSION, self.process.pid, "", data, self.home.bellboard)

    def ends(self) -> None:
        """Let it end by itself, so that it has reported everything."""
        self.process.communicate()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def started(home: Home) -> Iterator[Any]:
    """started(status, after): the plugin in a node of its own, whose OpenCode replies so."""
    made: list[Program] = []
    Spool(home.bellboard).prepare()
    shutil.copy(ROOT / "hooks/emit", home.bellboard / "emit")
    (home.root / "bellboard.mjs").write_text(OPENCODE.reporting(str))
    (home.root / "play.mjs").write_text(PLAY)

    def start(status: int = 200, after: float = 0.0) -> Program:
        made.append(Program(home, str(node.node()), "play.mjs", str(status), str(after)))
        return made[-1]

    yield start
    for program in made:
        program.close()


def said(payload: Any, choice: str, **more: Any) -> bytes:
    return SPEAKS.reply(json.dumps(payload).encode(), Answer(choice, **more))


def refused(asked: OpenRequest, reply: bytes = b'{"reply":"once"}') -> str:
    with pytest.raises(Unanswered) as caught:
        OPENCODE.answer(asked, reply)
    return str(caught.value)


def asking(**properties: Any) -> dict[str, Any]:
    """Return the permission with other properties."""
    return {**PERMISSION, "properties": {**PERMISSION["properties"], **properties}}


def reported(home: Home, count: int | None = None) -> list[Item]:
    """Return what the spool has, or nothing until it has that many."""
    spool = Spool(home.bellboard)
    items = [item for name in spool.scan() if (item := spool.read(name)) is not None]
    return items if count in (None, len(items)) else []


def found(asked: OpenRequest) -> None:
    """Wait until the plugin listens."""

    def is_found() -> bool:
        with contextlib.suppress(Unanswered):
            OPENCODE.find(asked)
            return True
        return False

    eventually(is_found)


def test_the_plugin_takes_an_answer_to_what_is_asked(started: Any) -> None:
    """The process that asks takes one, once; before its first report, nothing listens."""
    opencode = started()
    asked = opencode.about(PERMISSION)
    assert refused(asked) == server.NOBODY
    opencode.hears(PERMISSION)
    found(asked)
    OPENCODE.answer(asked, said(PERMISSION, "deny", message="Use b"))
    body = {"reply": "reject", "message": "Use b"}
    assert opencode.told() == {"url": "/permission/per_1/reply", "body": body}
    other = asking(id="per_2")
    assert refused(opencode.about(other)) == "it has already been answered"
    replied = {"requestID": "per_1", "sessionID": SESSION, "reply": "reject"}
    opencode.hears({"type": "permission.replied", "properties": replied})
    assert refused(asked) == "it has already been answered"


TELLS = """
import json, socket, sys
with socket.socket(socket.AF_UNIX) as plugin:
    plugin.connect(sys.argv[1])
    plugin.sendall(sys.argv[2].encode() + b"\\n")
    print(json.loads(plugin.makefile().readline())["status"])
"""


@pytest.mark.parametrize(
    "said",
    [
        *('"reply":{"reply":"once"}', '"written":"1"', '"written":"../../x"', '"other":1'),
        *('"session":"ses_1","prompt":"x"', '"session":"ses_1","abort":true'),
        '"session":"ses_1","written":"1"',
    ],
)
def test_nothing_in_a_sandbox_answers_for_its_opencode(started: Any, home: Home, said: str) -> None:
    """With the home mounted read-only, where a socket takes connections all the same."""
    opencode = started()
    opencode.hears(PROMPTED)
    opencode.hears(PERMISSION)
    asked = opencode.about(PERMISSION)
    found(asked)
    place = f"{home.bellboard}/opencode/{opencode.process.pid}"
    told = [sys.executable, "-c", TELLS, place, f'{{"request":"per_1",{said}}}']
    command = [*sandboxed("bwrap", home.bellboard), *told]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout in ("501\n", "400\n", "200\n", "409\n"), done.stderr
    OPENCODE.answer(asked, b'{"reply":"reject"}')
    assert opencode.told()["body"] == {"reply": "reject"}  # the first that it was told


def test_an_answer_to_something_else_under_its_id_is_refused(started: Any, home: Home) -> None:
    """An event that was forged names the id of a true one: another command was shown."""
    opencode = started()
    opencode.hears(PERMISSION)
    found(opencode.about(PERMISSION))
    for forged in (asking(patterns=["ls"]), {**PERMISSION, "properties": {"id": "per_1"}}):
        why = refused(opencode.about(forged))
        assert why in ("OpenCode refused it with status 400", "its request is not known exactly")
    assert [path.suffix for path in (home.bellboard / "opencode").iterdir()] == [""]
    OPENCODE.answer(opencode.about(PERMISSION), b'{"reply":"reject"}')
    assert opencode.told()["body"] == {"reply": "reject"}


def test_questions_reach_the_plugin(started: Any) -> None:
    """Answered in the order of the questions, or rejected."""
    opencode = started()
    opencode.hears(QUESTION)
    asked = opencode.about(QUESTION)
    found(asked)
    OPENCODE.answer(asked, said(QUESTION, "choose", answers={"Which?": "a pale green"}))
    told = {"url": "/question/que_1/reply", "body": {"answers": [["a pale green"]]}}
    assert opencode.told() == told
    OPENCODE.answer(asked, said(QUESTION, "stop"))
    assert opencode.told() == {"url": "/question/que_1/reject", "body": {}}


def test_an_answer_that_the_plugin_has_taken_is_not_refused(
    started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenCode is busy: it takes the answer, and says so later."""
    monkeypatch.setattr(server, "PATIENCE", 0.5)
    opencode = started(200, 1.0)
    opencode.hears(PERMISSION)
    asked = opencode.about(PERMISSION)
    found(asked)
    with pytest.raises(Unclear, match="OpenCode: it does not respond in time"):
        OPENCODE.answer(asked, said(PERMISSION, "allow"))
    assert opencode.told()["body"] == {"reply": "once"}


def test_a_refusal_of_opencode_is_reported(started: Any, home: Home) -> None:
    """The request was answered in the terminal meanwhile, or plugins may not answer it."""
    for status, why in (
        (404, "it has already been answered"),
        (500, "OpenCode refused it with status 500"),
        (0, server.WHY[server.UNABLE]),
    ):
        opencode = started(status)
        opencode.hears(PERMISSION)
        asked = opencode.about(PERMISSION)
        found(asked)
        assert refused(asked) == why


def test_the_plugin_listens_where_the_state_folder_is_a_link(started: Any, home: Home) -> None:
    """Hooks and hosts follow the link as well, to another disk for example."""
    home.bellboard.rename(home.root / "there")
    home.bellboard.symlink_to(home.root / "there")
    opencode = started()
    opencode.hears(PERMISSION)
    found(opencode.about(PERMISSION))


def test_the_plugin_makes_nothing_where_no_host_has_been(started: Any, home: Home) -> None:
    """The folder may be somebody's for other things, so that hosts refuse it."""
    shutil.rmtree(home.bellboard / "spool")
    before = sorted(home.bellboard.iterdir())
    started().hears(PERMISSION)
    assert before == sorted(home.bellboard.iterdir())


def test_the_plugin_reports_in_order(started: Any, home: Home) -> None:
    """Through `emit`, with the session that a subagent belongs to."""
    opencode = started()
    child = {"id": "ses_2", "parentID": SESSION, "directory": "/srv"}
    opencode.hears({"type": "session.created", "properties": {"sessionID": "ses_2", "info": child}})
    busy = {"sessionID": "ses_2", "status": {"type": "busy"}}
    opencode.hears({"type": "session.status", "properties": busy})
    opencode.hears({"type": "message.part.updated", "properties": {"sessionID": "ses_2"}})
    opencode.hears(asking(sessionID="ses_2"))
    items = eventually(lambda: reported(home, 3))
    events = [
        SPEAKS.event(item.payload, item.t, item.t, Origin("opencode", opencode.process.pid))
        for item in items
    ]
    assert [e.kind for e in events] == ["agent start", "note", "agent request"]
    assert {e.session_id for e in events} == {SESSION}
    assert events[2].agent == "ses_2"
    assert {item.origin["pid"] for item in items if item.origin} == {opencode.process.pid}
    made = SPEAKS.request(items[2].payload, "name", 5.0, Origin("opencode"))
    assert made is not None
    assert (made.session_id, made.thread) == (SESSION, "ses_2")


def test_what_asks_is_reported_whole_and_nothing_else(started: Any, home: Home) -> None:
    """A cut request cannot be answered from afar; a long text of an error is of no use."""
    opencode, long = started(), "x" * 9000
    failed = {"sessionID": SESSION, "error": {"name": "APIError", "data": {"message": long}}}
    opencode.hears({"type": "session.error", "properties": failed})
    opencode.hears(asking(metadata={"command": long}))
    items = eventually(lambda: reported(home, 2))
    error, asked = (json.loads(item.payload)["properties"] for item in items)
    assert len(error["error"]["data"]["message"]) < 5000
    assert asked["metadata"]["command"] == long


def test_what_is_too_large_to_keep_is_reported_by_whom_it_asks(started: Any, home: Home) -> None:
    """Only the start is read: the session waits, and says why it cannot be answered from here."""
    opencode, huge = started(), {"diff": "x" * (1 << 20), "filepath": "/srv/a"}
    opencode.hears(asking(metadata=huge))
    [item] = eventually(lambda: reported(home, 1))
    assert item.truncated
    origin = Origin("opencode", opencode.process.pid)
    event = SPEAKS.event(item.payload, item.t, item.t, origin, True)
    assert (event.kind, event.session_id, event.tool_id) == ("request", SESSION, "per_1")
    made = SPEAKS.request(item.payload, "name", item.t, origin, True)
    assert made is not None
    assert (made.complete, made.why, made.tool) == (False, CUT, "bash")


def test_the_end_of_each_task_is_reported(started: Any, home: Home) -> None:
    """Also of one that failed, which runs no hook, and that one has left its subagent to itself.

    But not of one that failed earlier, which the copy of its session repeats.
    """
    (home.bellboard / "hosts" / str(os.getpid())).touch()  # while none runs, only the last is kept
    opencode = started()
    task = {"sessionID": SESSION, "tool": "task", "callID": "c1"}
    opencode.hears({"hook": "tool.execute.before", "given": [task, {"args": {}}]})
    for call, status in (("c0", "error"), ("c1", "running"), ("c1", "error"), ("c1", "error")):
        part = {**task, "type": "tool", "callID": call, "state": {"status": status}}
        opencode.hears({"type": "message.part.updated", "properties": {"part": part}})
    left = {"background": True, "sessionId": "ses_2"}
    ends: dict[str, Any] = {"c2": left, "c3": {"sessionId": "ses_3"}, "c4": None}
    for call, metadata in ends.items():
        about = {"sessionID": SESSION, "tool": "task", "callID": call}
        opencode.hears({"hook": "tool.execute.after", "given": [about, {"metadata": metadata}]})
    opencode.ends()
    items = reported(home)
    events = [SPEAKS.event(i.payload, i.t, i.t, Origin("opencode")) for i in items]
    spawned = [(e.tool_id, e.spawned) for e in events if (e.kind, e.tool) == ("tool end", "Task")]
    assert spawned == [("c1", ""), ("c2", "ses_2"), ("c3", ""), ("c4", "")]


def test_a_turn_that_ends_between_two_tries_was_stopped(started: Any, home: Home) -> None:
    """The message is over then, with neither an error nor a reason; one with a reason is whole.

    Each status is said several times, and reported once.
    """
    opencode = started()
    answers: tuple[dict[str, Any], ...] = ({}, {"finish": "tool-calls"}, {"finish": "stop"})
    for answer in answers:
        about = {"role": "assistant", "sessionID": SESSION, "time": {"completed": 1}, **answer}
        for status in ("busy", "busy", "busy", "idle"):
            given = {"sessionID": SESSION, "status": {"type": status}}
            opencode.hears({"type": "session.status", "properties": given})
            opencode.hears({"type": "message.updated", "properties": {"info": about}})
        opencode.hears({"type": "session.idle", "properties": {"sessionID": SESSION}})
    opencode.ends()
    items = reported(home)
    kinds = [SPEAKS.event(i.payload, i.t, i.t, Origin("opencode")).kind for i in items]
    assert kinds[:-1] == 2 * ["activity", "interrupt"] + ["activity", "rest"]


def test_a_status_of_opencode_is_reported_again_after_anything_else(
    started: Any, home: Home
) -> None:
    """Work goes on after errors and answers; another try is news; sessions are told apart."""
    opencode = started()

    def status(word: str, session: str = SESSION) -> None:
        about = {"sessionID": session, "status": {"type": word}}
        opencode.hears({"type": "session.status", "properties": about})

    failed = {"sessionID": SESSION, "error": {"name": "APIError", "data": {}}}
    replied = {"sessionID": SESSION, "requestID": "per_1", "reply": "once"}
    status("busy")
    status("busy", "ses_2")
    for type, about in (("session.error", failed), ("permission.replied", replied)):
        opencode.hears({"type": type, "properties": about})
        status("busy")
    for word in ("retry", "retry", "busy", "busy"):
        status(word)
    opencode.ends()
    items = reported(home)
    said = [json.loads(i.payload) for i in items]
    words = [s["properties"].get("status", {}).get("type") or s["type"] for s in said]
    again = ["session.error", "busy", "permission.replied", "busy"]
    closed = ["session.idle", "session.idle", "dispose"]
    assert words == ["busy", "busy", *again, "retry", "retry", "busy", *closed]


def test_a_status_that_could_not_be_reported_is_reported_when_opencode_repeats_it(
    started: Any, home: Home
) -> None:
    """Repetitions are left out only once it is known that the first one was written."""
    opencode, spool, emit = started(), Spool(home.bellboard), home.bellboard / "emit"
    busy = {"sessionID": SESSION, "status": {"type": "busy"}}

    def repeat() -> None:
        opencode.hears({"type": "session.status", "properties": busy})

    emit.write_text(f"#!/bin/sh\n: >{home.root}/tried\nexit 1\n")
    repeat()
    eventually((home.root / "tried").exists)
    new = emit.with_name("new")
    shutil.copy(ROOT / "hooks/emit", new)
    new.rename(emit)

    def is_reported() -> bool:
        repeat()
        return bool(spool.scan())

    eventually(is_reported)
    repeat()
    opencode.ends()
    items = reported(home)
    assert [i.event for i in items] == ["session_status", "session_idle", "dispose"]


def test_a_plugin_in_a_folder_of_others_does_not_listen(started: Any, home: Home) -> None:
    """Nor does anybody connect to one there, or to another process."""
    (home.bellboard / "opencode").mkdir(mode=0o777)
    (home.bellboard / "opencode").chmod(0o777)
    opencode = started()
    opencode.hears(PERMISSION)
    asked = opencode.about(PERMISSION)
    assert "others may write to" in refused(asked)
    (home.bellboard / "opencode").chmod(0o700)
    opencode.hears(PERMISSION)
    found(asked)
    where = home.bellboard / "opencode" / str(opencode.process.pid)
    other = asked._replace(pid=1)
    where.rename(where.with_name("1"))
    assert refused(other).endswith("another process listens there")


def test_what_asks_is_reported_where_the_plugin_cannot_listen(started: Any, home: Home) -> None:
    """The plugin's folder cannot be made: a link leads nowhere."""
    (home.bellboard / "opencode").symlink_to("nowhere")
    started().hears(PERMISSION)
    eventually(lambda: reported(home, 1))


def session(opencode: Program) -> Session:
    desk = Desk(opencode.home, opencode.process.pid)
    return replace(desk.session_of(agent="opencode"), session_id=SESSION)


def say(opencode: Program, text: str = "on") -> None:
    OPENCODE.say(session(opencode), opencode.process.pid, text, opencode.home.bellboard)


def interrupt(opencode: Program) -> None:
    OPENCODE.interrupt(session(opencode), opencode.process.pid, opencode.home.bellboard)


def prompted(started: Any, *given: Any) -> Program:
    """Return a program whose plugin has had a prompt, and listens."""
    opencode: Program = started(*given)
    opencode.hears(PROMPTED)
    opencode.hears(BUSY)
    eventually((opencode.home.bellboard / "opencode" / str(opencode.process.pid)).exists)
    return opencode


def test_the_plugin_gives_a_session_a_prompt_and_stops_its_turn(started: Any, home: Home) -> None:
    """Whole and once, to the agent and the model of its last prompt; no file is left."""
    opencode = prompted(started, 204)
    say(opencode, TEXT)
    body = {**CHOSEN, "parts": [{"type": "text", "text": TEXT}]}
    assert opencode.told() == {"url": "/session/ses_1/prompt_async", "body": body}
    interrupt(opencode)
    assert opencode.told() == {"url": "/session/ses_1/abort", "body": {}}
    assert [path.suffix for path in (home.bellboard / "opencode").iterdir()] == [""]


@pytest.mark.parametrize("order", [say, interrupt], ids=["a prompt", "an interrupt"])
def test_a_session_that_takes_no_prompt_is_given_none(started: Any, order: Any) -> None:
    """A question of it is open, or it is deleted; or its OpenCode takes nothing from plugins."""
    opencode = prompted(started)
    child = {"info": {"id": "ses_2", "parentID": SESSION}}
    asks = asking(sessionID="ses_2")
    opencode.hears({"type": "session.created", "properties": child})
    opencode.hears(asks)
    with pytest.raises(Unanswered, match="it asks something"):
        order(opencode)
    replied = {"requestID": "per_1", "sessionID": "ses_2", "reply": "once"}
    opencode.hears({"type": "permission.replied", "properties": replied})
    order(opencode)
    assert opencode.told()["url"].startswith("/session/ses_1/")
    opencode.hears({"type": "session.deleted", "properties": {"info": {"id": SESSION}}})
    with pytest.raises(Unanswered, match="no prompt in this session since it was started"):
        order(opencode)
    for status, why in ((0, "takes no prompts from plugins"), (500, "refused it with status 500")):
        opencode = prompted(started, status)
        with pytest.raises(Unanswered, match=why):
            order(opencode)


def test_a_terminal_shows_the_session_that_it_gave_the_last_prompt_to(started: Any) -> None:
    """A prompt that we gave to another one shows nothing, nor does the prompt of a subagent."""

    def unshown() -> str:
        return OPENCODE.unshown(session(opencode), opencode.process.pid, opencode.home.bellboard)

    def prompt(sid: str) -> None:
        opencode.hears({**PROMPTED, "given": [{"sessionID": sid}, *PROMPTED["given"][1:]]})

    opencode = prompted(started, 204)
    child = {"info": {"id": "ses_2", "parentID": SESSION}}
    opencode.hears({"type": "session.created", "properties": child})
    prompt("ses_2")
    assert unshown() == ""
    prompt("ses_3")
    say(opencode)
    opencode.told()
    prompt(SESSION)
    assert "another session" in unshown()
    prompt(SESSION)
    assert unshown() == ""


@pytest.mark.parametrize("order", [say, interrupt], ids=["a prompt", "an interrupt"])
def test_an_older_plugin_is_refused_in_words(home: Home, order: Any) -> None:
    """It listens while a request is open, and knows nothing but requests."""
    Spool(home.bellboard).prepare()
    folder = home.bellboard / "opencode"
    folder.mkdir(mode=0o700)
    opencode = Program(home, sys.executable, "-c", OLDER, str(folder))
    try:
        with pytest.raises(Unanswered, match="restart OpenCode: its plugin is older"):
            order(opencode)
        (folder / str(opencode.process.pid)).unlink()
        with pytest.raises(Unanswered, match="restart OpenCode: its plugin is older"):
            order(opencode)
    finally:
        opencode.close()


def test_a_prompt_that_the_plugin_may_have_given_is_not_refused(
    started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenCode is busy, and replies later."""
    monkeypatch.setattr(server, "PATIENCE", 0.5)
    opencode = prompted(started, 204, 1.0)
    with pytest.raises(Unclear):
        say(opencode)
    assert opencode.told()["url"].endswith("/prompt_async")


def http(
    home: Home, pending: Any, status: int = 200, after: tuple[float, float] = (0.0, 0.0)
) -> Program:
    """Return a program that serves it; replies take these seconds, what is posted the second."""
    named = home.root / "opencode"
    if not named.exists():
        named.symlink_to(sys.executable)
    return Program(home, str(named), "-c", HTTP, json.dumps(pending), str(status), *map(str, after))


def test_a_port_of_its_own_process_takes_an_answer(home: Home) -> None:
    """The server itself says what is pending, in which session; a password is never guessed."""
    waiting = [{"id": "per_1", "sessionID": SESSION}]
    for pending, status, why in (
        (waiting, 200, ""),
        ([{"id": "per_1", "sessionID": "another"}], 200, "it has already been answered"),
        (waiting, 401, "its server wants a password"),
        ({}, 200, "it sends something other than a list"),
    ):
        program = http(home, pending, status)
        try:
            asked = program.about(PERMISSION)
            if why:
                assert refused(asked).endswith(why)
                continue
            OPENCODE.answer(asked, said(PERMISSION, "always"))
            told = {"url": "/permission/per_1/reply", "body": {"reply": "always"}}
            assert program.told() == told
            sleeping = subprocess.Popen(["sleep", "60"])
            assert refused(asked._replace(pid=sleeping.pid)) == server.NOBODY
            sleeping.kill()
            sleeping.wait()
        finally:
            program.close()


@pytest.mark.parametrize("after", [(1.0, 1.0), (0.0, 1.7)], ids=["all is slow", "it is busy"])
def test_an_answer_that_a_slow_opencode_takes_late_counts(
    home: Home, after: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sent answer is not refused: what the agent does afterwards is the outcome."""
    monkeypatch.setattr(server, "PATIENCE", 1.5)
    program = http(home, [{"id": "per_1", "sessionID": SESSION}], 200, after)
    try:
        desk = Desk(home, program.process.pid)
        head = f"bellboard 1\0agent=opencode\0event=PermissionRequest\0pid={desk.pid}\0\0"
        (desk.folder / NAME).write_text(head + json.dumps(PERMISSION))
        desk.s = replace(desk.session_of(agent="opencode"), session_id=SESSION)
        desk.session = {SESSION: desk.s}.get  # type: ignore[method-assign]
        given = {"session_id": SESSION}
        shown = desk.request(**given, ways=False)
        assert "request" in shown, shown
        reply = desk.answer(**given, digest=shown["request"]["digest"])
        assert (reply.get("way"), reply.get("outcome")) == ("server", "nothing"), reply
        assert program.told()["body"] == {"reply": "once"}
    finally:
        program.close()


@pytest.mark.core
def test_requests_are_read_in_full() -> None:
    """Choices have their effect in words, with the patterns that would be allowed."""
    made = SPEAKS.request(json.dumps(PERMISSION).encode(), "name", 5.0, Origin("opencode", 7))
    assert made is not None
    assert [p.text for p in made.parts] == ["touch a"]
    words = {c.id: c.words for c in made.choices}
    assert words["always"] == "Yes, and allow touch * until it is restarted"
    assert made.digest
    raw = json.dumps(asking(always=["touch *\n1  No"])).encode()
    made = SPEAKS.request(raw, "name", 5.0, Origin("opencode", 7))
    assert made is not None
    words = {c.id: c.words for c in made.choices}
    assert words["always"] == "Yes, and allow touch *<U+000A>1  No until it is restarted"
    question = SPEAKS.request(json.dumps(QUESTION).encode(), "name", 5.0, Origin("opencode", 7))
    assert question is not None
    assert [c.id for c in question.choices] == ["choose", "stop"]
    assert SPEAKS.request(b'{"type":"session.idle"}', "name", 5.0, Origin("opencode")) is None
