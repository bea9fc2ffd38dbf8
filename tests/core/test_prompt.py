"""The screen on which a request is answered in a terminal: what it shows, what its keys give."""

from __future__ import annotations

import shlex
import time
from argparse import Namespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bellboard.cli.answer import details
from bellboard.cli.home import Problem
from bellboard.core.request import Answer, Choice, Field, Option, Part, Question, Request, check
from bellboard.screen.full import PASTED, FullScreen
from bellboard.screen.picker import Selection as Picker
from bellboard.screen.prompt import SOON, ShownRequest
from bellboard.screen.request import lines_of, page

LATER = 1.0  # when keys count
COMMAND = Part("command", text="make all\nmake test", warnings=("trailing blanks",))
DIFF = Part("diff", path="/srv/a.py", old="one\ntwo\n", new="one\n2\n")
CHOICES = (
    Choice("allow", "Yes, this once"),
    Choice("edit", "Yes, but run another command", "input"),
    Choice("deny", "No, and say why", "message?"),
    Choice("keep", "No, keep planning", "message"),
    Choice("choose", "Answer", "answers"),
    Choice("fill", "Send the form", "content"),
)
QUESTIONS = (
    Question("Which colour?", options=(Option("Red", "warm"), Option("Blue"))),
    Question("Which extras?", many=True, options=(Option("Horn"), Option("Bell"), Option("Lamp"))),
)
FIELDS = (
    Field("name", "Name", required=True),
    Field("age", type="integer"),
    Field("sure", type="boolean"),
)
REQUEST = Request(
    *("name", "s", "claude", "permission", "0123456789abcdef"),
    title="Run a command",
    parts=(COMMAND, DIFF),
    questions=QUESTIONS,
    fields=FIELDS,
    choices=CHOICES,
)


ASKS = replace(REQUEST, fields=(), choices=(CHOICES[4], CHOICES[2]))
FORM = replace(REQUEST, questions=(), choices=(CHOICES[5], Choice("decline", "Decline")))
PLAN = replace(REQUEST, questions=(), fields=(), choices=(Choice("approve", "Yes"), CHOICES[3]))


def pressed(
    *keys: str, request: Request = REQUEST, columns: int = 60, height: int = 60
) -> ShownRequest:
    prompt = ShownRequest(request, "api", "acme/api · main", 0.0)
    prompt.lines(LATER, columns, height)
    for key in keys:
        prompt.press(key, LATER)
        prompt.lines(LATER, columns, height)
    return prompt


def shown(prompt: ShownRequest, columns: int = 60, height: int = 60) -> str:
    return "\n".join(line.plain for line in prompt.lines(LATER, columns, height))


@pytest.mark.parametrize("option", ["answer", "field"])
def test_a_name_with_an_equals_sign_is_told_from_its_beginning(option: str) -> None:
    """The longest name counts: else `Mode=fast?=Yes` would answer another question."""
    names = ("Mode", "Mode=fast?", "Mode=fast?=Yes=")
    request = {"questions": [{"text": n} for n in names], "fields": [{"name": n} for n in names]}
    for name, text in (("Mode", "slow"), ("Mode=fast?", "Yes"), ("Mode=fast?=Yes=", "=")):
        args = Namespace(**{"answer": [], "field": [], "input": None, option: [f"{name}={text}"]})
        made = details(args, request)
        assert {name: text} == made["answers"] | made["content"]


