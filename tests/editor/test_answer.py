"""The view of a request: what it shows, and what its keys send."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import zip_longest
from typing import Any, NamedTuple

import pytest

from rig.editor import Editor
from rig.fixtures import Editors, Screens
from rig.host.asked import (
    CALM,
    DENY,
    SAID,
    asks,
    command,
    counts,
    delays,
    edit,
    form,
    opened,
    plan,
    play,
    question,
    questions,
    request,
    said,
    sent,
    touch,
    unanswered,
)
from rig.host.sample import TERMINAL, Host, session
from rig.waiting import eventually

LONG = "\n".join(f"echo step {n}" for n in range(1, 60)) + "  \nrm -rf /"
DATABASE = "Which database should the tests use?"
COLOURS = "Which colours?"
ABOUT = {"repository": "acme/api", "branch": "main", "title": "add rate limits"}


def no_plain_no(session: dict[str, Any]) -> dict[str, Any]:
    """Return a command that is denied only with a message."""
    shown = command(session, "make")
    needs = {**DENY, "needs": "message"}
    choices = [needs if each["id"] == "deny" else each for each in shown["choices"]]
    return request(session, **{**shown, "choices": choices})


def many_options(session: dict[str, Any]) -> dict[str, Any]:
    shown = questions(session)
    shown["questions"][0]["options"] = [{"label": f"Choice {n:02}"} for n in range(1, 31)]
    return shown


def only_options(session: dict[str, Any]) -> dict[str, Any]:
    """Return questions whose answers cannot be typed."""
    shown = questions(session)
    return {**shown, "questions": [{**q, "typed": False} for q in shown["questions"]]}


def filled(session: dict[str, Any]) -> dict[str, Any]:
    """Return a form that says what its fields and options are for."""
    shown = form(session)
    shown["fields"][1]["description"] = "Without weekends"
    shown["fields"][3]["options"][1]["description"] = "The web team"
    return shown


def hidden(session: dict[str, Any]) -> dict[str, Any]:
    """Return a long command with blanks at the end of a line."""
    return command(session, LONG.replace("  \n", "··\n"), "blanks at the end of a line")


def long_tool(session: dict[str, Any]) -> dict[str, Any]:
    return {**command(session, ""), "title": f"Use mcp__{'x' * 50}__remove"}


REQUESTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "command": lambda api: command(api, "rm -rf build && make"),
    "long command": hidden,
    "choices": touch,
    "no plain no": no_plain_no,
    "edit": lambda api: edit(api, "/srv/limits.py", "    return 5\n", "    return 10\n"),
    "plan": plan,
    "questions": questions,
    "question": question,
    "many options": many_options,
    "only options": only_options,
    "form": filled,
    "long tool": long_tool,
}


class Row(NamedTuple):
    """A request; keys and what is then on the screen, in turn; what is sent (None: nothing)."""

    asked: str
    steps: str
    sent: dict[str, Any] | None


#: A new case of a key is a row here. After `╭`, keys go to the window that opens for a text.
ROWS = {
    "keys of a text": Row("command", "<CR>pxyyi", None),
    "yes": Row("command", "A", {"choice": "allow"}),
    "no, and why": Row(
        "command",
        "R | ╭ No | use make<CR>clean<C-s>",
        {"choice": "deny", "message": "use make\nclean"},
    ),
    "sent from Normal mode": Row(
        "command",
        "R | ╭ No, and say why | use another<Esc><CR>",
        {"choice": "deny", "message": "use another"},
    ),
    "only with a message": Row(
        "no plain no",
        "D | R  No, and say why | R | ╭ No | later<C-s>",
        {"choice": "deny", "message": "later"},
    ),
    "a text given up": Row("command", "R | ╭ No | x<C-c> | A  Yes", None),
    "another command": Row(
        "command",
        "C | ╭ Yes, but run another command | <C-u>make clean<C-s>",
        {"choice": "edit", "input": "make clean"},
    ),
    "unread": Row(
        "long command",
        "A | Read it to the end first | <Space>A | Read it to the end first | G | Why",
        None,
    ),
    "unread, by number": Row("long command", "22<CR> | Read it to the end first", None),
    "read": Row("long command", "G | A  Yes | A", {"choice": "allow"}),
    "number twice": Row("choices", "3 | again or <CR> to say: Yes | 3", {"choice": "edits"}),
    "another number": Row("choices", "23 | again or <CR> to say: Yes | <CR>", {"choice": "edits"}),
    "number after the cursor": Row(
        "choices", "2j | again or <CR> to say: Yes | 2", {"choice": "folder"}
    ),
    "number with a key": Row("choices", "1 | again or <CR> | 1", {"choice": "allow"}),
    "another key between": Row("choices", "3<Space><CR>3 | Press 3 again", None),
    "plan": Row("plan", "P", {"choice": "approve-edits"}),
    "options": Row(
        "questions",
        "A | Choose first | 2 | 2 (x) SQLite | 13 | 3 [x] Blue | A",
        {"choice": "choose", "answers": {DATABASE: ["SQLite"], COLOURS: ["Red", "Blue"]}},
    ),
    "unanswered": Row(
        "questions",
        "i | ╭ Database | neither<C-s> | > neither | A | Some questions are unanswered | A",
        {"choice": "choose", "answers": {DATABASE: "neither"}},
    ),
    "only options": Row(
        "only options",
        "A | Choose first: press the number | i | takes only the options | 21A",
        {"choice": "choose", "answers": {DATABASE: ["SQLite"], COLOURS: ["Red"]}},
    ),
    "option without a number": Row(
        "many options",
        "/Choice 12<CR><CR> | (x) Choice 12 | GA | Some questions are unanswered | A",
        {"choice": "choose", "answers": {DATABASE: ["Choice 12"]}},
    ),
    "lone: number twice": Row(
        "question", "22", {"choice": "choose", "answers": {DATABASE: ["SQLite"]}}
    ),
    "lone: enter": Row(
        "question", "12<CR>", {"choice": "choose", "answers": {DATABASE: ["SQLite"]}}
    ),
    "lone: enter on an option": Row(
        "question", "jj<CR>", {"choice": "choose", "answers": {DATABASE: ["Postgres"]}}
    ),
    "lone: not chosen": Row(
        "question", "<CR> | Choose first | 1 | Press 1 again or <CR> | 2 | 2 (x) SQLite", None
    ),
    "lone: a text": Row(
        "question",
        "i | ╭ Database | neither<C-s> | Press <CR> to answer with your text | <CR>",
        {"choice": "choose", "answers": {DATABASE: "neither"}},
    ),
    "lone: a text, enter elsewhere": Row(
        "question",
        "i | ╭ Database | neither<C-s> | > neither | jj<CR> | You typed an answer | 2 | "
        "Your text is kept | i | ╭ Database | , really<C-s> | > neither, really | <CR>",
        {"choice": "choose", "answers": {DATABASE: "neither, really"}},
    ),
    "lone: an option after a text": Row(
        "question",
        "i | ╭ Database | not this one<C-s> | > not this one | 11",
        {"choice": "choose", "answers": {DATABASE: ["Postgres"]}},
    ),
    "form": Row(
        "form",
        "i | ╭ Name | Ada<C-s> | Name *  Ada | j<CR> | ╭ Days | 1.5<C-s> | "
        "1.5 is not a whole number | <CR> | ╭ Days | 3<C-s> | Days    3 | jj<CR> | Urgent  yes | A",
        {"choice": "fill", "content": {"name": "Ada", "days": 3, "urgent": True}},
    ),
    "one of a form": Row("form", "/team<CR>i | web The web team | 2 | team    web", None),
}


def keep_mode(editor: Editor, mode: str) -> None:
    eventually(lambda: editor.lua("return vim.fn.mode()") == mode, f"mode {mode}")


@pytest.mark.parametrize("name", ROWS)
def test_keys_answer_what_is_asked(shared: Editors, version: str, name: str) -> None:
    """Each kind of request, each kind of choice; the windows are as before."""
    row = ROWS[name]
    editor = shared(version, CALM, columns=70, lines=30)
    editor.lua(SAID)
    api = asks()
    shown = REQUESTS[row.asked](api)
    play(editor, shown)
    Host(editor).push(api)
    opened(editor, "api", shown["title"][:50])
    steps = row.steps.split(" | ")
    for keys, text in zip_longest(steps[::2], steps[1::2], fillvalue=""):
        editor.press(keys)
        editor.shows(text)
        if text.startswith("╭"):
            keep_mode(editor, "i")
    if row.sent is None:
        unanswered(editor)
    else:
        assert sent(editor) == row.sent
        said(editor, "api: answered")
        around = "return { #vim.api.nvim_list_tabpages(), vim.fn.mode() }"
        assert editor.lua(around) == [1, "n"]
    assert editor.messages() == ""


@pytest.mark.parametrize("asked", REQUESTS)
def test_what_a_request_shows(shared: Editors, screen: Screens, version: str, asked: str) -> None:
    """Its parts, its choices with their keys, and what a syntax would conceal."""
    editor = shared(version, CALM, columns=60, lines=24)
    editor.lua("vim.go.conceallevel = 2 vim.wo.conceallevel = 2")
    api = asks(**ABOUT)
    shown = REQUESTS[asked](api)
    play(editor, shown)
    Host(editor).push(api)
    opened(editor, "api", shown["title"][:40])
    counts(editor)
    screen.matches(editor, f"request-{asked.replace(' ', '-')}")


# ------------------------------------------------- when keys do not count, or count elsewhere


def reading(
    shared: Editors, version: str, shown: str = "long command", to_the_end: bool = True
) -> tuple[Editor, Host, dict[str, Any], dict[str, Any]]:
    """Open a request and read it; return it, and its session."""
    editor = shared(version, CALM, columns=60, lines=24)
    editor.lua(SAID)
    host, api = Host(editor), asks(**ABOUT)
    asked = REQUESTS[shown](api)
    play(editor, asked)
    host.push(api)
    opened(editor, "api", asked["title"])
    if to_the_end:
        editor.press("G")
        editor.hides("more: <Space>")
    return editor, host, api, asked


def test_what_may_be_outdated_is_not_answered(nvim: Editors) -> None:
    """A message says why; the command has started the background process."""
    editor = nvim(config=CALM, columns=80, lines=24)
    host = Host(editor)
    host.push(asks())
    host.stops()
    for command_ in ("answer", "triage"):
        editor.command(f"messages clear | ClaudeSessions {command_}")
        why = "cannot answer: the background process is starting; try again"
        eventually(lambda: why in editor.messages(), why)  # noqa: B023


def test_an_answer_that_fails_or_has_no_effect_leaves_the_view(
    shared: Editors, version: str
) -> None:
    editor, *_ = reading(shared, version)
    editor.lua("outcome.api = { ok = false, why = 'the message is longer than 64 kB' }")
    editor.press("A")
    editor.shows("Not answered: the message is longer")
    editor.lua("outcome.api = { ok = true, outcome = 'nothing', text = 'no reaction within 2 s' }")
    editor.press("A")
    editor.shows("Answered, but no reaction within 2 s")
    editor.press("A")
    editor.press("q")
    editor.hides("no reaction")
    assert editor.lua("return #answers") == 2


def test_keys_of_a_view_that_has_just_opened_wait_for_a_pause(
    shared: Editors, version: str
) -> None:
    """Nor do they snooze, or go there."""
    editor, *_ = reading(shared, version)
    editor.press("q")
    delays(editor, 1000)
    opened(editor, "api", "Run a command")
    editor.press("GAADSPsgo")
    unanswered(editor)
    editor.shows("Run a command")
    editor.press("<Esc>")
    editor.hides("Run a command")


def test_keys_that_follow_an_answer_go_nowhere(shared: Editors, version: str) -> None:
    editor, *_ = reading(shared, version, "plan")
    delays(editor, 0.3)
    counts(editor)
    editor.press("AAAA")
    assert sent(editor) == {"choice": "approve"}
    assert editor.messages() == ""


def test_where_there_is_no_way_its_keys_are_gone_until_there_is_one(
    shared: Editors, version: str
) -> None:
    editor, *_, asked = reading(shared, version)
    editor.press("q")
    go = {"way": "go", "ways": [{"name": "go", "words": "there"}]}
    play(editor, {**asked, **go})
    opened(editor, "api", "Run a command")
    editor.press("G")
    editor.shows("Answer this in the agent's terminal: press go.")
    editor.hides("A  Yes")
    for nth, key in enumerate("AD", 2):
        editor.press(key)
        eventually(lambda nth=nth: editor.lua("return #asked") == nth, "another look")
    unanswered(editor)
    editor.lua("requests.api.way = 'keys' requests.api.ways = { { words = 'by keys' } }")
    editor.press("A")
    assert sent(editor) == {"choice": "allow"}


@pytest.mark.parametrize(
    ("now", "says"),
    [
        ({"asked_at": 1.5}, "It asks something else now."),
        ({"request": "api-1b"}, "No longer asked: answered by Neovim 4711."),
    ],
)
def test_what_was_replaced_by_another_request_is_not_answered(
    shared: Editors, version: str, now: dict[str, Any], says: str
) -> None:
    editor, host, api, _ = reading(shared, version)
    api = {**api, **now}
    play(editor, {**command(api, "rm -rf /"), "digest": "fedcba9876543210"})
    host.push(api)
    editor.shows(says)
    editor.press("A")
    unanswered(editor)


@pytest.mark.parametrize("was", ["open", "refused", "unreadable"])
def test_a_request_that_is_reported_once_more_is_answered_as_it_is_shown(
    shared: Editors, version: str, was: str
) -> None:
    """The view goes on with it; one that could not be read before is read from its start."""
    editor, host, api, asked = reading(shared, version)
    if was == "refused":
        editor.lua("outcome.api = { ok = false, why = 'it asks something else now' }")
        editor.press("A")
        editor.shows("Not answered: it asks something else now")
        editor.lua("_G.answers = {}")
    elif was == "unreadable":
        editor.press("q")
        editor.hides("Run a command")
        play(editor)
        editor.command("ClaudeSessions answer api")
        editor.shows("Cannot be answered here")
    play(editor, {**asked, "id": "api-1b", "digest": "abababababababab"})
    host.push({**api, "request": "api-1b"})
    eventually(lambda: editor.lua("return #asked") > 0, "the other one")
    editor.hides("Cannot be answered here")
    editor.shows("api: Run a command")
    counts(editor)
    editor.press("A")
    if was == "unreadable":
        editor.shows("Read it to the end first")
        unanswered(editor)
        return
    eventually(lambda: editor.lua("return #answers == 1"), "an answer")
    (answer,) = editor.lua("return answers")
    assert (answer["request"], answer["digest"]) == ("api-1b", "abababababababab")
    editor.hides("Run a command")


def test_what_was_answered_elsewhere_is_not_answered(shared: Editors, version: str) -> None:
    """`u` shows what the session asks now."""
    editor, host, api, _ = reading(shared, version)
    other = {**api, "request": "api-2", "asked_at": 2.0}
    play(editor, command(other, "make all"))
    host.push(other)
    editor.shows("No longer asked: answered by Neovim 4711.")
    editor.press("A")
    unanswered(editor)
    editor.press("u")
    editor.shows("make all")
    assert editor.messages() == ""


def test_a_text_for_what_is_no_longer_asked_is_kept(shared: Editors, version: str) -> None:
    """Whoever types is told, and continues; the text goes into a register."""
    editor, host, *_ = reading(shared, version, "command")
    editor.press("R")
    editor.shows("╭ No")
    keep_mode(editor, "i")
    editor.press("use make<CR>clean")
    play(editor)
    host.push(session("working", "api"))
    editor.shows("No longer asked: answered by Neovim 4711. ╯")
    editor.press("<C-s>")
    said(editor, "Neovim 4711. Your text was not sent; it is in register 1.")
    assert editor.lua("return vim.fn.getreg('1')") == "use make\nclean\n"
    editor.shows("No longer asked")
    editor.press("A")
    unanswered(editor)


def test_a_triage_waits_for_who_is_typing(shared: Editors, version: str) -> None:
    """Texts that were not sent are in registers, the last one first."""
    editor = shared(version, CALM, columns=60, lines=24)
    editor.lua(SAID)
    host, two = Host(editor), [asks("p0", ago=2), asks("p1", ago=1)]
    play(editor, command(two[0], "make p0"), command(two[1], "make p1"))
    host.push(*two)
    editor.command("ClaudeSessions triage")
    editor.shows("make p0")
    editor.press("R")
    editor.shows("╭ No")
    keep_mode(editor, "i")
    editor.press("not p0")
    play(editor, command(two[1], "make p1"))
    host.push(two[1])
    editor.shows("The session has ended. ╯")
    editor.shows("make p0")
    editor.press("<C-s>")
    editor.shows("make p1")
    editor.press("R")
    editor.shows("╭ No")
    keep_mode(editor, "i")
    editor.press("not p1<Esc><C-w>w")  # by mistake
    said(editor, "Its window was left. Your text was not sent")
    registers = editor.lua("return { vim.fn.getreg('1'), vim.fn.getreg('2') }")
    assert registers == ["not p1\n", "not p0\n"]
    editor.shows("make p1")
    unanswered(editor)


# ------------------------------------------------- what else it shows, and where


def test_nothing_is_drawn_again_that_has_not_changed(shared: Editors, version: str) -> None:
    """A long request would take long, at each change of any session."""
    editor, host, api, _ = reading(shared, version, to_the_end=False)
    counts(editor)
    ticks = "return vim.b[vim.api.nvim_win_get_buf(0)].changedtick"
    before = editor.lua(ticks)
    host.push(api, session("working", "other"))
    editor.lua("vim.wait(50)")
    assert editor.lua(ticks) == before


def changes(editor: Editor, path: str) -> None:
    """Open the request for a change of that file."""
    host, edit_ = Host(editor), asks("edit", tool="Edit")
    play(editor, edit(edit_, path, "    return 5\n", "    return 10\n"))
    host.push(edit_)
    opened(editor, "edit", "Edit a file")


def test_the_whole_file_is_compared(shared: Editors, version: str) -> None:
    """In a tab page; after it, the request is answered."""
    editor = shared(version, CALM, columns=70, lines=30)
    file = editor.home.file("limits.py", "import os\n\ndef limit():\n    return 5\n")
    changes(editor, str(file))
    editor.press("gd")
    editor.shows("import os")
    assert editor.lua("return { vim.wo.diff, vim.bo.filetype }") == [True, "python"]
    editor.command("tabclose")
    editor.shows("edit: Edit a file")
    editor.press("A")
    assert sent(editor) == {"choice": "allow"}


def test_a_pipe_in_place_of_a_file_does_not_hang_neovim(shared: Editors, version: str) -> None:
    editor = shared(version, CALM, columns=70, lines=30)
    os.mkfifo(fifo := editor.home.project / f"fifo-{version}")
    changes(editor, str(fifo))
    editor.press("gd")
    eventually(lambda: editor.lua("return vim.wo.diff"), "a diff")
    editor.command("tabclose")
    editor.shows("edit: Edit a file")


def test_a_change_can_be_read_with_few_colors(nvim: Editors) -> None:
    """Gray on green could not, without `termguicolors`."""
    editor = nvim(config=CALM, columns=60, lines=30)
    file = editor.home.file("limits.py", "import os\n\ndef limit():\n    return 5\n")
    look = """
      local row = vim.fn.search('return 10', 'nw')
      return row > 0 and #vim.inspect_pos(0, row - 1, 8).syntax
    """
    for gui in (False, True):
        editor.lua("vim.o.termguicolors = ...", gui)
        changes(editor, str(file))
        assert bool(editor.lua(look)) == gui
        editor.press("q")


def test_what_is_snoozed_or_parked_is_asked_about_last(shared: Editors) -> None:
    editor = shared(config=CALM, columns=70, lines=30)
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


def test_the_view_of_a_request_names_its_place_as_the_board_does(shared: Editors) -> None:
    editor = shared(config=CALM, columns=70, lines=30)
    host = Host(editor)
    tty = editor.lua(TERMINAL)[1]
    api = asks("api", repository="acme/api", tty=tty, nvim="/run/nvim.4711.0", branch="main")
    play(editor, command(api, "make"))
    host.push(api)
    opened(editor, "api", "Run a command")
    editor.shows("acme/api · main · terminal")


def test_a_function_answers_what_was_read(shared: Editors) -> None:
    """With the digest of something else, nothing is sent."""
    editor = shared(config=CALM, columns=70, lines=30)
    api = asks("api")
    play(editor, command(api, "make"))
    Host(editor).push(api)
    give = "require('bellboard').answer('api', ..., function(reply) _G.reply = reply end)"
    editor.lua(give, {"choice": "deny", "digest": "another"})
    eventually(lambda: editor.lua("return reply"), "a reply")
    assert editor.lua("return reply") == {"ok": False, "why": "it asks something else now"}
    editor.lua(give, "allow")
    eventually(lambda: editor.lua("return reply.ok"), "a reply")


def test_a_view_may_be_a_split(shared: Editors) -> None:
    """The sizes of windows are as before."""
    editor = shared(config=CALM, columns=70, lines=30)
    editor.lua("require('bellboard').setup({ answer = { key_delay = 0, layout = 'split' } })")
    editor.command("vsplit")
    sizes = editor.lua("return vim.fn.winrestcmd()")
    api = asks("api")
    play(editor, command(api, "make"))
    Host(editor).push(api)
    opened(editor, "api", "Run a command")
    editor.shows("Yes, this once")
    editor.press("q")
    editor.hides("Yes, this once")
    assert editor.lua("return vim.fn.winrestcmd()") == sizes


@pytest.mark.parametrize("marked", [True, False])
def test_the_board_asks_about_its_sessions(shared: Editors, marked: bool) -> None:
    """Those that are selected are a triage; after a single one, the next is under the cursor."""
    editor = shared(config=CALM, columns=100, lines=40)
    editor.lua(SAID)
    host, two = Host(editor), [asks("first", since=1), asks("second", since=2)]
    play(editor, *[command(each, "make") for each in two])
    host.push(*two)
    editor.command("ClaudeSessions board")
    editor.press("ggVGa" if marked else "gg]]a")
    editor.shows("2 left" if marked else "first: Run a command")
    editor.press("A")
    if marked:
        editor.shows("1 left")
        editor.press("q")
        said(editor, "triage: 1 answered, 1 left")
    else:
        eventually(lambda: editor.lua("return #answers") == 1, "the answer")
        eventually(lambda: "second" in editor.nvim.current.line, "the next session")
    assert editor.messages() == ""
