"""The view of a request: what it shows, and what its keys send."""

from __future__ import annotations

import os
from typing import Any

import pytest

from asked import asks, command, edit, form, plan, play, question, questions, touch
from rig.editor import Editor
from rig.fixtures import Editors, Screens
from rig.waiting import eventually
from sample import QUIET, TERMINAL, Host, session

pytestmark = pytest.mark.editor

CALM = {**QUIET, "float": {"enabled": False}, "answer": {"key_delay": 0}}
LONG = "\n".join(f"echo step {n}" for n in range(1, 60)) + "  \nrm -rf /"
SAID = "_G.said = {} vim.notify = function(text) table.insert(said, text) end"
#: Windows, tab pages and the mode: what must be as before.
AROUND = """
return { #vim.api.nvim_list_wins(), #vim.api.nvim_list_tabpages(), vim.fn.mode() }
"""


def opened(editor: Editor, name: str, title: str) -> None:
    editor.command(f"ClaudeSessions answer {name}")
    editor.shows(f"{name}: {title}")
    eventually(lambda: editor.lua("return vim.fn.mode()") == "n", "Normal mode")


def typed(editor: Editor, title: str, text: str) -> None:
    """Type into the window with that title, and send it."""
    editor.shows(f"╭ {title}")
    eventually(lambda: editor.lua("return vim.fn.mode()") == "i", "insert mode")
    editor.press(text if text.endswith("<CR>") else text + "<C-s>")


def sent(editor: Editor) -> dict[str, Any]:
    """Wait for an answer and for the end of the view; return what was chosen."""
    eventually(lambda: editor.lua("return #answers == 1"), "an answer")
    (answer,) = editor.lua("local sent = answers _G.answers = {} return sent")
    assert answer["digest"] == "0123456789abcdef"
    assert answer["request"] == f"{answer['session_id']}-1"
    eventually(lambda: editor.lua("return #vim.api.nvim_list_wins()") == 1, "the view to close")
    about = ("digest", "request", "session_id")
    return {name: value for name, value in answer.items() if name not in about}


def counts(editor: Editor) -> None:
    """Wait until keys count."""
    eventually(lambda: editor.lua("return require('bellboard.answer.keys').can()"), "keys to count")


def pressed(editor: Editor) -> None:
    """Wait until all keys so far have had their effect."""
    editor.press(":let g:pressed = get(g:, 'pressed') + 1<CR>")
    eventually(lambda: editor.lua("return vim.g.pressed"), "a command")
    editor.lua("vim.g.pressed = nil")


def said(editor: Editor, text: str) -> None:
    eventually(lambda: text in str(editor.lua("return _G.said")), text)


def test_what_may_be_outdated_is_not_answered(nvim: Editors) -> None:
    """A view of an outdated session says why, and what to do."""
    editor = nvim(config=CALM, ui=False)
    Host(editor).push(asks("api"))
    editor.lua(SAID)
    editor.lua("require('bellboard.process.receive').stopped()")
    for action in ("answer').to()", "answer.triage').run()"):
        editor.lua(f"_G.said = {{}} require('bellboard.{action}")
        said(
            editor,
            "cannot answer: the background process is not running; :ClaudeSessions process start",
        )


