"""The rows of a request, and texts that are typed into it, also if they are refused."""

from __future__ import annotations

from typing import Any

import pytest

from bellboard.screen.prompt import CHOOSE, DOES
from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.asked import (
    CALM,
    SAID,
    asks,
    command,
    form,
    opened,
    play,
    questions,
    sent,
    typed,
)
from rig.host.sample import Host
from rig.waiting import eventually


def test_a_text_that_is_refused_is_kept(shared: Editors, version: str) -> None:
    """For another try, and in register 1; which texts can be typed is said before."""
    editor = shared(version, CALM, columns=80, lines=24)
    host, api = Host(editor), asks("api")
    web, last = asks("web", kind="question", ago=9), asks("last", ago=1)
    editor.lua(SAID)
    limits = "one line, at most 200 printable characters"
    by_keys = {"way": "keys", "takes": limits}
    typed_ones = [{**command(api, "make"), **by_keys}, {**questions(web), **by_keys}]
    play(editor, *typed_ones, command(last, "make last"))
    host.push(api, web)
    editor.lua(f"outcome.api = {{ ok = false, why = 'its dialog takes only {limits}' }}")
    opened(editor, "api", "Run a command")
    editor.press("R")
    editor.shows(f"<C-s> send · <C-c> cancel · {limits} ╯")
    typed(editor, "No", "use make<CR>clean")
    editor.shows("register 1.")
    editor.shows("Not answered: its dialog takes only one line")
    assert editor.lua("return vim.fn.getreg('1')") == "use make\nclean\n"
    editor.lua("outcome.api = nil answers = {}")
    editor.press("R")
    typed(editor, "No", ", please")
    assert sent(editor) == {"choice": "deny", "message": "use make\nclean, please"}

    # Also after the view was left, as in a triage.
    editor.lua("outcome.web = { ok = false, why = 'answered in its terminal' }")
    host.push(web, last)
    editor.command("ClaudeSessions triage")
    editor.shows("Answer questions")
    editor.press("i")
    typed(editor, "Database", "neither")
    editor.shows("> neither")
    editor.press("AA")
    eventually(lambda: editor.lua("return vim.fn.getreg('1')") == "neither\n", "register 1")
    editor.shows("make last")
    editor.shows("web: not answered: answered in its terminal; your text is in register 1")
    assert editor.messages() == ""


def test_a_narrow_window_says_first_how_to_send(shared: Editors) -> None:
    """Before which texts can be typed."""
    editor = shared(config=CALM, columns=60, lines=15)
    host, api = Host(editor), asks("api")
    by_keys = {"way": "keys", "takes": "one line, at most 200 printable characters"}
    play(editor, {**command(api, "make"), **by_keys})
    host.push(api)
    opened(editor, "api", "Run a command")
    editor.press("R")
    editor.shows("<C-s> send · <C-c> cancel · one line, ")


def replying(editor: Editor) -> Host:
    """Open the prompt for a message that goes with a no."""
    host, api = Host(editor), asks("api")
    play(editor, command(api, "make"))
    host.push(api)
    opened(editor, "api", "Run a command")
    editor.press("R")
    editor.shows("<C-s> send")
    return host


def test_a_text_is_kept_although_a_command_is_typed_as_its_window_closes(
    shared: Editors, version: str
) -> None:
    """The command is typed ahead, or comes from a mapping."""
    editor = shared(version, CALM, columns=80, lines=24)
    replying(editor)
    editor.press("precious<Esc>")
    editor.lua("vim.api.nvim_feedkeys(':q\\r:e', 't', false)")
    editor.hides("<C-s> send")
    editor.press("<Esc>")
    eventually(lambda: editor.lua("return vim.fn.getreg('1')") == "precious\n", "register 1")


def test_the_view_follows_after_its_prompt_was_lost(shared: Editors) -> None:
    """:noautocmd closes a prompt without a word; what is asked can still end, and be answered."""
    editor = shared(config=CALM, columns=80, lines=24)
    host = replying(editor)
    editor.press("<Esc>:noautocmd quit<CR>")
    editor.hides("<C-s> send")
    editor.lua("requests.api = nil")
    host.push()
    editor.shows("The session has ended.")
    assert editor.messages() == ""