@pytest.mark.parametrize(
    ("asked", "keys", "taken"),
    [
        (REQUEST, "A", {"choice": "allow"}),
        (REQUEST, "D", {"choice": "deny"}),
        (REQUEST, ("R", *"no, 1", "take"), {"choice": "deny", "message": "no, 1"}),
        (PLAN, "A", {"choice": "approve"}),
        (PLAN, ("R", "take", *"why", "take"), {"choice": "keep", "message": "why"}),
        (REQUEST, ("C", "clear", *"ls", "take"), {"choice": "edit", "input": "ls"}),
        (
            ASKS,
            ("A", "2", "1", "3", "1", "take"),
            {"choice": "choose", "answers": {"Which colour?": ["Blue"], "Which extras?": ["Lamp"]}},
        ),
        (
            ASKS,
            ("i", *"green", "rub", "take", "2", "take"),
            {"choice": "choose", "answers": {"Which colour?": "gree", "Which extras?": ["Bell"]}},
        ),
        (
            FORM,
            ("A", *"Ada", "take", *"36", "take", "1"),
            {"choice": "fill", "content": {"name": "Ada", "age": 36, "sure": True}},
        ),
        (
            FORM,
            ("A", *"Ada", "take", "take", "take"),
            {"choice": "fill", "content": {"name": "Ada"}},
        ),
    ],
)
def test_keys_give_an_answer(
    asked: Request, keys: tuple[str, ...], taken: dict[str, object]
) -> None:
    """The same keys as in the editor; what a choice needs is asked for, one after the other."""
    assert pressed(*keys, request=asked).taken == taken


def test_a_digit_is_an_option_as_in_the_dialogs_of_the_agents() -> None:
    """And never a choice, which may be a refusal; of several questions, those of the first."""
    options = (Option("PostgreSQL"), Option("SQLite"))
    skip = Choice("deny", "Do not answer, and say why", "message?")
    asks = replace(
        ASKS,
        questions=(Question("Which database?", options=options),),
        choices=(Choice("choose", "Answer", "answers"), skip),
    )
    seen = shown(pressed(request=asks))
    assert "  1 PostgreSQL\n  2 SQLite\n" in seen
    assert " A  Answer    D  Do not answer\n R  Do not answer, and say why\n" in seen
    for once in ("2", "1", "x"):
        assert pressed("2", once, request=asks).taken is None or once == "2"
    assert pressed("1", "2", "take", request=asks).taken == pressed("2", "2", request=asks).taken
    prompt = pressed("2", "2", request=asks)
    assert prompt.taken == {"choice": "choose", "answers": {"Which database?": ["SQLite"]}}
    assert prompt.chosen == "Answer"
    assert pressed("D", request=asks).taken == {"choice": "deny"}
    assert not pressed("3", request=asks).over
    assert "Which colour?" in (pressed("2", "3", "take", request=ASKS).taken or {})["answers"]
    assert pressed("2", request=asks, height=7).taken is None  # not read


def test_a_choice_without_a_letter_takes_its_digit_twice() -> None:
    """Or Enter after it; any other key in between counts for itself."""
    words, note = "Yes, and accept ALL EDITS of this session", "no longer asks for edits"
    choices = (CHOICES[0], Choice("edits", words, note=note), CHOICES[2])
    asks = replace(PLAN, choices=choices, more=("Not offered here: " + "x" * 99,))
    seen = shown(pressed("2", request=asks))
    assert f" 2  {words}\n      {note}\n" in seen
    assert "Press 2 again or Enter to say: Yes" in seen
    assert all(len(row) <= 60 for row in seen.splitlines())
    assert pressed("2", "2", request=asks).taken == {"choice": "edits"}
    assert pressed("2", "take", request=asks).taken == {"choice": "edits"}
    assert pressed("2", "down", "2", request=asks).taken is None
    assert pressed("2", "A", request=asks).taken == {"choice": "allow"}
    assert pressed("take", request=asks).taken is None
    assert pressed("2", "2", request=asks, height=8).taken is None  # not read


def test_a_text_is_there_again_after_going_back() -> None:
    """And after an answer that is refused."""
    asks = replace(ASKS, questions=QUESTIONS[:1])
    back = ("i", *"green", "leave")
    prompt = pressed(*back, "i", "take", request=asks)
    assert prompt.taken == {"choice": "choose", "answers": {"Which colour?": "green"}}
    refused = pressed("i", *"a\x07", PASTED + " ", "take", "i", request=asks)
    assert refused.taken is None or refused.taken["answers"] == {"Which colour?": "a "}
    form = ("A", *"Ada", "take", *"old", "take", "1")  # age is a number
    assert "> Ada" in shown(pressed(*form, "A", request=FORM))