def test_keys_answer_what_is_asked(nvim: Editors, version: str) -> None:
    """Each kind of request, each kind of choice; the windows are as before."""
    editor = nvim(version, CALM, columns=70, lines=30)
    host = Host(editor)
    editor.lua(SAID)
    api, web = asks("api"), asks("web", kind="question")
    form_, plan_ = asks("form", kind="form"), asks("plan", kind="plan")
    file = editor.home.project / "limits.py"
    file.write_text("import os\n\ndef limit():\n    return 5\n")
    edit_ = asks("edit", tool="Edit")
    play(
        editor,
        command(api, "rm -rf build && make"),
        questions(web),
        form(form_),
        plan(plan_),
        edit(edit_, str(file), "    return 5\n", "    return 10\n"),
    )
    host.push(api, web, form_, plan_, edit_)
    before = editor.lua(AROUND)

    opened(editor, "api", "Run a command")
    editor.press("<CR>pxyyi")
    pressed(editor)
    assert editor.lua("return answers") == []
    editor.press("A")
    assert sent(editor) == {"choice": "allow"}
    said(editor, "api: answered")
    opened(editor, "api", "Run a command")
    editor.press("R")
    typed(editor, "No", "use make<CR>clean")
    assert sent(editor) == {"choice": "deny", "message": "use make\nclean"}
    opened(editor, "api", "Run a command")
    editor.press("R")
    editor.shows("cancel")
    editor.press("<Esc><Esc>")
    editor.hides("cancel")
    editor.press("C")
    typed(editor, "Yes, but run another command", "<C-u>make clean")
    assert sent(editor) == {"choice": "edit", "input": "make clean"}

    opened(editor, "web", "Answer questions")
    editor.press("A")
    editor.shows("Choose first")
    editor.press("2")
    editor.shows("2 (x) SQLite")
    editor.press("13")  # the cursor is in the next question
    editor.shows("3 [x] Blue")
    editor.press("A")
    chosen = {"Which database should the tests use?": ["SQLite"], "Which colours?": ["Red", "Blue"]}
    assert sent(editor) == {"choice": "choose", "answers": chosen}
    opened(editor, "web", "Answer questions")
    editor.press("i")
    typed(editor, "Database", "neither")
    editor.shows("> neither")
    editor.press("A")
    editor.shows("Some questions are unanswered")
    editor.press("A")
    answers = {"Which database should the tests use?": "neither"}
    assert sent(editor) == {"choice": "choose", "answers": answers}

    opened(editor, "form", "Fill in a form")
    editor.press("i")
    typed(editor, "Name", "Ada")
    editor.shows("Name *  Ada")
    editor.press("j<CR>")
    typed(editor, "Days", "1.5")
    editor.shows("1.5 is not a whole number")
    editor.press("<CR>")
    typed(editor, "Days", "3")
    editor.press("j<CR>")
    editor.shows("Urgent  yes")
    editor.press("A")
    content = {"name": "Ada", "days": 3, "urgent": True}
    assert sent(editor) == {"choice": "fill", "content": content}

    opened(editor, "plan", "Approve a plan")
    editor.press("P")
    assert sent(editor) == {"choice": "approve-edits"}

    opened(editor, "edit", "Edit a file")
    editor.shows("-     return 5")
    editor.press("gd")
    editor.shows("import os")  # the whole file
    assert editor.lua("return { vim.wo.diff, vim.bo.filetype }") == [True, "python"]
    editor.command("tabclose")
    editor.shows("edit: Edit a file")
    editor.press("A")
    assert sent(editor) == {"choice": "allow"}
    editor.lua("require('bellboard').setup({ answer = { key_delay = 0.3 } })")
    opened(editor, "plan", "Approve a plan")
    counts(editor)
    editor.press("AAAA")  # the view takes those that come after the answer
    assert sent(editor) == {"choice": "approve"}
    assert editor.lua(AROUND) == before
    assert editor.messages() == ""