def test_an_answer_is_shown_where_nothing_can_be_remembered(nvim: Editors, version: str) -> None:
    """A message that is due once is left out if the state folder cannot be made."""
    editor = nvim(version, CALM, columns=80, lines=24)
    host, api = Host(editor), asks("api")
    play(editor, command(api, "make"))
    host.push(api, health={"answers": "off"})
    editor.home.file("state", "a file")
    editor.lua("vim.env.XDG_STATE_HOME = ...", str(editor.home.project / "state"))
    editor.lua("outcome.api = { ok = true, way = 'keys', outcome = 'taken', text = 'it went on' }")
    note = "return require('bellboard.remembered').note('answers')"
    assert editor.lua(note) is False
    opened(editor, "api", "Run a command")
    editor.press("A")
    assert sent(editor) == {"choice": "allow"}
    editor.hides("Sending")
    assert "E739" not in editor.messages()


LINE = "return require('bellboard.answer.rows').line(...)"
PART = """
local rows = {}
require('bellboard.answer.rows').part(..., 40, rows)
return rows
"""


@pytest.mark.parametrize(
    ("text", "width", "broken"),
    [
        ("make all now", 9, ["make all ", "now"]),
        ("x" * 25, 10, ["x" * 10, "x" * 10, "x" * 5]),
        ("日本語日本語", 5, ["日本", "語日", "本語"]),
        ("", 5, [""]),
    ],
)
def test_text_is_broken(shared: Editors, text: str, width: int, broken: list[str]) -> None:
    """At words, or else wide characters stay whole."""
    editor = shared(config=CALM, columns=80, lines=24)
    assert editor.lua(LINE, text, width) == broken


def test_a_long_text_is_broken_at_once_and_whole(shared: Editors) -> None:
    editor = shared(config=CALM, columns=80, lines=24)
    whole = "é日" * 5000
    assert "".join(editor.lua(LINE, whole, 40)) == whole
    seconds = """
      local began = os.clock()
      require('bellboard.answer.rows').line(('word and '):rep(200000), 76)
      return os.clock() - began
    """
    assert editor.lua(seconds) < 3  # of this process; 0.1 s, and 15 s if it were quadratic


def diff(old: str, new: str, *warnings: str) -> dict[str, Any]:
    return {"kind": "diff", "old": old, "new": new, "warnings": list(warnings)}


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (diff("x", "x\n", "a line break added"), [" ! hidden in it: a line break added "]),
        (diff("x", "x"), ["  no difference"]),
        ({"kind": "file", "text": "x\n"}, ["x"]),
        ({"kind": "file", "text": "x\n\n"}, ["x", ""]),
        (diff("\tx\n\ty\n", "    x\n\ty\n"), ["⇥   x", "    x", "    y"]),
    ],
)
def test_a_part_of_a_request_shows_what_cannot_be_seen(
    shared: Editors, part: dict[str, Any], shown: list[str]
) -> None:
    """Line breaks at the end, tabs that become blanks, and nothing at all."""
    editor = shared(config=CALM, columns=80, lines=24)
    assert [row["text"] for row in editor.lua(PART, part)] == shown


def test_hidden_characters_are_marked(shared: Editors) -> None:
    editor = shared(config=CALM, columns=80, lines=24)
    part = {"kind": "command", "text": "ls <U+202E>x ··", "warnings": ["it turns"]}
    warning, row = editor.lua(PART, part)
    assert "hidden in it: it turns" in warning["text"]
    marks = [chunk[0] for chunk in row["chunks"] if chunk[1:] == ["BellboardHidden"]]
    assert marks == ["<U+202E>", "··"]


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("number", "many", '"many" is not a number'),
        ("number", "2.5", None),
        (
            "integer",
            "9007199254740993",
            "9007199254740993 cannot be sent exactly; answer in its terminal",
        ),
        ("integer", "9007199254740991", None),
    ],
)
def test_a_number_is_sent_as_it_was_typed(
    shared: Editors, kind: str, text: str, why: str | None
) -> None:
    """A default of another field is sent with it."""
    editor = shared(config=CALM, columns=80, lines=24)
    draft = """
      local draft, kind, text = require('bellboard.answer.draft'), ...
      local form = { fields = { { name = 'n', type = kind }, { name = 's', default = 'x' } } }
      local made = draft.new(form)
      return { draft.set(made, form.fields[1], 1, text) or vim.NIL, draft.content(made, form) }
    """
    said, content = editor.lua(draft, kind, text)
    assert said == why
    assert content == {"s": "x", **({} if why else {"n": float(text)})}


