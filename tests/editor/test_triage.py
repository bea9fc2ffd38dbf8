"""Triage: which session is asked about next, and what its keys send."""

from __future__ import annotations

from typing import Any

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.asked import CALM, SAID, SLOW, asks, command, counts, delays, play, pressed, said
from rig.host.sample import Host, session
from rig.waiting import eventually


def triaged(shared: Editors, version: str, *sessions: dict[str, Any]) -> tuple[Editor, Host]:
    """Start a triage of sessions that ask for `make NAME`."""
    editor = shared(version, CALM, columns=64, lines=30)
    editor.lua(SAID)
    plays(editor, *sessions)
    host = Host(editor)
    host.push(*sessions)
    editor.command("ClaudeSessions triage")
    editor.shows(f"make {sessions[0]['session_id']}")
    counts(editor)
    return editor, host


def plays(editor: Editor, *sessions: dict[str, Any]) -> None:
    play(editor, *[command(each, f"make {each['session_id']}") for each in sessions])


def many(count: int) -> list[dict[str, Any]]:
    return [asks(f"p{n}", ago=100 - n) for n in range(count)]


def chosen(editor: Editor) -> list[tuple[str, str]]:
    return [(each["session_id"], each["choice"]) for each in editor.lua("return answers")]


def test_triage_answers_one_after_the_other(shared: Editors, version: str) -> None:
    """The longest wait first; each outcome is shown with the next request."""
    editor, _ = triaged(shared, version, *many(3))
    editor.shows("3 left · p0")
    for n, key in enumerate("AAD"):
        editor.shows(f"make p{n}")
        editor.press(key)
    said(editor, "triage: 3 answered")
    assert chosen(editor) == [("p0", "allow"), ("p1", "allow"), ("p2", "deny")]
    assert editor.messages() == ""


def test_new_requests_join_a_triage_and_those_answered_elsewhere_leave(
    shared: Editors, version: str
) -> None:
    some, new = many(3), asks("new", ago=1)
    editor, host = triaged(shared, version, *some)
    plays(editor, *some, new)
    host.push(*some[1:], new)
    editor.shows("3 left · p1")
    for key, name in (("A", "p2"), ("<Tab>", "new")):
        editor.press(key)
        editor.shows(f"make {name}")
    editor.press("A")
    said(editor, "triage: 2 answered, 1 answered elsewhere, 1 skipped")
    assert chosen(editor) == [("p1", "allow"), ("new", "allow")]


def test_a_failure_stays_in_view_until_it_was_read(shared: Editors, version: str) -> None:
    """A key goes to its session; nothing else is left that keys could be about."""
    editor, _ = triaged(shared, version, *many(2))
    editor.lua("outcome.p0 = { ok = false, why = 'its terminal shows a different request' }")
    editor.press("A")
    editor.shows("make p1")
    editor.shows("p0: not answered: its")
    editor.shows("gl to p0")
    editor.press("A")
    editor.shows("Triage: 1 answered, p0: not")
    before = editor.lua("return said")
    editor.press("s<Tab>goAD")
    pressed(editor)
    assert editor.lua("return said") == before
    editor.shows("Triage: 1 answered, p0: not")
    editor.press("gl")
    said(editor, "triage: 1 answered, p0: not answered: its")
    eventually(lambda: editor.lua("return asked")[-1] == "goto", "a jump to p0")
    assert len(chosen(editor)) == 2


def test_a_triage_from_insert_mode_goes_back_to_it(shared: Editors, version: str) -> None:
    """Keys after the last answer go nowhere."""
    editor = shared(version, CALM, columns=64, lines=30)
    editor.lua(SAID)
    host, new = Host(editor), asks("new", ago=1)
    plays(editor, new)
    host.push(new)
    delays(editor, 0.3)
    editor.lua("vim.keymap.set('i', '<C-g>', '<Plug>(bellboard-triage)', { buffer = true })")
    editor.press("ihello<C-g>")
    editor.shows("1 left · new")
    counts(editor)
    editor.press("A" + "s<Tab>goA" * 4)
    said(editor, "triage: 1 answered")
    assert len(editor.lua("return said")) == 1
    assert len(editor.lua("return answers")) == 1
    editor.press("!")
    editor.shows("hello!")


def test_a_triage_of_nothing_says_so(shared: Editors) -> None:
    editor = shared(config=CALM, columns=64, lines=30)
    editor.lua(SAID)
    Host(editor).push()
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


def test_triage_stays_while_a_session_may_still_ask(shared: Editors, version: str) -> None:
    """The triage goes on when any session asks, and ends when no session works any more."""
    editor = shared(version, CALM, columns=64, lines=30)
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
def test_a_triage_that_waits_is_left_at_once(shared: Editors, leaves: str) -> None:
    """By its key, or by going to another window, whose keys it never takes."""
    editor = shared(config=CALM, columns=64, lines=30)
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


@pytest.mark.parametrize("outcome", ["taken", "nothing", "busy", "elsewhere"])
def test_triage_asks_what_a_session_shows_first(shared: Editors, outcome: str) -> None:
    """Of two subagents, the other may have its dialog first; what the board shows comes next."""
    editor = shared(config=CALM, columns=64, lines=30)
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


def test_the_outcome_of_an_answer_is_said_although_another_triage_runs(shared: Editors) -> None:
    """The first one was closed before the outcome was known."""
    editor = shared(config=CALM, columns=64, lines=30)
    host, two = Host(editor), [asks("p0", ago=2), asks("p1", ago=1)]
    editor.lua(SAID)
    play(editor, *[command(each, f"make {each['session_id']}") for each in two])
    editor.lua(SLOW, "answer", "p0")
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


def test_a_triage_ends_when_another_request_is_opened(shared: Editors, version: str) -> None:
    """A triage does not take the view back once the next request of its session arrives."""
    editor = shared(version, CALM, columns=64, lines=30)
    host, three = Host(editor), [asks(f"p{n}", ago=9 - n) for n in range(3)]
    editor.lua(SAID)
    play(editor, *[command(each, f"make {each['session_id']}") for each in three])
    editor.lua(SLOW, "request", "p1")
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
