"""Triage: which session is asked about next, and what its keys send."""

from __future__ import annotations

from typing import Any

import pytest

from asked import asks, command, play
from rig.editor import Editor
from rig.fixtures import Editors
from rig.waiting import eventually
from sample import Host, session
from test_editor_answer import CALM, SAID, counts, pressed, said
from test_editor_around import SLOW

pytestmark = pytest.mark.editor


def test_triage_answers_one_after_the_other(nvim: Editors, version: str) -> None:
    """From insert mode and back to it; new ones join, those answered elsewhere leave."""
    editor = nvim(version, CALM, columns=64, lines=30)
    host = Host(editor)
    editor.lua(SAID)
    many = [asks(f"p{n}", ago=100 - n) for n in range(6)]
    new = asks("new", ago=1)
    play(editor, *[command(each, f"make {each['session_id']}") for each in [*many, new]])
    host.push(*many)
    editor.lua("vim.keymap.set('i', '<C-g>', '<Plug>(bellboard-triage)')")
    editor.press("ihello<C-g>")
    editor.shows("6 left · p0")
    for n, key in enumerate("AAD"):
        editor.shows(f"make p{n}")
        editor.press(key)
    editor.shows("make p3")
    editor.shows("p2: answered")
    host.push(*many[4:], new)
    editor.shows("make p4")
    editor.shows("3 left · p4")
    editor.press("<Tab>")
    editor.shows("make p5")
    editor.lua("outcome.p5 = { ok = false, why = 'its terminal shows a different request' }")
    editor.press("A")
    editor.shows("make new")
    editor.shows("p5: not answered: its")
    editor.shows("gl to p5")
    editor.press("A")
    editor.shows("Triage: 4 answered, 1 answered elsewhere, 1 skipped, p5: not")
    before = editor.lua("return said")
    editor.press("s<Tab>goAD")  # nothing is left that these could be about
    pressed(editor)
    assert editor.lua("return said") == before
    editor.shows("Triage: 4 answered, 1 answered elsewhere, 1 skipped, p5: not")
    editor.press("gl")
    said(editor, "triage: 4 answered, 1 answered elsewhere, 1 skipped, p5: not answered: its")
    eventually(lambda: editor.lua("return asked")[-1] == "goto", "a jump to p5")
    chosen = [(each["session_id"], each["choice"]) for each in editor.lua("return answers")]
    assert chosen[:3] == [("p0", "allow"), ("p1", "allow"), ("p2", "deny")]
    assert chosen[3:] == [("p5", "allow"), ("new", "allow")]
    editor.press(" world")
    editor.shows("hello world")

    # What is pressed after the last answer goes nowhere.
    editor.lua("answers = {} require('bellboard').setup({ answer = { key_delay = 0.3 } })")
    play(editor, command(new, "make new"))
    host.push(new)
    editor.press("<C-g>")
    editor.shows("1 left · new")
    counts(editor)
    editor.lua("_G.said = {}")
    editor.press("A" + "s<Tab>goA" * 4)
    said(editor, "triage: 1 answered")
    assert len(editor.lua("return said")) == 1
    assert len(editor.lua("return answers")) == 1
    editor.press("!")
    editor.shows("hello world!")
    host.push()
    editor.command("ClaudeSessions triage")
    said(editor, "no session is asking anything")
    assert editor.messages() == ""


def answered_once(editor: Editor) -> tuple[Host, dict[str, Any], dict[str, Any]]:
    """Answer the first request of a triage; return the one that may ask next, and one at work."""
    host, api, web = Host(editor), asks("api"), asks("web", ago=3)
    docs = session("working", "docs", project="docs")
    editor.lua(SAID)
    play(editor, command(api, "make api"), command(web, "make web"))
    host.push(api, docs)
    editor.command("ClaudeSessions triage")
    editor.shows("make api")
    counts(editor)
    editor.press("A")
    return host, web, docs


def test_triage_stays_while_a_session_may_still_ask(nvim: Editors, version: str) -> None:
    """The triage goes on when any session asks, and ends when no session works any more."""
    editor = nvim(version, CALM, columns=64, lines=30)
    host, web, docs = answered_once(editor)
    host.push(session("working", "api", project="api"), docs)
    editor.shows("Waiting for 2 sessions: 1 answered.")
    editor.press("ADgo")  # nothing is asked
    pressed(editor)
    assert editor.lua("return #answers") == 1
    host.push(session("working", "api", project="api"), web, docs)
    editor.shows("make web")
    counts(editor)
    editor.press("A")
    editor.shows("Waiting for 2 sessions: 2 answered.")
    host.push(*(session("completed", name, project=name) for name in ("api", "web", "docs")))
    said(editor, "triage: 2 answered")
    editor.hides("make web")
    assert editor.messages() == ""