@pytest.mark.parametrize(
    ("keys", "does"),
    [("q", "leave"), (("leave",), "leave"), (("tab",), "skip"), ("s", "snooze"), ("go", "go")],
)
def test_keys_that_answer_nothing(keys: tuple[str, ...], does: str) -> None:
    prompt = pressed(*keys)
    assert (prompt.over, prompt.does, prompt.taken) == (True, does, None)


def test_a_key_that_came_too_soon_answers_nothing() -> None:
    """The user was typing something else, until there is a pause; leaving is always possible."""
    prompt = ShownRequest(REQUEST, "api", "", LATER)
    for n in range(1, 9):
        prompt.press("A", LATER + n * SOON * 0.75)
    assert not prompt.over
    prompt.press("leave", LATER)
    assert prompt.does == "leave"


LINES = "rm -rf build &&\n\tmake 1\n"
PASTE = b"\x1b[200~rm -rf build &&\r\n\tmake 1\r\x1b[201~"


@pytest.mark.parametrize("size", [1, 2, 5, 99])
def test_a_paste_is_one_key_however_it_arrives(size: int) -> None:
    """No key in it has a meaning, and the keys around it keep theirs."""
    screen, data = FullScreen(lambda: None), b"a" + PASTE + b"\x1b[A" + PASTE + b"\r"
    parts = [data[n : n + size] for n in range(0, len(data), size)]
    for n, part in enumerate(parts):
        if part.endswith(b"\x1b"):  # `operate` waits for the rest
            parts[n : n + 2] = [b"", part + parts[n + 1]]
    keys = [key for part in parts for key in screen.named(part)]
    assert keys == ["a", PASTED + LINES, "up", PASTED + LINES, "take"]


@pytest.mark.parametrize(("key", "field"), [("C", "input"), ("R", "message")])
def test_a_paste_of_several_lines_is_sent_whole(key: str, field: str) -> None:
    """Each line is shown; only Enter sends it."""
    prompt = pressed(key, "clear", PASTED + LINES)
    assert not prompt.over
    assert " > rm -rf build &&\n       make 1\n   █\n" in shown(prompt)
    prompt.press("take", LATER)
    assert prompt.taken is not None
    assert prompt.taken[field] == LINES.rstrip("\n")


def test_a_line_pasted_with_its_end_is_one_line() -> None:
    """A line from a terminal has an end: a dialog that takes keys takes one line only."""
    prompt = pressed("R", PASTED + "use pnpm\n", "take")
    assert prompt.taken is not None
    assert prompt.taken["message"] == "use pnpm"


def test_a_paste_of_more_than_there_is_room_for_shows_its_end() -> None:
    text = shown(pressed("R", PASTED + "x\n" * 10**5 + "end"), 60, 16)
    assert "   end█" in text
    assert "Message" in text and "Esc to go back" in text


def test_a_paste_that_nothing_asked_for_answers_nothing() -> None:
    """Nor where only options count; in the picker it is searched for."""
    assert not pressed(PASTED + "1").over
    asked = replace(ASKS, questions=(replace(QUESTIONS[0], typed=False),))
    assert pressed("A", PASTED + "1", request=asked).taken is None
    picker = Picker([])
    picker.press(PASTED + "api\n")
    assert picker.typed == "api\n"


def test_a_missing_text_is_reported_and_escape_goes_back() -> None:
    prompt = pressed("R", "take")
    assert "type something first" in shown(prompt)
    prompt.press("leave", LATER)
    assert "Yes, this once" in shown(prompt)
    refused = pressed("A", *"Ada", "take", *"old", "take", "1", request=FORM)
    assert refused.taken is None
    assert "must be a number" in shown(refused)


