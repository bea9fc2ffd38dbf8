"""Our plugins in Pi, Amp and OpenCode, in a node of their own that plays the agent."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bellboard.agents.registry import agent_of
from bellboard.storage.spool import Spool
from rig import ROOT
from rig.fetched import node
from rig.fetched.cache import Missing
from rig.home import Home
from rig.host.playback import shown
from rig.waiting import leniency

#: Plays what an agent does with a plugin: each line of its input is an event, its context is fixed.
PI = """
import plugin from "./plugin.mjs"
const handlers = {}
plugin({ on: (event, handler) => (handlers[event] = handler) })
const ctx = {
  cwd: "/home/u/proj",
  sessionManager: { getSessionId: () => "01-a", getSessionFile: () => undefined },
}
for (const [event, said] of JSON.parse(process.argv[2])) {
  if (event === "quit") process.exit()
  const given = { ...ctx, isIdle: () => said.idle ?? false }
  const returned = await handlers[event]?.(said, process.argv[3] ? undefined : given)
  if (returned !== undefined) console.log("returned", returned)
}
"""
AMP = """
import plugin from "./plugin.mjs"
const handlers = {}
let tell
plugin({ on: (event, handler) => (handlers[event] = handler) })
const state = { subscribe: (next) => (tell = next) }
const given = JSON.parse(process.argv[2])
for (const [event, said, id, parent] of given) {
  const thread = { id: id ?? "T-1", parentThreadID: async () => parent, state }
  if (event === "state") tell(said)
  else {
    const returned = handlers[event](said, process.argv[3] ? {} : { thread })
    if (returned !== undefined) console.log("returned", returned)
  }
  await new Promise((done) => setTimeout(done, 5))
}
"""
OPENCODE = """
import { Bellboard } from "./plugin.mjs"
const plugin = await Bellboard({ client: {}, directory: "/home/u/proj" })
for (const said of JSON.parse(process.argv[2]))
  if (Array.isArray(said)) await plugin[said[0]](...said.slice(1)) // a hook, and what it is given
  else await plugin.event({ event: said })
"""
#: Two of its folders ask in one process; what the socket says of each request is printed.
FOLDERS = """
import net from "node:net"
import { Bellboard } from "./plugin.mjs"
const path = `${process.env.BELLBOARD_HOME}/opencode/${process.pid}`
const wait = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds))
const status = (request) =>
  new Promise((done) => {
    const socket = net.connect(path, () => socket.write(JSON.stringify({ request }) + "\\n"))
    socket.on("data", (data) => done(JSON.parse(data).status))
    socket.on("error", (error) => done(error.code))
  })
const [one, two] = [await Bellboard({ client: {} }), await Bellboard({ client: {} })]
const tell = (plugin, type, id) =>
  plugin.event({ event: { type, properties: { id, requestID: id, sessionID: "s" } } })