def test_a_choice_without_a_key_has_a_number_that_is_pressed_twice(nvim: Editors) -> None:
    """Or <CR> after it; what it allows is on the screen, and one press sends nothing."""
    editor = nvim(config=CALM, columns=60, lines=30)
    host, api, web = Host(editor), asks("api"), asks("web")
    play(editor, touch(api), command(web, LONG))
    host.push(api, web)
    for keys, choice in (("33", "edits"), ("23<CR>", "edits"), ("2j2", "folder"), ("11", "allow")):
        opened(editor, "api", "Run a command")
        editor.shows("3  Yes, and accept ALL EDITS of this session")
        editor.shows("no longer asks for edits")
        editor.shows("setMode bypassPermissions session")
        editor.press(keys[:-1] if keys[-1] != ">" else keys[:2])
        editor.shows("again or <CR> to say: Yes")
        assert editor.lua("return answers") == []
        editor.press(keys[-1] if keys[-1] != ">" else "<CR>")
        assert sent(editor) == {"choice": choice}
    opened(editor, "api", "Run a command")
    editor.press("3<Space><CR>3")
    editor.shows("Press 3 again")
    assert editor.lua("return answers") == []
    editor.press("q")
    opened(editor, "web", "Run a command")
    editor.press("22<CR>")
    editor.shows("Read it to the end first")
    assert editor.lua("return answers") == []


def test_a_lone_question_is_answered_by_its_number_twice_or_by_enter(nvim: Editors) -> None:
    editor = nvim(config=CALM, columns=60, lines=30)
    host, web = Host(editor), asks("web", kind="question")
    play(editor, question(web))
    host.push(web)
    asked = "Which database should the tests use?"
    for keys, label in (("22", "SQLite"), ("12<CR>", "SQLite"), ("jj<CR>", "Postgres")):
        opened(editor, "web", "Answer a question")
        editor.press(keys)
        assert sent(editor) == {"choice": "choose", "answers": {asked: [label]}}
    opened(editor, "web", "Answer a question")
    editor.press("<CR>")
    editor.shows("Choose first")
    editor.press("1")
    editor.shows("Press 1 again or <CR>")
    editor.press("2")
    editor.shows("2 (x) SQLite")
    assert editor.lua("return answers") == []
    editor.press("q")


def test_a_text_that_was_typed_is_not_lost_by_enter(nvim: Editors) -> None:
    """A typed text is the answer; on an option, the user is asked, and the text is kept."""
    editor = nvim(config=CALM, columns=60, lines=30)
    host, web = Host(editor), asks("web", kind="question")
    play(editor, question(web))
    host.push(web)
    asked = "Which database should the tests use?"
    opened(editor, "web", "Answer a question")
    editor.press("i")
    typed(editor, "Database", "neither")
    editor.shows("Press <CR> to answer with your text")
    editor.press("<CR>")
    assert sent(editor) == {"choice": "choose", "answers": {asked: "neither"}}
    opened(editor, "web", "Answer a question")
    editor.press("i")
    typed(editor, "Database", "neither")
    editor.shows("> neither")
    editor.press("jj<CR>")
    editor.shows("You typed an answer")
    assert editor.lua("return answers") == []
    editor.press("2")
    editor.shows("Your text is kept")
    editor.press("i")
    typed(editor, "Database", ", really")
    editor.shows("> neither, really")
    editor.press("<CR>")
    assert sent(editor) == {"choice": "choose", "answers": {asked: "neither, really"}}
    opened(editor, "web", "Answer a question")
    editor.press("i")
    typed(editor, "Database", "not this one")
    editor.press("11")
    assert sent(editor) == {"choice": "choose", "answers": {asked: ["Postgres"]}}
    assert editor.lua("return vim.fn.getreg('1')").strip() == "not this one"


def test_nothing_is_drawn_again_that_has_not_changed(nvim: Editors) -> None:
    """A long request would take long, at each change of any session."""
    editor = nvim(config=CALM, columns=70, lines=30)
    host, asking = Host(editor), asks("api")
    play(editor, command(asking, LONG))
    host.push(asking)
    opened(editor, "api", "Run a command")
    counts(editor)
    ticks = "return vim.b[vim.api.nvim_win_get_buf(0)].changedtick"
    before = editor.lua(ticks)
    host.push(asking, session("working", "other"))
    editor.lua("vim.wait(50)")
    assert editor.lua(ticks) == before


