"""The window to type an answer in, and what becomes of a text that is refused."""

from __future__ import annotations

import pytest

from asked import DENY, asks, command, play, questions
from rig.fixtures import Editors
from rig.waiting import eventually
from sample import Host
from test_editor_answer import CALM, SAID, opened, sent, typed

pytestmark = pytest.mark.editor

DENIES = {**DENY, "needs": "message"}


def test_no_with_a_message_has_its_own_key(nvim: Editors) -> None:
    """Also where nothing but that can be typed; the key for a plain no does nothing then."""
    editor = nvim(config=CALM, columns=80, lines=24)
    host, api = Host(editor), asks("api")
    shown = command(api, "make")
    shown["choices"] = [each if each["id"] != "deny" else DENIES for each in shown["choices"]]
    play(editor, shown)
    host.push(api)
    opened(editor, "api", "Run a command")
    editor.shows("R   No, and say why")
    editor.hides("D   No")
    editor.press("D")
    editor.press("R")
    typed(editor, "No", "later")
    assert sent(editor) == {"choice": "deny", "message": "later"}


def test_a_text_that_is_refused_is_kept(nvim: Editors, version: str) -> None:
    """For another try, and in register 1; which texts can be typed is said before."""
    editor = nvim(version, CALM, columns=80, lines=24)
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
    editor.shows(f"{limits} · <C-s> send · <C-c> cancel ╯")
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
    assert editor.messages().strip() == ""
