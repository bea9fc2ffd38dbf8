"""OpenCode 2 as it is documented: a node of its own calls our plugin with a context and events."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bellboard.agents.agent import OpenRequest, Unanswered
from bellboard.agents.opencode import server
from bellboard.agents.opencode.agent import OpenCode
from bellboard.core.events import Origin
from bellboard.core.request import Answer
from bellboard.storage.spool import Spool
from files.test_opencode_server import found
from rig import ROOT
from rig.fetched import node
from rig.home import Home
from rig.host.playback import shown
from rig.waiting import eventually

SPEAKS = OpenCode()
A, B, LAST, FOLDER = "ses_A", "ses_B", "ses_last", "/home/u/proj"
#: Plays the service: a context per folder, each of which hears the events of all.  A line of its
#: input is an event, or what to do next; it prints what the plugin asks of a context.
PLAY = """
import { setTimeout as wait } from "node:timers/promises"
import readline from "node:readline"
import plugin from "./bellboard.mjs"
const [field, ...lacks] = process.argv.slice(2)
const asked = new Map() // request → the folder in which it waits
const context = (directory) => {
  const queue = []
  let stir = () => {}
  const tells = async (verb, given) => console.log(JSON.stringify({ [verb]: given, directory }))
  const made = {
    app: { version: "2.2.6" },
    location: { directory, project: { id: "p", directory, canonical: directory } },
    options: {},
    event: {
      async *subscribe({ signal }) {
        signal.addEventListener("abort", () => stir())
        while (!signal.aborted) {
          while (queue.length) yield queue.shift()
          await new Promise((done) => (stir = done))
        }
      },
    },
    permission: {
      async reply(given) {
        if (asked.get(given.requestID) !== directory) throw new Error("PermissionNotFoundError")
        const { sessionID, requestID, message } = given
        await tells("reply", { sessionID, requestID, [field]: given[field], message })
      },
    },
    session: {
      async get({ sessionID: id }) {
        return id === "ses_old" ? { id, parentID: "ses_A", location: { directory } } : {}
      },
      prompt: (given) => tells("prompt", given),
      interrupt: (given) => tells("interrupt", given),
    },
  }
  for (const name of lacks) delete made[name]
  const hear = (event) => (queue.push(event), stir())
  return { made, hear, directory }
}
const contexts = ["/elsewhere", "/home/u/proj"].map(context)
const ends = []
for (const each of contexts) ends.push(await plugin.setup(each.made))
console.log("up")
for await (const line of readline.createInterface({ input: process.stdin })) {
  const event = JSON.parse(line)
  if (event === "reload") {
    for (const end of ends.splice(0)) await end?.()
    for (const each of contexts) ends.push(await plugin.setup(each.made))
  } else {
    if (event?.type === "permission.asked") asked.set(event.data?.id, event.location?.directory)
    for (const each of contexts) each.hear(event)
  }
  await wait(20) // as its events come one by one
  console.log("heard")
}
for (const end of ends) await end?.()
process.exit()
"""


class Service:
    """A process that stands for the background service of OpenCode 2."""

    def __init__(self, home: Home, *argv: str) -> None:
        self.home, self._events = home, 0
        how: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(
            [str(node.node()), "play.mjs", *argv],
            env=home.env,
            cwd=home.root,
            stderr=subprocess.PIPE,
            **how,
        )
        assert self.line() == "up"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def given(self) -> Any:
        """Return what the plugin asks of a context next."""
        return json.loads(self.line())

    def hears(self, *events: Any) -> None:
        for event in events:
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps(event) + "\n")
            self.process.stdin.flush()
            assert self.line() == "heard"

    def about(self, payload: Any) -> OpenRequest:
        data = json.dumps(payload).encode()
        return OpenRequest(A, self.process.pid, "", data, self.home.bellboard)

    def told(self) -> list[dict[str, Any]]:
        """Let it end; return what it has reported, in order."""
        self.hears(created(LAST))

        def all_told() -> list[dict[str, Any]]:
            told = reported(self.home)
            return told if told and told[-1]["properties"]["sessionID"] == LAST else []

        told = eventually(all_told)
        _, errors = self.process.communicate()
        assert (errors, self.process.returncode) == ("", 0)
        return told[:-1]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def serves(home: Home) -> Iterator[Callable[..., Service]]:
    """serves(field, lacks…): its context takes answers in this field, and lacks these members."""
    made: list[Service] = []
    Spool(home.bellboard).prepare()
    (home.bellboard / "hosts" / str(os.getpid())).touch()  # while none runs, only the last is kept
    shutil.copy(ROOT / "hooks/emit", home.bellboard / "emit")
    (home.root / "bellboard.mjs").write_text(SPEAKS.reporting(str))
    (home.root / "play.mjs").write_text(PLAY)

    def serve(field: str = "decision", *lacks: str) -> Service:
        made.append(Service(home, field, *lacks))
        return made[-1]

    yield serve
    for service in made:
        service.close()


def reported(home: Home) -> list[dict[str, Any]]:
    spool = Spool(home.bellboard)
    items = [item for name in spool.scan() if (item := spool.read(name)) is not None]
    return [json.loads(item.payload) for item in items]


UNABLE = server.UNDONE[server.UNABLE]
_made = iter(range(1 << 30))


def about(type: str, session: str = A, **data: Any) -> dict[str, Any]:
    """Return an event as the stream of the service has it."""
    place = {"location": {"directory": FOLDER}}
    told = {"form": {"sessionID": session, **data}} if type == "form.created" else None
    data = told or {"sessionID": session, **data}
    return {"id": f"evt_{next(_made)}", "created": 1, "type": type, **place, "data": data}


def created(session: str = A, **more: Any) -> dict[str, Any]:
    return about("session.created", session, location={"directory": FOLDER}, slug="x", **more)


def prompt(text: str, session: str = A) -> list[dict[str, Any]]:
    item = {"type": "user", "payload": {"text": text}, "delivery": "queue"}
    return [
        about("session.inbox.enqueued", session, inboxID="msg_1", item=item),
        about("session.execution.started", session),
        about("session.inbox.delivered", session, inboxID="msg_1"),
        about("session.step.started", session, assistantMessageID="msg_2", agent="build"),
    ]


def call(tool: str, id: str = "call_1", session: str = A, **given: Any) -> list[dict[str, Any]]:
    ids = {"assistantMessageID": "msg_2", "id": id}
    return [
        about("session.tool.input.started", session, **ids, name=tool),
        about("session.tool.called", session, **ids, input=given, executed=False),
    ]


def result(id: str = "call_1", session: str = A, how: str = "success", **more: Any) -> Any:
    return about(f"session.tool.{how}", session, id=id, assistantMessageID="msg_2", **more)


def ends(how: str = "succeeded", session: str = A, **more: Any) -> dict[str, Any]:
    return about(f"session.execution.{how}", session, **more)


ASKS = {"action": "shell", "resources": ["touch a"], "save": ["touch *"], "metadata": {}}
SOURCE = {"type": "tool", "messageID": "msg_2", "id": "call_1"}
PERMISSION = about("permission.asked", id="per_1", **ASKS, source=SOURCE)
FORM = about(
    "form.created",
    id="frm_1",
    mode="form",
    title="Questions",
    metadata={"kind": "question"},
    fields=[
        {
            "key": "q",
            "type": "string",
            "title": "Drink",
            "description": "Tea or coffee?",
            "options": [{"value": "tea", "label": "Tea"}, {"value": "c", "label": "Coffee"}],
        },
        {"key": "n", "type": "boolean", "title": "Sugar?"},
        {"key": "secret", "type": "string", "hidden": True},
    ],
)


def refused(asked: OpenRequest, reply: bytes = b"") -> str:
    with pytest.raises(Unanswered) as caught:
        SPEAKS.answer(asked, reply)
    return str(caught.value)


def test_a_turn_of_opencode_2_is_shown_from_its_prompt_to_its_end(serves: Any) -> None:
    """It asks, is answered, and is done; each event comes once, though each folder hears it."""
    service = serves()
    service.hears(created(), *prompt("do it"), *call("shell", command="touch a"), PERMISSION)
    replied = about("permission.replied", requestID="per_1", reply="once")
    service.hears(replied, result(), ends())
    told = service.told()
    assert shown("opencode", *told) == ["idle", "working", "blocked", "working", "completed"]
    assert {each["directory"] for each in told} == {FOLDER}
    texts = [each["properties"]["text"] for each in told if each["type"] == "chat.message"]
    assert texts == ["do it"]
    types = [each["type"] for each in told]
    assert [types.count(x) for x in ("permission.asked", "tool.execute.before")] == [1, 1]


@pytest.mark.parametrize(
    ("end", "then"),
    [
        (ends("failed", error={"type": "provider.auth", "message": "no key"}), "error"),
        (ends("failed"), "error"),
        (ends("interrupted", reason="user"), "idle"),
        (ends("interrupted", reason="shutdown"), "idle"),
        (ends("interrupted", reason="superseded"), "working"),
        (about("session.deleted"), None),
    ],
)
def test_each_end_of_a_turn_of_opencode_2_is_told_apart(serves: Any, end: Any, then: str) -> None:
    service = serves()
    service.hears(created(), *prompt("do it"), end)
    assert shown("opencode", *service.told())[-1] == then


def test_an_execution_of_opencode_2_that_runs_no_turn_shows_nothing(serves: Any) -> None:
    """To undo a message is one, without a step."""
    service = serves()
    started = about("session.execution.started")
    service.hears(created(), *prompt("do it"), ends(), started, ends())
    service.hears(started, ends("interrupted", reason="user"))
    told = service.told()
    assert shown("opencode", *told) == ["idle", "working", "completed"]
    assert [each["type"] for each in told][-1] == "session.idle"


def test_a_turn_of_opencode_2_that_fails_before_its_first_step_has_failed(serves: Any) -> None:
    service = serves()
    model = {"type": "provider.no-route", "message": "Model unavailable: x"}
    service.hears(created(), *prompt("do it")[:2], ends("failed", error=model))
    assert shown("opencode", *service.told()) == ["idle", "working", "error"]


def test_a_subagent_of_opencode_2_works_for_its_session(serves: Any) -> None:
    """It may ask, and go on in the background; one that was begun earlier is looked up."""
    service = serves()
    service.hears(created(), *prompt("do it"), *call("subagent", agent="general", prompt="look"))
    service.hears(created(B, parentID=A, agent="general"), *prompt("You are a subagent", B))
    service.hears(about("session.tool.progress", id="call_1", metadata={"sessionID": B}))
    service.hears(about("permission.asked", B, id="per_2", action="read", resources=["/etc/*"]))
    service.hears(about("permission.replied", B, requestID="per_2", reply="reject"))
    service.hears(result(metadata={}), ends(), ends(session=B))
    service.hears(about("session.step.started", "ses_old"))
    told = service.told()
    events = [SPEAKS.event(json.dumps(x).encode(), 5.0, 5.0, Origin("opencode")) for x in told]
    assert {event.session_id for event in events} == {A}
    kinds = [(e.kind, e.agent) for e in events if e.agent]
    asked = [("agent request", B), ("agent tool end", B)]
    assert [("agent start", B), *asked, ("agent stop", B)] == [k for k in kinds if k[0] != "note"]
    assert kinds[-1] == ("note", "ses_old")
    [spawned] = [e.spawned for e in events if e.kind == "tool end"]
    assert spawned == B
    statuses = shown("opencode", *told)
    assert statuses == ["idle", "working", "blocked", "working", "completed"]


@pytest.mark.parametrize("field", ["reply", "decision"])
def test_a_permission_of_opencode_2_is_answered_in_its_own_folder(serves: Any, field: str) -> None:
    """Its versions name the answer in two ways, and only the context of a request knows it."""
    service = serves(field)
    service.hears(created(), *prompt("do it"), *call("shell", command="touch a"), PERMISSION)
    [payload] = [x for x in eventually(lambda: asking(service.home)) if x]
    made = SPEAKS.request(json.dumps(payload).encode(), "n", 5.0, Origin("opencode", 7))
    assert made is not None
    assert (made.title, made.parts[0].text) == ("Run a command", "touch a")
    words = {choice.id: choice.words for choice in made.choices}
    assert words["always"] == "Yes, and allow touch * in this project from now on"
    asked = service.about(payload)
    found(asked)
    said = SPEAKS.reply(asked.payload, Answer("deny", message="Use b"))
    SPEAKS.answer(asked, said)
    given = {"sessionID": A, "requestID": "per_1", field: "reject", "message": "Use b"}
    assert service.given() == {"reply": given, "directory": FOLDER}
    forged = {**payload, "properties": {**payload["properties"], "patterns": ["ls"]}}
    assert "status 400" in refused(service.about(forged), b'{"reply":"once"}')
    service.hears("reload")  # a file of its folder has changed
    found(asked)
    service.hears(about("permission.replied", requestID="per_1", reply="reject"))
    assert refused(asked) == "it has already been answered"


def asking(home: Home) -> list[dict[str, Any]]:
    return [x for x in reported(home) if x["type"].endswith(".asked")]


def test_a_question_of_opencode_2_is_shown_and_answered_in_its_terminal(serves: Any) -> None:
    """No plugin can answer the form in which it asks; who wants to is told so."""
    service = serves()
    service.hears(created(), *prompt("do it"), FORM)
    [payload] = eventually(lambda: asking(service.home))
    made = SPEAKS.request(json.dumps(payload).encode(), "n", 5.0, Origin("opencode", 7))
    assert made is not None and made.kind == "question"
    assert [q.text for q in made.questions] == ["Tea or coffee?", "Sugar?"]
    assert [o.label for q in made.questions for o in q.options] == ["Tea", "Coffee", "Yes", "No"]
    asked = service.about(payload)
    eventually(lambda: refused(asked) == server.WHY[server.UNABLE])
    service.hears(about("form.replied", id="frm_1", answer={"q": "tea"}), ends())
    told = service.told()
    assert shown("opencode", *told) == ["idle", "working", "blocked", "working", "completed"]


def test_a_question_of_opencode_2_that_is_closed_blocks_no_longer(serves: Any) -> None:
    service = serves()
    url = about("form.created", id="frm_2", mode="url", title="Sign in", url="https://x.test/")
    service.hears(created(), *prompt("do it"), url, about("form.cancelled", id="frm_2"))
    service.hears(ends("interrupted", reason="user"))
    assert shown("opencode", *service.told()) == ["idle", "working", "blocked", "working", "idle"]


def test_a_session_of_opencode_2_takes_a_prompt_and_an_interrupt(serves: Any) -> None:
    """Where its versions have no way for that, it says so."""
    order = server.order
    lacking: tuple[tuple[tuple[str, ...], str], ...] = ((), ""), (("session",), UNABLE)
    for lacks, why in lacking:
        service = serves("reply", *lacks)
        service.hears(created(), *prompt("do it"))
        pid, home = service.process.pid, service.home.bellboard
        eventually((home / "opencode" / str(pid)).exists)
        for given, verb in ({"prompt": "then that"}, "prompt"), ({"abort": True}, "interrupt"):
            if why:
                with pytest.raises(Unanswered, match=why):
                    order(home, pid, A, given)
                continue
            order(home, pid, A, given)
            text = {"text": "then that"} if verb == "prompt" else {}
            assert service.given() == {verb: {"sessionID": A, **text}, "directory": FOLDER}


def test_nothing_that_opencode_2_says_makes_the_plugin_throw(serves: Any) -> None:
    """Odd events are left out, or reported as far as they can be read; it goes on."""
    service = serves()
    odd: list[Any] = [None, {}, [], "x", {"type": 1}, {"type": "constructor", "data": {}}]
    for type in ("session.created", "session.inbox.enqueued", "permission.asked", "form.created"):
        odd += [{"type": type}, {"type": type, "data": None}, {"type": type, "data": []}]
        odd += [{"type": type, "data": {"sessionID": x}} for x in (1, "", "global", ["ses_A"])]
    odd += [{"type": "session.execution.failed", "data": {"sessionID": B, "error": "x"}}]
    odd += [about("form.created", B, id=1, fields=[None, {"options": [None]}], title={})]
    odd += [about("form.created", B, id={}, fields="x")]
    odd += [about("permission.asked", B, id=[], resources="x", metadata="y", source=1, save=1)]
    odd += [about("session.inbox.enqueued", B, item={"type": "user", "payload": None})]
    odd += [about("session.tool.called", B), about("session.tool.success", B)]
    odd += [about("session.created", "ses_C", location=1, parentID={}), created("__proto__")]
    odd += [
        created("ses_D", parentID="ses_D"),
        about("permission.replied", B, requestID="toString"),
    ]
    big = "\U0001f600" * 40_000
    service.hears(*odd, created(), *prompt(big), *call("shell", command=big), ends())
    told = [x for x in service.told() if x["properties"].get("sessionID") == A]
    assert shown("opencode", *told) == ["idle", "working", "completed"]
    assert all(len(json.dumps(x)) < 60_000 for x in told)


BARE = """
import plugin, { Bellboard } from "./bellboard.mjs"
const throws = new Proxy({}, { get() { throw new Error("no") } })
const odd = { subscribe: () => { throw new Error("no") } }
const ended = { subscribe: async function* () { throw new Error("no") } }
for (const ctx of [undefined, null, {}, { event: null }, { event: {} }, throws, { event: throws }])
  if (await plugin.setup(ctx)) throw new Error("it subscribes to nothing")