def test_of_many_options_only_those_with_a_key_have_a_number(nvim: Editors) -> None:
    """Otherwise `12` would choose the first option, and then the second of the next question."""
    editor = nvim(config=CALM, columns=60, lines=50)
    host, asking = Host(editor), asks("web", kind="question")
    shown = questions(asking)
    shown["questions"][0]["options"] = [{"label": f"Choice {n:02}"} for n in range(1, 31)]
    play(editor, shown)
    host.push(asking)
    opened(editor, "web", "Answer questions")
    editor.shows("9 ( ) Choice 09")
    editor.shows("( ) Choice 10")
    editor.hides("10 ( )")
    editor.press("/Choice 12<CR><CR>")
    editor.press("GA")
    editor.shows("Some questions are unanswered")
    editor.press("A")
    answers = {"Which database should the tests use?": ["Choice 12"]}
    assert sent(editor) == {"choice": "choose", "answers": answers}


def test_nothing_is_allowed_unread_or_by_accident(
    nvim: Editors, screen: Screens, version: str
) -> None:
    """Keys do nothing for rows below the screen, while the user types, or after another answer."""
    editor = nvim(version, CALM, columns=60, lines=24)
    host = Host(editor)
    editor.lua(SAID)
    api = asks("api", repository="acme/api", branch="main", title="add rate limits")
    long = command(api, LONG.replace("  \n", "··\n"), "blanks at the end of a line")
    play(editor, long)
    host.push(api)
    opened(editor, "api", "Run a command")
    editor.press("A")
    editor.shows("Read it to the end first")
    screen.matches(editor, "request-60")
    editor.press("<Space>A")
    editor.shows("Read it to the end first")
    editor.press("G")
    editor.hides("more: <Space>")
    assert editor.lua("return answers") == []

    # An answer that fails leaves the view; one that nothing follows offers to go there.
    editor.lua("outcome.api = { ok = false, why = 'the message is longer than 64 kB' }")
    editor.press("A")
    editor.shows("Not answered: the message is longer")
    nothing = "{ ok = true, outcome = 'nothing', text = 'no reaction within 2 s' }"
    editor.lua(f"outcome.api = {nothing}")
    editor.press("A")
    editor.shows("Answered, but no reaction within 2 s")
    editor.press("A")
    editor.press("q")
    editor.hides("no reaction")
    assert editor.lua("return #answers") == 2

    # The keys of a view that has just opened wait for a pause.
    editor.lua("require('bellboard').setup({ answer = { key_delay = 1000 } })")
    opened(editor, "api", "Run a command")
    editor.press("GAADSPsgo")  # nor does it snooze, or go there
    editor.shows("Run a command")
    editor.press("<Esc>")
    editor.hides("Run a command")
    assert editor.lua("return #answers") == 2
    editor.lua("require('bellboard').setup({ answer = { key_delay = 0 } })")

    # Nothing but to go there: its keys are gone, and count once there is a way again.
    go = {"way": "go", "ways": [{"name": "go", "words": "there"}]}
    play(editor, {**long, **go})
    opened(editor, "api", "Run a command")
    editor.press("G")
    editor.shows("Answer this in the agent's terminal: press go.")
    editor.hides("A  Yes")
    editor.press("A")
    eventually(lambda: editor.lua("return #asked == 2"), "another look")
    editor.press("D")
    eventually(lambda: editor.lua("return #asked == 3"), "another look")
    pressed(editor)
    assert editor.lua("return answers") == []
    editor.lua("requests.api.way = 'keys' requests.api.ways = { { words = 'by keys' } }")
    editor.press("A")
    assert sent(editor)["choice"] == "allow"
    play(editor, long)

    # The same request asks something else now: said, and its keys no longer answer.
    opened(editor, "api", "Run a command")
    editor.press("G")
    play(editor, {**command(api, "rm -rf /"), "digest": "fedcba9876543210"})
    host.push({**api, "asked_at": 1.5})
    editor.shows("It asks something else now.")
    editor.press("Aq")
    editor.hides("Run a command")
    assert editor.lua("return answers") == []
    play(editor, long)
    host.push(api)

    # Reported once more as it is shown: the view goes on with that, and with what was typed.
    twice = {**api, "request": "api-1b"}
    shown = {**long, "id": "api-1b", "digest": "abababababababab"}
    opened(editor, "api", "Run a command")
    editor.press("G")
    play(editor, shown)
    host.push(twice)
    eventually(lambda: editor.lua("return #asked == 2"), "the other one")
    counts(editor)
    editor.press("A")
    eventually(lambda: editor.lua("return #answers == 1"), "an answer")
    (answer,) = editor.lua("return answers")
    assert (answer["request"], answer["digest"]) == ("api-1b", "abababababababab")
    editor.hides("Run a command")
    play(editor, long)
    host.push(api)

    # The same after an answer was refused; one that could not be read is shown from its start.
    editor.lua("outcome.api = { ok = false, why = 'it asks something else now' } _G.answers = {}")
    opened(editor, "api", "Run a command")
    editor.press("GA")
    editor.shows("Not answered: it asks something else now")
    play(editor, shown)
    host.push(twice)
    eventually(lambda: editor.lua("return #asked == 2"), "the other one")
    editor.shows("Not answered: it asks something else now")
    editor.press("q")
    editor.hides("Run a command")
    play(editor)
    host.push(api)
    editor.command("ClaudeSessions answer api")
    editor.shows("Cannot be answered here")
    play(editor, shown)
    host.push(twice)
    editor.shows("api: Run a command")
    editor.hides("Cannot be answered here")
    counts(editor)
    editor.press("A")
    editor.shows("Read it to the end first")
    assert editor.lua("return answers") == []
    editor.press("q")
    editor.hides("Run a command")
    play(editor, long)
    host.push(api)

    # Answered elsewhere: said, and its keys no longer answer; `u` shows what it asks now.
    opened(editor, "api", "Run a command")
    editor.press("G")
    other = {**api, "request": "api-2", "asked_at": 2.0}
    play(editor, command(other, "make all"))
    host.push(other)
    editor.shows("No longer asked: answered by Neovim 4711.")
    editor.press("A")
    editor.press("u")
    editor.shows("make all")
    # Whoever is typing meanwhile is told, and keeps the text; a triage waits for that.
    editor.press("R")
    editor.shows("╭ No")
    editor.press("use make<CR>clean")
    play(editor)
    host.push(session("working", "api"))
    editor.shows("No longer asked: answered by Neovim 4711. ╯")
    editor.press("<C-s>")
    said(editor, "Neovim 4711. Your text was not sent; it is in register 1.")
    assert editor.lua("return vim.fn.getreg('1')") == "use make\nclean\n"
    editor.shows("No longer asked")
    editor.press("Aq")
    editor.hides("Run a command")
    two = [asks("p0", ago=2), asks("p1", ago=1)]
    play(editor, command(two[0], "make p0"), command(two[1], "make p1"))
    host.push(*two)
    editor.command("ClaudeSessions triage")
    editor.shows("make p0")
    editor.press("R")
    editor.shows("╭ No")
    editor.press("not p0")
    play(editor, command(two[1], "make p1"))
    host.push(two[1])
    editor.shows("The session has ended. ╯")
    editor.shows("make p0")
    editor.press("<C-s>")
    editor.shows("make p1")
    editor.press("R")
    editor.shows("╭ No")
    editor.press("not p1<Esc><C-w>w")  # by mistake
    said(editor, "Its window was left. Your text was not sent")
    assert editor.lua("return { vim.fn.getreg('1'), vim.fn.getreg('2') }") == [
        "not p1\n",
        "not p0\n",
    ]
    editor.shows("make p1")
    editor.press("q")
    assert editor.lua("return answers") == []
    assert editor.messages() == ""


