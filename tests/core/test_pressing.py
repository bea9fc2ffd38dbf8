"""The keys of whole answers, as they were typed into real CLIs (`dialogs.py`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from bellboard.agents.agent import About, Press
from bellboard.agents.claude.dialog import NO_AND, NOT_OFFERED, UNPROVEN, offers, press
from bellboard.agents.claude.hooks import hook
from bellboard.agents.claude.request import request
from bellboard.core.events import Origin
from bellboard.core.request import Answer, Choice, Field, Option, Part, Question, Request, check
from bellboard.core.session import Block, Session
from bellboard.hosting.asked import Asked
from bellboard.hosting.keyboard import typed
from live.dialogs import FOLDER, WALKS
from rig import DATA

FILES = sorted(FOLDER.glob("*/*.txt"))
CAPTURES = DATA / "captures"


class RecordedWalk(NamedTuple):
    """Screens, each with the key that followed, and the request."""

    steps: list[tuple[list[str], str]]
    request: Request
    about: About
    heard: str


def walk(path: Path) -> RecordedWalk:
    *rows, last = path.read_text().splitlines()
    steps: list[tuple[list[str], str]] = []
    screen: list[str] = []
    for row in rows:
        if row.startswith("── "):
            steps.append((screen, row.removeprefix("── ")))
            screen = []
        else:
            screen.append(row)
    facts = json.loads(last)
    raw = json.dumps(facts["payload"]).encode()
    asked = request(raw, "name", 1.0, Origin(pid=1))
    assert asked is not None
    event = hook(raw, 1.0, 1.0, Origin(pid=1))
    about = About(event.detail, event.shown_digest, ["/home/me/project"])
    return RecordedWalk(steps, asked, about, facts["heard"])


def said(key: Press) -> str:
    """Return a key as a walk has it."""
    assert not key.why
    done = f"press {key.key}" if key.key else f"type {key.text}"
    return f"{done}{' (last)' if key.last else ''}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_each_key_follows_from_the_screen(path: Path) -> None:
    """The model was told exactly the answer, in each version."""
    given = walk(path)
    answer = WALKS[path.stem].answer
    for screen, key in given.steps:
        assert said(press(screen, given.request, answer, given.about)) == key
    texts = [answer.message, *answer.content.values()]
    for value in answer.answers.values():
        texts += [value] if isinstance(value, str) else value
    assert all(text in str(json.loads(given.heard)) for text in texts if given.heard)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_key_follows_from_a_screen_that_asks_something_else(path: Path) -> None:
    """The screen may show another question of the same kind, or the end of the right one."""
    given = walk(path)
    answer = WALKS[path.stem].answer
    payload = json.loads(path.read_text().splitlines()[-1])["payload"]
    other = json.dumps(payload).replace("made.txt", "make.txt").replace("w.txt", "v.txt")
    other = other.replace("Which ", "What ").replace("Touch", "Remove").replace("What name", "Who")
    raw = other.encode()
    asked = request(raw, "name", 1.0, Origin(pid=1))
    assert asked is not None
    event = hook(raw, 1.0, 1.0, Origin(pid=1))
    about = About(event.detail, event.shown_digest, ["/home/me/project"])
    if answer.choice == "choose":
        kept = {q.text.replace("Which ", "What "): a for q, a in _answers(given, answer)}
        answer = Answer("choose", answers=kept)
    for screen, _ in given.steps:
        assert asked == given.request or press(screen, asked, answer, about).why


def _answers(given: RecordedWalk, answer: Answer) -> list[tuple[object, object]]:
    return [(q, answer.answers[q.text]) for q in given.request.questions]  # type: ignore[misc]


AUTO = """\
────────────────────────────────────────────────────
 Bash command
 touch made.txt
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 touch made.txt
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 Auto mode can't check actions in this session, so this one needs your approval

 Do you want to proceed?
 ❯ No
   Yes

 Esc to cancel · Tab to amend