@pytest.mark.parametrize("columns", [40, 60, 120])
def test_all_of_it_is_shown(columns: int) -> None:
    """However narrow; what has no room can be scrolled to, and is announced."""
    text = shown(pressed(), columns)
    for part in ("make all", "make test", "! trailing blanks", "/srv/a.py", "-two", "+2", "warm"):
        assert part in text
    assert all(len(line.plain) <= columns for line in lines_of(REQUEST, columns))
    prompt = pressed()
    assert " more: Space " in shown(prompt, columns, 16)
    for _ in range(40):
        prompt.press("down", LATER)
    assert "sure: boolean" in shown(prompt, columns, 16)
    assert " more: " not in shown(prompt, columns, 16)


def test_a_command_that_is_empty_is_shown_as_such() -> None:
    """An empty command may be allowed, so a blank must not look like an omitted command."""
    made = msgspec.structs.replace(REQUEST, parts=(Part("command"),))
    assert "(empty)" in "\n".join(line.plain for line in lines_of(made, 60))


@pytest.mark.parametrize("columns", [40, 60, 120])
@pytest.mark.parametrize("filling", ["ab ", "é", "你", "\u2764\ufe0f", "\U0001fae9"])
def test_no_row_is_wider_than_any_terminal_draws_it(filling: str, columns: int) -> None:
    """A terminal cuts what is, and a command would end where it does not."""
    told = filling * 60
    request = Request(
        *("name", "s", "claude", "permission", "0123456789abcdef"),
        title=f"Use mcp__{told.replace(' ', '')}__remove",
        parts=(Part("command", told, f"echo {told}; rm -rf ~", path=f"/{told}/x"),),
    )
    rows = [row.plain for row in lines_of(request, columns)]
    assert columns >= max(sum(2 if c > "\u10ff" else 1 for c in row) for row in rows)
    whole = "".join(row.removeprefix("  ") for row in rows)
    for text in (request.title, f"echo {told}; rm -rf ~", f"/{told}/x"):
        assert text in whole


def test_a_change_of_many_lines_is_shown_at_once() -> None:
    """Lines that recur make a comparison slow."""
    old, new = ("\n".join(str(n * step % 300) for n in range(30_000)) for step in (7, 11))
    part = Part("diff", path="/a", old=old, new=new)
    request = Request("name", "s", "claude", "permission", "0123456789abcdef", parts=(part,))
    begun = time.process_time()  # what else runs here takes none of it
    rows = lines_of(request, 80)
    assert time.process_time() - begun < 10
    assert [row.plain[2] for row in rows[2:]] == ["-"] * 30_000 + ["+"] * 30_000