def test_all_of_it_can_be_seen(nvim: Editors, version: str) -> None:
    """A long name of a tool, what a syntax conceals, what a field is for; no file hangs Neovim."""
    editor = nvim(version, CALM, columns=60, lines=30)
    host = Host(editor)
    editor.lua("vim.go.conceallevel = 2 vim.wo.conceallevel = 2")
    tool, plan_ = asks("tool"), asks("plan", kind="plan")
    edit_, form_ = asks("edit", tool="Edit"), asks("form", kind="form")
    long = {**command(tool, "{}"), "title": f"Use mcp__{'x' * 50}__remove"}
    filled = form(form_)
    filled["fields"][1]["description"] = "Without weekends"
    filled["fields"][3]["options"][1]["description"] = "The web team"
    fifo = editor.home.project / "fifo"
    os.mkfifo(fifo)
    play(editor, long, plan(plan_), filled, edit(edit_, str(fifo), "old text", "new text"))
    host.push(tool, plan_, form_, edit_)
    opened(editor, "tool", "Use mcp__")
    editor.shows("__remove")
    editor.press("q")
    opened(editor, "plan", "Approve a plan")
    editor.shows("**Test** it")
    editor.press("q")
    opened(editor, "edit", "Edit a file")
    editor.press("gd")
    eventually(lambda: editor.lua("return vim.wo.diff"), "a diff")
    editor.command("tabclose")
    editor.shows("edit: Edit a file")
    editor.press("q")
    opened(editor, "form", "Fill in a form")
    editor.shows("Without weekends")
    editor.press("/team<CR>i")
    editor.shows("web The web team")
    editor.press("2")
    editor.shows("team    web")
    editor.press("q")
    assert editor.messages() == ""