@pytest.mark.parametrize("leaves", ["q", "<C-w>p"])
def test_a_triage_that_waits_is_left_at_once(nvim: Editors, leaves: str) -> None:
    """By its key, or by going to another window, whose keys it never takes."""
    editor = nvim(config=CALM, columns=64, lines=30)
    host, web, docs = answered_once(editor)
    editor.shows("Waiting for 1 session: 1 answered.")
    editor.press(leaves)
    pressed(editor)
    host.push(web, docs)
    said(editor, "triage: 1 answered")
    editor.hides("make")
    editor.press("iA")
    editor.shows("A")
    assert editor.lua("return #vim.api.nvim_list_wins()") == 1
    assert editor.lua("return #answers") == 1


#: Sends an answer once `release` is called.
SLOW_ANSWER = """
local host = require('bellboard.process.talk')
local ask = host.ask
host.ask = function(what, given, done)
  if what ~= 'answer' then
    return ask(what, given, done)
  end
  function _G.release() ask(what, given, done) end
end
"""


@pytest.mark.parametrize("outcome", ["taken", "nothing", "busy", "elsewhere"])
def test_triage_asks_what_a_session_shows_first(nvim: Editors, outcome: str) -> None:
    """Of two subagents, the other may have its dialog first; what the board shows comes next."""
    editor = nvim(config=CALM, columns=64, lines=30)
    host, api = Host(editor), asks("api")
    editor.lua(SAID)
    following = command(api, "make all")
    after = {"busy": True} if outcome == "busy" else following
    play(editor, {**command(api, "make docs"), "id": "api-2", "after": after})
    host.push(api)
    editor.command("ClaudeSessions triage")
    editor.shows("make docs")
    counts(editor)
    if outcome == "elsewhere":
        play(editor, following)
        host.push(api)
    else:
        told = "nothing" if outcome == "nothing" else "taken"
        editor.lua("outcome.api = { ok = true, outcome = ..., text = 'so' }", told)
        editor.press("D")
    if outcome == "busy":
        asked = len(editor.lua("return asked"))
        eventually(lambda: len(editor.lua("return asked")) > asked + 1, "another look")
        play(editor, following)
    editor.shows("make all")
    counts(editor)
    editor.lua("outcome.api = nil")
    editor.press("A")
    if outcome == "nothing":  # it stays until the user has read it
        editor.shows("Triage: 1 answered, api: ")
    else:
        elsewhere = "1 answered, 1 answered elsewhere"
        said(editor, elsewhere if outcome == "elsewhere" else "2 answered")
    chosen = [(each["request"], each["choice"]) for each in editor.lua("return answers")]
    before = [("api-2", "deny")] if outcome in ("taken", "nothing") else []
    assert chosen == [*before, ("api-1", "allow")]
    assert editor.messages() == ""


def test_the_outcome_of_an_answer_is_said_although_another_triage_runs(nvim: Editors) -> None:
    """The first one was closed before the outcome was known."""
    editor = nvim(config=CALM, columns=64, lines=30)
    host, two = Host(editor), [asks("p0", ago=2), asks("p1", ago=1)]
    editor.lua(SAID)
    play(editor, *[command(each, f"make {each['session_id']}") for each in two])
    editor.lua(SLOW_ANSWER)
    editor.lua("outcome.p0 = { ok = false, why = 'its hook is gone' }")
    host.push(*two)
    editor.command("ClaudeSessions triage")
    editor.shows("make p0")
    counts(editor)
    editor.press("A")
    editor.shows("make p1")
    editor.press("q")
    editor.hides("make p1")
    editor.command("ClaudeSessions triage")
    editor.shows("make p0")
    editor.lua("release()")
    said(editor, "triage: 1 left, p0: not answered: its hook is gone")
    editor.shows("make p0")
    assert editor.messages() == ""


def test_a_triage_ends_when_another_request_is_opened(nvim: Editors, version: str) -> None:
    """A triage does not take the view back once the next request of its session arrives."""
    editor = nvim(version, CALM, columns=64, lines=30)
    host, three = Host(editor), [asks(f"p{n}", ago=9 - n) for n in range(3)]
    editor.lua(SAID)
    play(editor, *[command(each, f"make {each['session_id']}") for each in three])
    editor.lua(SLOW.replace("...", "'p1'"))
    host.push(*three)
    editor.command("ClaudeSessions triage")
    editor.shows("make p0")
    counts(editor)
    editor.press("A")
    eventually(lambda: editor.lua("return #answers") == 1, "an answer")
    editor.command("ClaudeSessions answer p2")
    editor.shows("make p2")
    said(editor, "triage: 1 answered, 2 left")
    editor.lua("release()")
    editor.lua("vim.wait(50)")
    editor.shows("p2: Run a command")
    editor.hides("left")
    editor.press("q")
    editor.hides("make p2")
    assert len(editor.lua("return said")) == 1
    assert editor.lua("return #vim.api.nvim_list_wins()") == 1
    assert editor.messages() == ""