await tell(one, "permission.asked", "a")
await wait(0.2)
await tell(two, "permission.asked", "b")
await wait(0.2)
console.log(await status("a"), await status("b"))
await tell(one, "permission.replied", "a")
await tell(one, "permission.replied", "a")
console.log(await status("a"), await status("b"))
await wait(3.3)
console.log(await status("b"))
await two.dispose()
console.log(await status("b"))
await one.dispose()
console.log(await status("b"))
"""
MESSAGE = "chat.message"
HANGS = "exec sleep 60"
PATIENCE = 5  # seconds without progress that a plugin waits for its reports
PLAYERS = {"folders": FOLDERS, "pi": PI, "amp": AMP, "opencode": OPENCODE}
Plays = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def plays(home: Home) -> Iterator[Plays]:
    """plays(agent, events): what the spool holds afterwards, in order.

    Further names are variables of its environment, which has none that is empty.
    """
    spool = Spool(home.bellboard)
    spool.prepare()
    shutil.copy(ROOT / "hooks/emit", home.bellboard / "emit")
    try:
        program = node.node()
    except Missing as missing:
        pytest.skip(str(missing))

    def play(agent: str, events: list[Any], *more: str, **changed: str) -> list[dict[str, Any]]:
        text = agent_of("opencode" if agent == "folders" else agent).reporting(lambda event: "")
        (home.root / "plugin.mjs").write_text(text)
        (home.root / "play.mjs").write_text(PLAYERS[agent])
        done = subprocess.run(
            [program, home.root / "play.mjs", json.dumps(events), *more],
            env={name: value for name, value in (home.env | changed).items() if value},
            cwd=home.root,
            capture_output=True,
            text=True,
            check=False,
            timeout=6 * PATIENCE * leniency(1.0),
        )
        printed = "200 200\n404 200\n200\n404\nENOENT\n" if agent == "folders" else ""
        assert (done.stdout, done.stderr, done.returncode) == (printed, "", 0)
        files = [*spool.new.iterdir(), *spool.slot.iterdir()]
        found = sorted(files, key=lambda path: path.stat().st_mtime_ns)
        return [json.loads(path.read_bytes().rpartition(b"\0")[2]) for path in found]

    yield play


def test_the_extension_in_pi_reports_a_turn_in_order(plays: Plays) -> None:
    failed = {"role": "assistant", "stopReason": "error", "errorMessage": "529"}
    answer = {"role": "assistant", "stopReason": "stop", "content": [{"text": "x" * 9000}]}
    tool = {"toolName": "bash", "toolCallId": "1"}
    select = {"kind": "select", "title": "Sure?"}
    told = [
        ["session_start", {"reason": "startup"}],
        ["before_agent_start", {"prompt": "do it"}],
        ["agent_start", {}],
        ["agent_end", {"messages": [failed]}],
        ["message_update", {}],
        ["tool_execution_start", tool | {"args": {"command": "x"}}],
        ["ui_prompt_start", select],
        ["ui_prompt_end", select],
        ["tool_execution_end", tool | {"result": "secret"}],
        ["agent_settled", {"aborted": False}],
        ["session_shutdown", {"reason": "quit"}],
    ]
    untold = {
        3: ["agent_start", {}],  # as a retry; until something comes
        4: ["message_update", {}],
        5: ["ui_prompt_start", {"kind": "custom"}],  # it may ask nothing
        8: ["agent_end", {"messages": [{"role": "user"}, answer, {"role": "toolResult"}]}],
        9: ["ui_prompt_start", select | {"idle": True}],  # the user has opened it
    }
    events = [each for n, event in enumerate(told) for each in (event, untold.get(n)) if each]
    reported = plays("pi", events)
    assert [payload["event"] for payload in reported] == [event for event, _ in told]
    assert "secret" not in json.dumps(reported)
    assert len(reported[-2]["text"]) < 5000
    assert shown("pi", *reported) == ["idle", "working", "blocked", "working", "completed", None]


def test_the_plugin_in_amp_reports_what_a_thread_does_and_when_that_changes(plays: Plays) -> None:
    events = [
        ["session.start", {}],
        ["agent.start", {"message": "do it"}],
        ["state", "running"],
        ["state", "running"],
        ["state", "awaiting-approval"],
        ["state", "running"],
        ["agent.end", {"status": "done"}],
    ]
    told = plays("amp", events)
    assert len(told) == len(events) - 1
    assert shown("amp", *told) == ["idle", "working", "blocked", "working", "completed"]


@pytest.mark.parametrize(
    ("agent", "event"), [("pi", "agent_end"), ("pi", "agent_start"), ("amp", "agent.end")]
)
def test_nothing_that_an_agent_says_makes_its_plugin_throw(
    plays: Plays, agent: str, event: str
) -> None:
    """Nor print, or return anything: also an event of another shape, without any context."""
    odd: list[Any] = [[event, {"messages": None}], [event, {"messages": [None]}], [event, {}]]
    assert plays(agent, odd, "without a context") == []


@pytest.mark.parametrize("agent", ["pi", "amp"])
def test_a_plugin_is_harmless_without_bellboard(plays: Plays, home: Home, agent: str) -> None:
    """The state folder is gone, or the script in it does not run; its mode does not matter."""
    events = {"pi": ["agent_start", {}], "amp": ["agent.start", {"message": "x"}]}
    script = home.bellboard / "emit"
    script.unlink()
    assert plays(agent, [events[agent]]) == []
    script.mkdir()
    assert plays(agent, [events[agent]]) == []
    script.rmdir()
    shutil.copy(ROOT / "hooks/emit", script)
    script.chmod(0o600)
    assert len(plays(agent, [events[agent]])) == 1


def slowed(home: Home, **by: str) -> None:
    """Let the hook run something first, by event."""
    script = home.bellboard / "emit"
    script.rename(home.bellboard / "hook")
    waits = "".join(f"{event}) {command} ;; " for event, command in by.items())
    script.write_text(f'#!/bin/sh\ncase $1 in {waits}esac\nexec "${{0%/*}}/hook" "$@"\n')
    script.chmod(0o700)


def test_a_report_that_hangs_does_not_stop_those_after_it(plays: Plays, home: Home) -> None:
    """Nor is one lost that is slow. An agent that ends waits for its own, within limits."""
    slowed(home, session_start=HANGS, agent_start="sleep 2")
    names = ["session_start", "agent_start", "session_shutdown", "session_shutdown"]
    told = plays("pi", [[name, {}] for name in names])
    assert [each["event"] for each in told] == names[1:]


def test_slow_reports_are_told_in_full_before_an_agent_ends(plays: Plays, home: Home) -> None:
    names = ["session_start", "agent_start", "session_shutdown"]
    slowed(home, **dict.fromkeys(names, "sleep 2"))
    told = plays("pi", [*([name, {}] for name in names), ["quit", {}]])
    assert [each["event"] for each in told] == names


def test_reports_that_hang_hold_an_agent_that_ends_up_once(plays: Plays, home: Home) -> None:
    """The agent waits for the last report, as it may end right after it."""
    slowed(home, agent_start=HANGS, agent_end=HANGS, session_shutdown=HANGS)
    events = [["agent_start", {}], *[["agent_end", {"messages": []}]] * 4]
    begun = time.monotonic()
    assert plays("pi", [*events, ["session_shutdown", {}], ["quit", {}]]) == []
    assert plays("pi", events) == []  # and one that just has nothing left to do
    assert time.monotonic() - begun < 2 * (2 * PATIENCE) * min(2.0, leniency(1.0))


@pytest.mark.parametrize("agent", ["pi", "amp", "opencode"])
@pytest.mark.parametrize(
    ("folder", "changed"),
    [
        ("undefined/.local/state/bellboard", {"HOME": "", "BELLBOARD_HOME": ""}),
        ("near/.local/state/bellboard", {"HOME": "near", "BELLBOARD_HOME": ""}),
        ("near/board", {"BELLBOARD_HOME": "near/board"}),
    ],
)
def test_a_plugin_uses_nothing_of_the_current_folder(
    plays: Plays, home: Home, agent: str, folder: str, changed: dict[str, str]
) -> None:
    """The folder may be a repository that somebody else has filled."""
    script = home.root / folder / "emit"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\n: >{home.root}/ran\n")
    script.chmod(0o700)
    asks = {"type": "permission.asked", "properties": {"id": "a", "sessionID": "s"}}
    events = {"pi": ["agent_start", {}], "amp": ["session.start", {}], "opencode": asks}
    assert plays(agent, [events[agent]], XDG_STATE_HOME="", **changed) == []
    assert not (home.root / "ran").exists()
    assert [path.name for path in script.parent.iterdir()] == ["emit"]


def about(session: str, name: str, **given: Any) -> dict[str, Any]:
    """Return an event of OpenCode."""
    return {"type": name, "properties": {"sessionID": session, **given}}


def state(session: str, word: str) -> dict[str, Any]:
    return about(session, "session.status", status={"type": word})


def prompt(session: str, *parts: dict[str, Any]) -> list[Any]:
    """Return a prompt, and the start of work on it."""
    given = parts or ({"type": "text", "text": "go on"},)
    return [[MESSAGE, {"sessionID": session}, {"parts": given}], state(session, "busy")]


def test_a_subagent_of_a_subagent_in_opencode_is_not_listed(plays: Plays) -> None:
    """The terminal shows the first subagent; half a character is not reported."""

    def created(session: str, parent: str | None) -> dict[str, Any]:
        info = {"id": session, "directory": "/home/u/proj", "parentID": parent}
        return {"type": "session.created", "properties": {"info": info}}

    error = {"name": "APIError", "data": {"message": "x" * 3999 + "\U0001f600"}}
    told = plays(
        "opencode",
        [
            *(created("s1", None), created("s2", "s1"), created("s3", "s2")),
            about("s3", "session.error", error=error),
            about("s1", "session.idle"),
        ],
    )
    assert [each.get("parent") for each in told] == [None, "s1", "s1", "s1", None]
    assert told[3]["properties"]["error"]["data"]["message"] == "x" * 3999 + "…"
    assert shown("opencode", *told) == ["idle"]


def test_an_opencode_subagent_that_continues_after_a_restart_is_not_listed(plays: Plays) -> None:
    """No event reports its creation. A session with a prompt of a user is no subagent."""

    def task(session: str, goes_on: str) -> list[Any]:
        about = {"sessionID": session, "tool": "task", "callID": goes_on}
        return ["tool.execute.before", about, {"args": {"task_id": goes_on}}]

    first, *deeper = (prompt(f"s{number}") for number in (1, 2, 3))
    resumed = [*first, task("s1", "s2"), *deeper[0], task("s2", "s3"), *deeper[1]]
    own = prompt("s4")
    others = [*own, task("s4", "s1"), *first, task("s4", "s4"), *own]
    told = [each for each in plays("opencode", resumed + others) if each["type"] == MESSAGE]
    parents = [(each["properties"]["sessionID"], each.get("parent")) for each in told]
    agents = [("s2", "s1"), ("s3", "s1")]
    assert parents == [("s1", None), *agents, ("s4", None), ("s1", None), ("s4", None)]
    assert shown("opencode", *told[:3]) == ["working"]


def test_of_a_prompt_in_opencode_only_what_its_user_typed_is_reported(plays: Plays) -> None:
    """OpenCode adds parts to a prompt: text of files named with @, or of MCP resources."""
    typed = {"type": "text", "text": "look at @keys.txt"}
    added = ({"type": "text", "text": text, "synthetic": True} for text in ("Read", "secret"))
    file = {"type": "file", "url": "file:///home/u/proj/keys.txt", "mime": "text/plain"}
    told = plays("opencode", prompt("s1", typed, *added, file))
    assert "secret" not in json.dumps(told)
    assert told[0]["properties"]["text"].strip() == typed["text"]
    result = {"type": "text", "text": "of a task in the background", "synthetic": True}
    told = plays("opencode", prompt("s2", result))
    assert told[-2]["properties"] == {"sessionID": "s2", "text": ""}
    assert shown("opencode", told[-2]) == ["working"]


def test_a_message_that_starts_no_turn_in_opencode_is_no_prompt(plays: Plays) -> None:
    """OpenCode adds some itself, plugins as well. A prompt may be queued while it works."""
    added, _ = prompt("s1")
    done = {"role": "assistant", "sessionID": "s1", "finish": "stop", "time": {"completed": 1}}
    answer = {"type": "message.updated", "properties": {"info": done}}
    idle = [state("s1", "idle"), about("s1", "session.idle")]
    asked = about("s1", "permission.asked", id="p1", permission="bash")
    given = [added, *prompt("s1"), state("s1", "busy"), answer, added, *idle, added]
    told = plays("opencode", [*given, *prompt("s1"), asked, added])
    names = [MESSAGE, "session.status"]
    assert [each["type"] for each in told] == [*names, names[1], *names, "permission.asked"]
    assert shown("opencode", *told) == ["working", "completed", "working", "blocked"]
    queued = [*prompt("s2"), *prompt("s2", {"type": "text", "text": "then that"})]
    told = [each for each in plays("opencode", queued) if each["properties"]["sessionID"] == "s2"]
    texts = [each["properties"].get("text") for each in told]
    assert texts == ["go on", None, "then that", None]


def test_a_turn_in_opencode_ends_if_its_folder_is_closed(plays: Plays) -> None:
    """The process may go on, as after /connect, and no other event ends the turns."""
    info = {"id": "s2", "directory": "/home/u/proj", "parentID": "s1"}
    asked = about("s2", "permission.asked", id="p1", permission="bash")
    done = [*prompt("s3"), about("s3", "session.idle")]
    created = {"type": "session.created", "properties": {"info": info}}
    for at_work in ([], [created, *prompt("s2")], [created, *prompt("s2"), asked]):
        told = plays("opencode", [*done, *prompt("s1"), *at_work, ["dispose"]])[3:]
        ended = ["s2", "s1"] if at_work else ["s1"]
        closed = told[-1 - len(ended) :]
        assert [each["type"] for each in closed] == [*["session.idle"] * len(ended), "dispose"]
        assert [each["properties"].get("sessionID") for each in closed] == [*ended, None]
        assert shown("opencode", *told)[-1] == "idle"


def test_a_subagent_of_a_subagent_in_amp_is_not_listed(plays: Plays) -> None:
    events = [["session.start", {}, *ids] for ids in (["T-1"], ["T-2", "T-1"], ["T-3", "T-2"])]
    found = [(each["thread"], each.get("agent")) for each in plays("amp", events)]
    assert found == [("T-1", None), ("T-1", "T-2"), ("T-1", "T-3")]


def test_two_folders_of_one_opencode_can_both_be_answered(plays: Plays) -> None:
    """Each has a plugin of its own, and they share the socket, which goes with the last of them."""
    told = plays("folders", [])
    assert [each["type"] for each in told].count("permission.asked") == 2