def given(*answers: str, field: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the values of the arguments of a command line."""
    return details(Namespace(answer=answers, field=field, input=None), msgspec.to_builtins(REQUEST))


def test_a_command_line_gives_options_or_a_text() -> None:
    extras = "Which extras?="
    assert given(f"{extras}Horn", f"{extras}Lamp")["answers"] == {"Which extras?": ["Horn", "Lamp"]}
    assert given(f"{extras}a flag")["answers"] == {"Which extras?": "a flag"}
    for two in (("Horn", "a flag"), ("a flag", "Horn"), ("a flag", "a bow")):
        with pytest.raises(Problem, match="one text of your own"):
            given(*(extras + each for each in two))


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("age=9007199254740993", 9007199254740993, ""),
        ("age=3.0", 3.0, ""),
        ("age=1.5", 1.5, "“age” must be a whole number"),
        ("age=1e999", float("inf"), "“age” must be a number"),
        pytest.param(f"age={'9' * 400}", int("9" * 400), "", id="huge"),
        ("age=old", "old", "“age” must be a number"),
        ("sure=No", False, ""),
        ("sure=TRUE", True, ""),
        ("sure=ture", "ture", "“sure” must be yes or no"),
    ],
)
def test_a_value_of_a_form_is_what_was_typed(field: str, value: object, why: str) -> None:
    """An invalid value is refused: the value is never another one."""
    content = given(field=(field, "name=Ada"))["content"]
    assert content == {field.partition("=")[0]: value, "name": "Ada"}
    assert check(REQUEST, Answer("fill", content=content)) == why


def test_a_printed_request_says_how_to_answer_it() -> None:
    text = "\n".join(line.plain for line in page(REQUEST, "api", 80))
    assert "bellboard answer s CHOICE --digest 0123456789abcdef" in text
    assert "[--message TEXT]" in text


def asking(count: int, kind: str) -> Request:
    """Return a request with a question, or a field, of so many options."""
    options = tuple(Option(f"option {n}") for n in range(count))
    of_form = kind == "fill"
    return Request(
        *("name", "s", "claude", "question", "0123456789abcdef"),
        questions=() if of_form else (Question("Which?", options=options),),
        fields=(Field("which", options=options),) if of_form else (),
        choices=(Choice(kind, "Answer", "content" if of_form else "answers"),),
    )


@pytest.mark.parametrize("kind", ["choose", "fill"])
@pytest.mark.parametrize("count", [1, 30, 100])
def test_each_of_many_options_can_be_chosen(kind: str, count: int) -> None:
    """Options may have no key of their own; the one that Space takes is on the screen."""
    prompt = pressed("last", "A", *["down"] * (count - 1), request=asking(count, kind), height=16)
    assert f"option {count - 1}" in shown(prompt, 60, 16)
    prompt.press(" ", LATER)
    taken = prompt.taken or {}
    assert f"option {count - 1}" in str(taken.get("answers") or taken.get("content"))


def test_no_option_has_the_key_that_types_an_answer() -> None:
    prompt = pressed("A", "i", request=asking(30, "choose"))
    assert not prompt.over
    assert "option 26" in shown(prompt)
    prompt.press("x", LATER)
    assert prompt.unsent == "x"


def test_nothing_is_typed_where_only_options_count() -> None:
    asks = (Question("Which colour?", options=(Option("Red"), Option("Blue")), typed=False),)
    prompt = pressed("A", "i", *"22", request=replace(ASKS, questions=asks))
    assert prompt.taken == {"choice": "choose", "answers": {"Which colour?": ["Blue"]}}
    assert "i to type" not in shown(pressed("A", request=replace(ASKS, questions=asks)))
    assert "i type" not in shown(pressed(request=replace(ASKS, questions=asks)))


@pytest.mark.parametrize(("columns", "height"), [(60, 12), (20, 20), (20, 8), (12, 5)])
def test_nothing_unread_is_allowed(columns: int, height: int) -> None:
    """What follows far below could be anything; a small screen scrolls to it. No needs no reading.

    As for a terminal that is made smaller meanwhile.
    """
    how = {"columns": columns, "height": height}
    prompt = pressed("A", **how)
    assert not prompt.over
    assert "Read it to" in shown(prompt, columns, height)
    assert pressed("D", "take", **how).taken == {"choice": "deny"}
    seen = "".join(shown(pressed(*["down"] * n, **how), columns, height) for n in range(60))
    for part in ("make", "trailing", "-two", "Horn", "sure: boolean", "A  Yes"):
        assert part.split()[0] in seen, part
    assert pressed(*["down"] * 60, "A", **how).taken == {"choice": "allow"}


def test_hostile_ids_are_words_of_a_shell() -> None:
    """The printed command is there to be copied."""
    hostile = "s; touch x $(y) `z` 'w'"
    request = Request("name", hostile, "claude", "permission", hostile)
    words = shlex.split(page(request, "api", 80)[-1].plain)
    assert words == ["bellboard", "answer", hostile, "CHOICE", "--digest", hostile]


def test_a_printed_choice_is_wrapped_with_all_of_its_words() -> None:
    words = "Yes, and allow " + "a" * 90 + " until it is restarted"
    rows = [line.plain for line in page(replace(REQUEST, choices=(Choice("a", words),)), "api", 60)]
    begun = next(n for n, row in enumerate(rows) if row.startswith("  a  Yes"))
    assert all(len(row) < 60 for row in rows[begun:-1])
    assert words.replace(" ", "") in "".join(rows[begun:]).replace(" ", "")