def test_a_change_can_be_read_with_few_colors(nvim: Editors) -> None:
    """Gray on green could not, without `termguicolors`; and an empty command is called empty."""
    editor = nvim(config=CALM, columns=60, lines=30)
    host, edit_, none = Host(editor), asks("edit", tool="Edit"), asks("none")
    file = editor.home.project / "limits.py"
    file.write_text("import os\n\ndef limit():\n    return 5\n")
    play(editor, edit(edit_, str(file), "    return 5\n", "    return 10\n"), command(none, ""))
    host.push(edit_, none)
    look = """
      local row = vim.fn.search('return 10', 'nw')
      return row > 0 and #vim.inspect_pos(0, row - 1, 8).syntax
    """
    for gui, has_syntax in ((False, False), (True, True)):
        editor.lua("vim.o.termguicolors = ...", gui)
        opened(editor, "edit", "Edit a file")
        assert bool(editor.lua(look)) == has_syntax, gui
        editor.press("q")
    opened(editor, "none", "Run a command")
    editor.shows("(empty)")


def test_what_is_snoozed_or_parked_is_asked_about_last(nvim: Editors) -> None:
    editor = nvim(config=CALM, columns=64, lines=30)
    later, host = editor.lua("return os.time() + 600"), Host(editor)
    snoozed, parked = asks("s", ago=9, snoozed_until=later), asks("p", ago=8, markers=["parked"])
    shown = [snoozed, parked, asks("api", ago=1)]
    play(editor, *[command(each, "make") for each in shown])
    for some, first in ((shown, "api"), (shown[:2], "s")):
        host.push(*some)
        editor.command("ClaudeSessions answer")
        editor.shows(f"{first}: Run a command")
        editor.press("q")
        editor.hides("Run a command")


