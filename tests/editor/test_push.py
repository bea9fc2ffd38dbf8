"""Pushes of the host: how Lua stores them and passes them on."""

from __future__ import annotations

import json

import pytest

from bellboard.hosting.publish import Encoder
from rig.fixtures import Editors
from rig.host.sample import QUIET, Host, blocked, dated, house, session
from rig.waiting import eventually

IDS = "return vim.tbl_map(function(s) return s.session_id end, require('bellboard').sessions())"
HEAR = """
_G.heard = {}
vim.api.nvim_create_autocmd('User', {
  pattern = { 'BellboardTransition', 'BellboardUpdate' },
  callback = function(event)
    local data = event.data or {}
    table.insert(heard, { event.match, data.from, data.to, (data.session or {}).session_id })
  end,
})
"""


def test_sessions_come_most_urgent_first_then_oldest_first(nvim: Editors, version: str) -> None:
    """By status, then by time; hidden sessions are not listed."""
    editor = nvim(version, QUIET, ui=False)
    hidden = session("working", "team", hidden=True)
    Host(editor).push(*reversed(house()), hidden, session("idle", "later", ago=1))
    expected = ["api", "web", "error", "completed", "working", "background", "idle", "later"]
    assert editor.lua(IDS) == expected
    assert editor.lua("return require('bellboard').counts().idle") == 2
    assert "team" in str(editor.lua("return require('bellboard').sessions({ hidden = true })"))


def test_unknown_fields_are_nil(nvim: Editors) -> None:
    """No field arrives as vim.NIL, which is true in Lua."""
    editor = nvim(config=QUIET, ui=False)
    Host(editor).push(blocked(title=None, agents=[{"id": "a", "description": None}]))
    given = editor.lua("return require('bellboard').sessions()[1]")
    assert "title" not in given
    assert given["agents"] == [{"id": "a"}]


def test_changes_are_merged_into_the_state(nvim: Editors) -> None:
    """A push that is not full names what changed and what is gone."""
    editor = nvim(config=QUIET, ui=False)
    host = Host(editor)
    host.push(blocked("api"), session("working"), session("idle"))
    host.push(session("completed", "api"), full=False, removed=["idle"])
    assert editor.lua(IDS) == ["api", "working"]


def test_of_a_session_that_changes_only_the_changes_are_sent(nvim: Editors, version: str) -> None:
    """Applied in Lua, they give what was published; a session that was kept stays as it was."""
    editor = nvim(version, QUIET, ui=False)
    host, wire = Host(editor), Encoder()
    first = session("working", "api", tool="Edit", tasks={"done": 1, "total": 3}, ago=9)
    last = session("completed", "api", last_message="Done.", tasks={"done": 3, "total": 3}, ago=1)
    host.push(first)
    editor.lua("_G.kept = require('bellboard').session('api'); _G.copy = vim.deepcopy(kept)")
    host.push(last, full=False)
    now = editor.lua("return require('bellboard').session('api')")
    assert now == dated(last, now["since"] + 1)
    assert editor.lua("return vim.deep_equal(kept, copy)")
    messages = [
        {"full": full, "removed": [], "sessions": [dated(each, 10.0)]}
        for each, full in ((first, True), (last, False), (last, True))
    ]
    sent = [json.loads(wire.encoded(message)) for message in messages]
    assert [[len(m["sessions"]), len(m["changes"])] for m in sent] == [[1, 0], [0, 1], [1, 0]]
    assert sent[1]["changes"][0]["gone"] == ["tool"]
    assert "project" not in sent[1]["changes"][0]


def test_changes_of_an_unknown_session_wait_for_the_snapshot(nvim: Editors) -> None:
    """After a lost message, Lua asks for all sessions; until then, half a session is none."""
    editor = nvim(config=QUIET, ui=False)
    host = Host(editor)
    host.push(session("idle"))
    host.wire.encoded({"full": False, "removed": [], "sessions": [dated(blocked(), 1.0)]})  # lost
    host.push(session("working", "api"), full=False)
    assert editor.lua(IDS) == ["idle"]
    host.push(session("working", "api"), session("idle"))
    assert editor.lua(IDS) == ["api", "idle"]


def test_transitions_are_announced_once_and_only_live(nvim: Editors, version: str) -> None:
    """User events carry from, to and session, also for one that has just ended."""
    editor = nvim(version, QUIET, ui=False)
    editor.lua(HEAR)
    host = Host(editor)
    told = {"t": 1.0, "session_id": "api", "from": "working", "to": "blocked", "rule": "request"}
    host.push(blocked(), transitions=[{**told, "live": True}, {**told, "live": False}])
    gone = {"t": 2.0, "session_id": "api", "from": "blocked", "to": None, "live": True}
    host.push(full=False, removed=["api"], transitions=[gone])
    assert editor.lua("return heard") == [
        ["BellboardUpdate"],
        ["BellboardTransition", "working", "blocked", "api"],
        ["BellboardUpdate"],
        ["BellboardTransition", "blocked", None, "api"],
    ]


CALLBACKS = """
_G.called = {}
require('bellboard').setup({
  on_transition = function(t) table.insert(called, t.agent .. ' ' .. t.to) error('mine') end,
  on = { blocked = function(t) table.insert(called, 'blocked ' .. t.session.project) end },
})
"""


def test_a_throwing_callback_is_reported_and_the_others_run(nvim: Editors) -> None:
    """on_transition and on.<status> are called; an error in one stops nothing."""
    editor = nvim(config=QUIET, ui=False)
    host = Host(editor)
    editor.lua(CALLBACKS + HEAR)
    told = {"t": 1.0, "session_id": "api", "from": "working", "to": "blocked", "live": True}
    host.push(blocked(agent="codex"), transitions=[told])
    assert editor.lua("return called") == ["codex blocked", "blocked api"]
    assert editor.lua("return #heard") == 2
    eventually(lambda: "error in a transition callback" in editor.messages(), "a message")


def test_a_host_of_another_version_is_reported_once(nvim: Editors) -> None:
    """A pip-installed bellboard must not shadow this one unnoticed."""
    editor = nvim(config=QUIET, ui=False)
    host = Host(editor)
    host.push(blocked(), version="0.0.9")
    eventually(editor.messages, "a message")
    host.push(blocked(), version="0.0.9")
    assert editor.messages().count("the background process is version 0.0.9, the plugin") == 1
    assert editor.lua(IDS) == ["api"]


@pytest.mark.parametrize(
    ("keys", "mode"),
    [
        *(("i", "i"), ("v", "v"), ("qaA", "i"), (":let x = 1", "c"), ("d", "no"), ("R", "R")),
        *(("<C-v>", "\x16"), ("q:", "n:")),
    ],
)
def test_a_push_disturbs_no_mode(nvim: Editors, version: str, keys: str, mode: str) -> None:
    """Typing continues as if nothing had arrived."""
    editor = nvim(version, QUIET)
    host = Host(editor)
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'one', 'two' })")
    editor.press(keys)
    in_mode = "return vim.api.nvim_get_mode().mode .. vim.fn.getcmdwintype()"
    eventually(lambda: editor.lua(in_mode) == mode, f"mode {mode}")
    window = editor.lua("return vim.fn.win_getid()")
    host.push(*house())
    editor.shows("!1 ?1 2m")
    assert (editor.lua(in_mode), editor.lua("return vim.fn.win_getid()")) == (mode, window)
    assert editor.messages() in ("", "recording @a")