#: A picker as other plugins open it: a float that says nothing about its place among others.
PICKER = """
vim.ui.select = function(items, opts, done)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, { 'their picker' })
  local win = vim.api.nvim_open_win(buf, true, {
    relative = 'editor', row = 10, col = 4, width = 40, height = 1, style = 'minimal' })
  function _G.choose(item)
    vim.api.nvim_win_close(win, true)
    if item ~= '' then
      done({ label = item })
    end
  end
end
"""
HIGH = "return vim.api.nvim_win_get_config(0).zindex"


def test_a_picker_of_another_plugin_is_over_the_view(nvim: Editors, version: str) -> None:
    """The board may be a float with a preview. Afterwards the view is on top again."""
    board = {"layout": "float", "preview": True}
    editor = nvim(version, {**CALM, "board": board}, columns=80, lines=24)
    host, asking = Host(editor), asks("form", kind="form")
    shown = form(asking)
    options = [{"label": "one"}, {"label": "two"}]
    shown["fields"] = [{"name": "env", "title": "Env", "type": "string", "options": options}]
    shown["parts"] = [{"kind": "text", "text": "a line\n" * 12}]
    play(editor, shown)
    editor.lua(PICKER)
    host.push(asking)
    editor.command("ClaudeSessions board")
    for item in ("", "one"):
        editor.lua("require('bellboard').answer('form')")
        editor.shows("form: Fill in a form")
        editor.press("i")
        editor.shows("their picker")
        editor.lua("choose(...)", item)
        editor.shows("Env  one" if item else "Env  (choose)")
        editor.shows("form: Fill in a form")
        eventually(lambda: editor.lua(HIGH) == 61, "the view on top")
        editor.press("q")
        editor.hides("form: Fill in a form")
    assert "a line" not in editor.screen.text
    editor.lua("vim.ui.select({}, {}, function() end)")
    editor.shows("their picker")


@pytest.mark.parametrize(("keys", "chosen"), [("2", "two"), ("j<CR>", "two"), ("q", None)])
def test_one_of_a_few_takes_one_key(
    shared: Editors, version: str, keys: str, chosen: str | None
) -> None:
    """Where vim.ui.select is Neovim's own, which takes a number and <CR> below all windows."""
    editor = shared(version, CALM, columns=80, lines=24)
    choose = "require('bellboard.dialog').select({ 'one', 'two' }, { prompt = 'Which?' }, ...)"
    editor.lua(choose.replace("...", "function(item) _G.chosen = { 1, item } end"))
    editor.shows("1  one")
    editor.press(keys)
    eventually(lambda: editor.lua("return chosen"), "a choice")
    assert editor.lua("return chosen[2]") == chosen
    editor.hides("1  one")
    assert editor.lua("return #vim.api.nvim_list_wins()") == 1


def test_the_popup_has_the_keys_of_the_editor(shared: Editors) -> None:
    """The same letter means the same choice, so that no habit allows anything."""
    editor = shared(config=CALM, columns=80, lines=24)
    keys = editor.lua("return require('bellboard.config').get().answer.keys")
    assert {lhs: name for name, (lhs, _) in CHOOSE.items()}.items() <= keys.items()
    named = {"leave": keys["<Esc>"], "tab": keys["<Tab>"], **{key: keys[key] for key in "qsd"}}
    assert {key: does.replace("leave", "close") for key, does in DOES.items()} == named