def test_how_to_avoid_typed_keys_is_said_once_the_outcome_was_read(nvim: Editors) -> None:
    """The hint comes only while answers are off, and once."""
    editor = nvim(config=CALM, columns=80, lines=30)
    host, api = Host(editor), asks("api", repository="acme/api", tty="/dev/pts/7", pane="%4")
    editor.lua(SAID)
    play(editor, command(api, "make"))
    editor.lua("outcome.api = { ok = true, way = 'keys', outcome = 'taken', text = 'it went on' }")
    outcome = "bellboard: api: answered"
    for state, expected in {"on": [outcome], "off": [outcome] * 2}.items():
        host.push(api, health={"answers": state})
        opened(editor, "api", "Run a command")
        editor.press("A")
        assert sent(editor) == {"choice": "allow"}
        eventually(lambda: editor.lua("return said") == expected, "the outcome")  # noqa: B023
    said(editor, 'typed as keys; ":ClaudeSessions answers on" uses the hook')
    assert editor.lua("return said")[:2] == [outcome] * 2


def test_the_view_of_a_request_names_its_place_as_the_board_does(nvim: Editors) -> None:
    editor = nvim(config=CALM, columns=80, lines=30)
    host = Host(editor)
    tty = editor.lua(TERMINAL)[1]
    api = asks("api", repository="acme/api", tty=tty, nvim="/run/nvim.4711.0", branch="main")
    play(editor, command(api, "make"))
    host.push(api)
    opened(editor, "api", "Run a command")
    editor.shows("acme/api · main · terminal")


def test_a_function_answers_what_was_read(nvim: Editors) -> None:
    """And the view is a split, a board's marked sessions are triaged, terminals get keys."""
    config = {**CALM, "answer": {"key_delay": 0, "layout": "split"}}
    editor = nvim(config=config, columns=80, lines=30)
    host = Host(editor)
    editor.lua(SAID)
    editor.command("vsplit")
    sizes = editor.lua("return vim.fn.winrestcmd()")
    two = [asks("api"), asks("web")]
    play(editor, command(two[0], "make"), command(two[1], "make install"))
    host.push(*two)
    answer = "require('bellboard').answer(...,  function(reply) _G.reply = reply end)"
    give = "local called, choice = ... " + answer.replace("...", "called, choice")
    editor.lua(give, "api", {"choice": "deny", "digest": "another"})
    eventually(lambda: editor.lua("return reply"), "a reply")
    assert editor.lua("return reply") == {"ok": False, "why": "it asks something else now"}
    editor.lua(give, "api", "allow")
    eventually(lambda: editor.lua("return reply.ok"), "a reply")
    opened(editor, "api", "Run a command")
    editor.shows("Yes, this once")
    editor.press("q")
    editor.hides("Yes, this once")
    assert editor.lua("return vim.fn.winrestcmd()") == sizes
    editor.lua("outcome.api = { ok = true, way = 'keys', outcome = 'taken', text = '' }")
    editor.command("ClaudeSessions board")
    editor.press("ggVGa")
    editor.shows("2 left")
    editor.press("A")
    editor.shows("1 left")
    editor.press("q")
    said(editor, "triage: 1 answered, 1 left")
    assert editor.messages() == ""


def test_after_an_answer_the_board_goes_on_to_the_next_session(nvim: Editors) -> None:
    """The answered one is elsewhere on it then, or at its end."""
    editor = nvim(config=CALM, columns=100, lines=40)
    host, first, second = Host(editor), asks("first", since=1), asks("second", since=2)
    play(editor, command(first, "make"), command(second, "make all"))
    host.push(first, second)
    editor.command("ClaudeSessions board")
    editor.press("a")
    editor.shows("first: Run a command")
    editor.press("A")
    eventually(lambda: editor.lua("return #answers") == 1, "the answer")
    eventually(lambda: "second" in editor.nvim.current.line, "the next session")


def test_in_normal_mode_enter_sends_what_was_typed(nvim: Editors) -> None:
    """As in the window for a prompt."""
    editor = nvim(config=CALM, columns=80, lines=30)
    api = asks("api")
    play(editor, command(api, "make"))
    Host(editor).push(api)
    opened(editor, "api", "Run a command")
    editor.press("R")
    typed(editor, "No, and say why", "use another name<Esc><CR>")
    assert sent(editor) == {"choice": "deny", "message": "use another name"}