"""
MOVED = AUTO.replace("❯ No", "  No").replace("  Yes", "❯ Yes")


@pytest.mark.parametrize(
    ("screen", "choice", "key"),
    [
        (AUTO, "allow", "press Down"),
        (MOVED, "allow", "press Enter (last)"),
        (AUTO, "stop", "press Enter (last)"),
        (MOVED, "stop", "press Down"),
    ],
)
def test_answers_without_numbers_are_moved_to(screen: str, choice: str, key: str) -> None:
    """In auto mode No is the default: Enter counts only once the screen shows the right one."""
    asked = Request("", "s", "claude", "permission", "d")
    command = {"command": "touch made.txt", "description": "touch made.txt"}
    payload = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash"}
    raw = json.dumps({**payload, "tool_input": command}).encode()
    event = hook(raw, 1.0, 1.0, Origin(pid=1))
    about = About(event.detail, event.shown_digest)
    assert said(press(screen.splitlines(), asked, Answer(choice), about)) == key


SESSION = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
FOLDER_TOO = "(shift+tab)|;\n      Yes, and always allow access to /x for this session (shift+tab)"


@pytest.mark.parametrize(
    ("suggested", "screen", "key"),
    [
        (SESSION, "", "press 2 (last)"),
        ({**SESSION, "destination": "localSettings"}, "", None),
        ({**SESSION, "mode": "plan"}, "", None),
        (SESSION, FOLDER_TOO, None),
        (SESSION, "for this session|for all sessions", None),
        (SESSION, "2. Yes, and switch|2. Yes, and, for all projects, switch", None),
    ],
)
def test_what_is_suggested_is_a_key_only_if_the_screen_says_exactly_that(
    suggested: dict[str, str], screen: str, key: str | None
) -> None:
    """A screen that says more or less gets no key, not even one that allows it once."""
    given = walk(FOLDER / "2.1.330" / "narrow-edits.txt")
    payload = json.loads((FOLDER / "2.1.330" / "narrow-edits.txt").read_text().splitlines()[-1])
    raw = json.dumps({**payload["payload"], "permission_suggestions": [suggested]}).encode()
    asked = request(raw, "name", 1.0, Origin(pid=1))
    assert asked is not None
    old, _, new = screen.partition("|")
    rows = "\n".join(given.steps[0][0])
    if old == "for this session":
        rows = rows.replace("for this\n      session", new)
    rows = rows.replace(old, new) if old else rows
    pressed = press(rows.splitlines(), asked, Answer("edits"), given.about)
    assert said(pressed) == key if key else pressed.why
    assert press(rows.splitlines(), asked, Answer("always"), given.about).why == UNPROVEN


def test_what_only_the_terminal_offers_can_be_chosen_there() -> None:
    """Choices of the request are left out; hidden characters are marks; the text must match."""
    given = walk(FOLDER / "2.1.330" / "deny.txt")
    screen = given.steps[0][0]
    (first, auto) = offers(screen, given.request)
    assert first.words.startswith("Yes, and always allow access to")
    assert auto.words.startswith("Yes, and switch to auto mode")
    for key, choice in (("2", first), ("3", auto)):
        assert (
            said(press(screen, given.request, Answer(choice.id), given.about))
            == f"press {key} (last)"
        )
    rows = "\n".join(screen)
    odd = rows.replace("2. Yes, and always", "2. Yes, and\u202e always" + "y" * 99).splitlines()
    assert offers(odd, given.request)[0].words.startswith("Yes, and<U+202E> always")
    assert press(odd, given.request, Answer(first.id), given.about).why == NOT_OFFERED
    edits = walk(FOLDER / "2.1.330" / "edits.txt")
    assert offers(edits.steps[0][0], edits.request) == ()
    folder = "always allow access to /home/me/project from this project"
    run = rows.replace(folder, "don\u2019t ask again for: make *")
    choice = Choice("always", "Yes, and do not ask again for commands like `make *`")
    assert offers(run.splitlines(), replace(given.request, choices=(choice,))) == (auto,)
    assert offers([], given.request) == ()


@pytest.mark.parametrize("text", ["two\nlines", "x" * 201, "a\tb", " blank", "a\u200bb", "\x1b[A"])
def test_a_text_that_would_not_arrive_as_it_is_is_not_typed(text: str) -> None:
    given = walk(FOLDER / "2.1.330" / "deny.txt")
    refused = press(given.steps[0][0], given.request, Answer("deny", text), given.about)
    limits = "one line, at most 200 printable characters"
    assert refused.why == f"its dialog takes only {limits}; go there to answer"


def test_what_somebody_else_has_typed_is_left_alone() -> None:
    given = walk(FOLDER / "2.1.330" / "deny.txt")
    screen = [row.replace("No, Use another", "No, Use no other") for row in given.steps[-1][0]]
    answer = WALKS["deny"].answer
    refused = press(screen, given.request, answer, given.about)
    assert refused.why == "its dialog already contains other input; go there to answer"


@pytest.mark.parametrize(
    ("shown", "typed"),
    [
        ("No, and tell Claude what to do\n      differently", True),
        ("No,and tell Claude what to…", True),
        ("No, and tell Claude nothing…", False),
    ],
)
def test_a_hint_that_does_not_fit_is_no_text(shown: str, typed: bool) -> None:
    given = walk(FOLDER / "2.1.330" / "deny.txt")
    rows = "\n".join(given.steps[-2][0])
    assert NO_AND in rows
    screen = rows.replace(NO_AND, shown).splitlines()
    assert typed is bool(press(screen, given.request, WALKS["deny"].answer, given.about).text)


@pytest.mark.parametrize(
    ("shown", "key"), [("Tab to\n amend", "press Tab"), ("Tab to am…", None), ("", None)]
)
def test_no_text_is_typed_unless_the_last_line_says_that_it_is_open(
    shown: str, key: str | None
) -> None:
    """Typed into the closed list, a digit would take an answer."""
    given = walk(FOLDER / "2.1.330" / "deny.txt")
    rows = "\n".join(given.steps[-3][0])
    screen = rows.replace("Tab to amend", shown).splitlines()
    pressed = press(screen, given.request, WALKS["deny"].answer, given.about)
    assert given.steps[-3][1] == "press Tab"
    assert said(pressed) == key if key else pressed.why


def test_an_answer_to_a_question_that_looks_the_same_is_not_given() -> None:
    """A label and its description are one text on the screen."""
    rows = (CAPTURES / "2.1.330" / "question.txt").read_text().rstrip().splitlines()
    given = Answer("choose", answers={"Which colour?": ["Red"]})

    def key(*red: str) -> Press:
        options = (Option(*red), Option("Blue", "cold"))
        questions = (Question("Which colour?", "Colour", options=options),)
        asked = Request("", "s", "claude", "question", "d", questions=questions)
        return press(rows, asked, given, About(""))

    assert not key("Red", "warm").why
    assert key("Red warm").why


def test_no_without_a_message_says_that_it_stops_the_turn() -> None:
    given = walk(FOLDER / "2.1.330" / "deny.txt")
    refused = press(given.steps[0][0], given.request, Answer("deny"), given.about)
    assert "also stops the turn" in refused.why


@pytest.mark.parametrize("answer", [Answer("stop"), Answer("deny", "Use another")])
def test_a_dialog_with_two_noes_gets_no_key(answer: Answer) -> None:
    """A newer version may have one that does more than to refuse this."""
    given = walk(FOLDER / "2.1.330" / "deny.txt")
    screen = [row.replace(" 2. Yes", " 2. No") for row in given.steps[0][0]]
    assert screen != given.steps[0][0]
    refused = press(screen, given.request, answer, given.about)
    assert refused.why == "its dialog does not offer that; go there to answer"


def complete(asked: Request, choice: Choice) -> Answer:
    """Return an answer with this choice and its fields."""
    given = Answer(choice.id)
    if choice.needs == "message":
        return replace(given, message="why")
    if choice.needs == "answers":
        answers: dict[str, list[str] | str]
        answers = {q.text: [q.options[-1].label] for q in asked.questions}
        return replace(given, answers=answers)
    if choice.needs == "content":
        return replace(given, content={f.name: "x" for f in asked.fields})
    return given


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_is_offered_to_be_typed_can_be_typed(path: Path) -> None:
    """The dialog of a question has no key for a no, and a plain no stops the turn."""
    given = walk(path)
    screen, block = given.steps[0][0], Block("permission", 1.0)
    session = Session(session_id="s")
    asked = Asked(session, session, block, given.request, b"", given.about)
    offered = typed(screen, asked)
    assert offered
    for choice in offered:
        assert check(given.request, complete(given.request, choice)) == ""
        key = press(screen, given.request, complete(given.request, choice), given.about)
        assert not key.why, choice.id


ORDER = Request(
    *("id", "s", "claude", "form", "0" * 16),
    tool="rig",
    parts=(Part("text", text="What is to be sent?"),),
    fields=(
        Field("name", "Name", required=True),
        Field("count", "How many", type="integer"),
        Field("size", options=(Option("s", "small"), Option("l", "large"))),
        Field("gift", "As a gift", type="boolean"),
        Field("note"),
    ),
    choices=(Choice("fill", "Send the form", "content"),),
)
HEAD = ["─" * 40, "  MCP server “rig” requests your input", "  What is to be sent?"]


@pytest.mark.parametrize(
    ("rows", "key"),
    [
        (
            "❯ * Name: Type something…|* How many: not set|* size: not set|* As a gift: not set",
            "Ada",
        ),
        ("✔ Name: Ada|❯ * How many: Type something…|* size: not set|* As a gift: not set", "2"),
        ("✔ Name: Ada|❯ ✔ How many: 3|* size: not set|* As a gift: not set", ""),
        ("✔ Name: Ada|✔ How many: 2|❯ * size: ▸ not set|* As a gift: not set", "Right"),
        ("✔ Name: Ada|✔ How many: 2|❯ * size: ▾|❯ ◯ small|◯ large|* As a gift: not set", "Down"),
        ("✔ Name: Ada|✔ How many: 2|❯ * size: ▾|◯ small|❯ ◯ large|* As a gift: not set", "Space"),
        ("✔ Name: Ada|✔ How many: 2|❯ ✔ size: ▸ large|* As a gift: not set", "Down"),
        ("✔ Name: Ada|✔ How many: 2|❯ ✔ size: ▸ small|* As a gift: not set", ""),
        ("✔ Name: Ada|✔ How many: 2|✔ size: large|❯ * As a gift: ☐", "Space"),
        ("✔ Name: Ada|✔ How many: 2|✔ size: large|❯ ✔ As a gift: ☒", "Space"),
        ("✔ Name: Ada|✔ How many: 2|✔ size: large|❯ ✔ As a gift: ☐", "Down"),
    ],
)
def test_a_field_of_a_form_is_set_key_by_key(rows: str, key: str) -> None:
    """The box of a field that is not set looks as that of a no; what somebody chose is left."""
    wanted = {"name": "Ada", "count": 2, "size": "l", "gift": False}
    below = ["    note: not set", "    Accept    Decline", "", "  Esc to cancel"]
    screen = [*HEAD, *(f"  {row}" for row in rows.split("|")), *below]
    pressed = press(screen, ORDER, Answer("fill", content=wanted), About(""))
    assert (pressed.key or pressed.text) == key
    assert bool(pressed.why) == (key == "")