for (const event of [odd, ended]) await (await plugin.setup({ event }))()
if (plugin.id !== "bellboard" || plugin.server !== Bellboard) throw new Error("not for both")
const hooks = await plugin.server({ client: {}, directory: "/srv" })
const event = { subscribe: () => { throw new Error("OpenCode 1 reports twice") } }
if (await plugin.setup({ event })) throw new Error("OpenCode 1 reports twice")
await hooks.dispose()
"""


def test_the_plugin_loads_where_a_context_lacks_all_that_it_needs(serves: Any, home: Home) -> None:
    """It then does nothing: one that throws shows as failed.  OpenCode 1 calls both entries."""
    serves().close()
    (home.root / "bare.mjs").write_text(BARE)
    command = [str(node.node()), "bare.mjs"]
    done = subprocess.run(command, env=home.env, cwd=home.root, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    assert [each["type"] for each in reported(home)] == ["dispose"]


@pytest.mark.parametrize(
    ("argv", "serves"),
    [
        (["/u/bin/opencode", "serve", "--service"], True),
        (["opencode", "serve", "--port", "4096"], True),
        (["opencode", "serve", "--stdio"], False),
        (["opencode"], False),
        (["opencode", "run", "do it"], False),
    ],
)
def test_the_service_of_opencode_2_is_no_terminal(argv: list[str], serves: bool) -> None:
    """Its place is that of whoever started it; a private one is in the terminal of its client."""
    assert SPEAKS.serves(argv) == serves
