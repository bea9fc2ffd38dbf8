"""The line that a hook prints for each answer, and the answers that are refused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bellboard.core.request import (
    LONGEST_ANSWER,
    Answer,
    Field,
    Option,
    answer_of,
    are_distinct,
    check,
    understood,
)
from bellboard.fleet.member import settings_in
from rig.host.asking import (
    CLAUDE,
    COLOR,
    FROM,
    PLAN,
    SIZES,
    allows,
    asked,
    decided,
    form,
    ids,
    payload,
    printed,
)
from rig.host.strategies import json_values


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        (Answer("allow"), {"behavior": "allow"}),
        (Answer("deny", "Not\nthat"), {"behavior": "deny", "message": "Not\nthat"}),
        (Answer("deny"), {"behavior": "deny", "message": "The user said no."}),
        (
            Answer("stop"),
            {"behavior": "deny", "message": "The user said no.", "interrupt": True},
        ),
        (
            Answer("edit", input="make -n"),
            {"behavior": "allow", "updatedInput": {"command": "make -n", "timeout": 5}},
        ),
    ],
)
def test_a_permission(answer: Answer, decision: object) -> None:
    raw = payload("Bash", {"command": "make", "timeout": 5})
    assert ids(asked(raw)) == ["allow", "edit", "deny", "stop"]
    assert decided(raw, answer) == decision


#: Tool, its input, the rule that the CLI suggests, and the one that would spare the question.
RULES = r"""
Bash          {"command": "make test"}        Bash(make test)  Bash(make test)
Bash          {"command": "make -n a"}        Bash(make:*)     Bash(make -n a)
Bash          {"command": "npm run a"}        Bash(npm run:*)  Bash(npm run:*)
Bash          {"command": "npm run a"}        Bash(npm run *)  Bash(npm run:*)
Bash          {"command": "npm rune"}         Bash(npm run:*)  Bash(npm rune)
Bash          {"command": "sudo rm a"}        Bash(sudo rm:*)  Bash(sudo rm a)
Bash          {"command": "npm exec a"}       Bash(npm exec:*) Bash(npm exec a)
Bash          {"command": "pnpm dlx a"}       Bash(pnpm dlx:*) Bash(pnpm dlx a)
Bash          {"command": "uv run a"}         Bash(uv run:*)   Bash(uv run a)
Bash          {"command": "go run a"}         Bash(go run:*)   Bash(go run a)
Bash          {"command": "conda run a"}      Bash(conda run:*) Bash(conda run a)
Bash          {"command": "bundle exec a"}    Bash(bundle exec:*) Bash(bundle exec a)
Bash          {"command": "a; b"}             Bash(a; b)       -
Bash          {"command": "ls *"}             Bash(ls *)       -
Bash          {"command": "ls:*"}             Bash(ls:*)       -
Bash          {"command": "ls $(x)"}          Bash(make test)  -
Bash          {"command": "ls\nrm"}           Bash(make test)  -
Bash          {"command": "make test"}        -                -
Bash          {"command": 3}                  Bash(make test)  -
Bash          {"command": "make"}             Read             -
WebFetch      {"url": "https://A.org:80/x"}   WebFetch         WebFetch(domain:a.org)
WebFetch      {"url": "https://a@b.org/"}     WebFetch         -
WebFetch      {"url": "https://a.org\\@b.org/"} WebFetch       -
mcp__db__ask  {"table": "x"}                  mcp__db__ask     mcp__db__ask
mcp__db       {"table": "x"}                  mcp__db          -
Edit          {"file_path": "/a"}             Edit             -
"""
_RULE = r"(\w+\([^()]*\)|\w+|-)"


@pytest.mark.parametrize("row", RULES.strip().splitlines())
def test_the_rule_that_would_spare_a_question_is_the_narrowest(row: str) -> None:
    """A rule exists only where the CLI suggests to allow the tool; the history names it."""
    found = re.fullmatch(rf"(\w+) +({{.*}}) +{_RULE} +{_RULE}", row)
    assert found
    tool, given, suggested, rule = found.groups()
    name, _, content = suggested.rstrip(")").partition("(")
    rules = [{"toolName": name, **({"ruleContent": content} if content else {})}]
    suggestions = allows(*(rules if suggested != "-" else ()))
    raw = payload(tool, json.loads(given), permission_suggestions=suggestions)
    assert ("" if rule == "-" else rule) == CLAUDE.event(raw, 1.0, 1.0, FROM).rule


# ---------------------------------------------------------------- suggestions

WHERE = {"project_dir": "/srv/api", "main_dir": "/srv/api", "config_dir": "/home/me/.claude"}
LOCAL = "written to /srv/api/.claude/settings.local.json"
ENDS = "this session only"
NO_EDITS = "no longer asks for edits and common file commands"
AGAIN = "Yes, and do not ask again for "
CURL = "curl -s http://127.0.0.1:1/x"
FOLDER = {"type": "addDirectories", "directories": ["/srv/api"], "destination": "session"}
BESIDE = {**FOLDER, "directories": ["/srv/web"]}
EDITS = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}


def rules(
    *contents: str | None,
    tool: str = "Bash",
    to: str = "localSettings",
    kind: str = "addRules",
    behavior: str = "allow",
    **more: object,
) -> dict[str, Any]:
    """Return a suggestion of such rules."""
    made = [{"toolName": tool, **({"ruleContent": x} if x is not None else {})} for x in contents]
    return {"type": kind, "rules": made, "behavior": behavior, "destination": to, **more}


def suggesting(*suggested: object, command: str = "make a", tool: str = "Bash") -> bytes:
    told = {"command": command} if tool == "Bash" else {"file_path": "/srv/api/w.txt"}
    return payload(tool, told, permission_suggestions=[*suggested], cwd="/srv/api")


def offered(raw: bytes, **where: str) -> dict[str, tuple[str, str]]:
    """Return the words and the note of each choice that counts beyond a question."""
    request = asked(raw, replace(FROM, env={**WHERE, **where}))
    return {c.id: (c.words, c.note) for c in request.choices if c.note}


def test_each_suggestion_is_a_choice_and_sent_back_as_it_came() -> None:
    """The suggestions are those of four dialogs of 2.1.332: `touch`, new file, `curl

    sh`, `make`.
    """
    folder = ("Yes, and also work in `/srv/api`", f"still asks for commands and edits; {ENDS}")
    edits = ("Yes, and accept ALL EDITS of this session", NO_EDITS)
    touch = suggesting(FOLDER, EDITS, command="touch made.txt")
    assert {"folder": folder, "edits": edits} == offered(touch)
    assert [FOLDER] == decided(touch, Answer("folder"))["updatedPermissions"]
    assert [EDITS] == decided(touch, Answer("edits"))["updatedPermissions"]
    write = suggesting(EDITS, tool="Write")
    assert {"edits": edits} == offered(write)
    assert {"behavior": "allow", "updatedPermissions": [EDITS]} == decided(write, Answer("edits"))
    curl = suggesting(one := rules(CURL), two := rules("sh"), command=f"{CURL} | sh")
    alone = "the same file; it may still ask"
    fetch, run = f"`{CURL}`", "`sh` (runs anything)"
    assert {
        "always": (f"{AGAIN}{fetch} and {run}", LOCAL),
        "always-1": (f"{AGAIN}{fetch}", alone),
        "always-2": (f"{AGAIN}{run}", alone),
    } == offered(curl)
    for choice, sent in {"always": [one, two], "always-1": [one], "always-2": [two]}.items():
        assert sent == decided(curl, Answer(choice))["updatedPermissions"]
    outside = suggesting(EDITS, BESIDE, tool="Write")
    both = "Yes, and accept ALL EDITS of this session, also in `/srv/web`"
    assert (both, NO_EDITS) == offered(outside)["both"]
    assert ["both", "edits", "folder"] == [*offered(outside)]
    assert [EDITS, BESIDE] == decided(outside, Answer("both"))["updatedPermissions"]
    make = suggesting(rules("make --dry-run alpha"), command="make --dry-run alpha")
    assert {"always": (f"{AGAIN}this command", LOCAL)} == offered(make)
    assert [rules("make --dry-run alpha")] == decided(make, Answer("always"))["updatedPermissions"]


@pytest.mark.parametrize(
    ("suggested", "what"),
    [
        (rules("npm run *"), "commands like `npm run *`"),
        (rules("npm run:*"), "commands like `npm run:*`"),
        (
            rules("git commit *", "git push *"),
            "commands like `git commit *` and commands like `git push *`",
        ),
        (rules("sudo *"), "commands like `sudo *` (runs anything)"),
        (rules("uv run *"), "commands like `uv run *` (runs anything)"),
        (rules("python3 -c x"), "`python3 -c x`"),
        (rules("domain:a.org", tool="WebFetch"), "pages of a.org"),
        (rules("domain:a.org/*", tool="WebFetch"), "`WebFetch(domain:a.org/*)`"),
        (rules("//etc/**", tool="Read"), "reading what is in /etc"),
        (rules("//**", tool="Read"), "`Read(//**)`"),
        (rules("//e*/**", tool="Read"), "`Read(//e*/**)`"),
        (rules(None, tool="mcp__db__ask"), "all that the tool mcp__db__ask does"),
        (rules(None, tool="mcp__db"), "all tools of db"),
    ],
)
def test_words_say_all_that_a_rule_allows(suggested: object, what: str) -> None:
    assert {"always": (AGAIN + what, LOCAL)} == offered(suggesting(suggested))


@pytest.mark.parametrize(
    ("suggested", "choice", "words", "note"),
    [
        (rules("x", to="session"), "always", f"{AGAIN}`x`", ENDS),
        (
            rules("x", to="projectSettings"),
            "always",
            f"{AGAIN}`x`",
            "written to /srv/api/.claude/settings.json, which others may share",
        ),
        (
            rules("x", to="userSettings"),
            "always",
            f"{AGAIN}`x`",
            "in all projects; written to /home/me/.claude/settings.json",
        ),
        (
            rules("x", kind="replaceRules"),
            "replace",
            "Yes, and REPLACE ALL RULES that allow something by `x`",
            LOCAL,
        ),
        (
            {**FOLDER, "directories": ["/", "/a b"], "destination": "localSettings"},
            "folder",
            "Yes, and also work in `/` and `/a b`",
            f"still asks for commands and edits; {LOCAL}",
        ),
        (
            {**EDITS, "destination": "localSettings"},
            "edits",
            "Yes, and accept ALL EDITS of this session and of all new ones here",
            f"{NO_EDITS}; {LOCAL}",
        ),
    ],
)
def test_words_say_for_how_long_and_in_which_file(
    suggested: object, choice: str, words: str, note: str
) -> None:
    assert {choice: (words, note)} == offered(suggesting(suggested))


def test_local_settings_are_those_of_the_main_working_tree() -> None:
    """From 2.1.328 on, in subfolders and worktrees; older versions write elsewhere."""
    raw = suggesting(rules("make a"))
    (_, note) = offered(raw, project_dir="/srv/wt")["always"]
    assert note == f"{LOCAL} (up to 2.1.200: /srv/wt/.claude/settings.local.json)"
    (_, note) = offered(raw, project_dir="", main_dir="")["always"]
    assert note == "written to .claude/settings.local.json"
    (_, note) = offered(raw, project_dir="/a\x1b[2J", main_dir="")["always"]
    assert note == "written to /a<U+001B>[2J/.claude/settings.local.json"


@pytest.mark.parametrize(
    ("odd", "named"),
    [
        (rules("x", behavior="deny"), "addRules deny localSettings"),
        (rules("x", behavior="ask"), "addRules ask localSettings"),
        (rules("x", to="cliArg"), "addRules allow cliArg"),
        (rules("x", kind="removeRules"), "removeRules allow localSettings"),
        (rules("x", reach="all"), "addRules allow localSettings"),
        *(
            (rules(content), "addRules allow localSettings")
            for content in (
                *(None, "", "*", ":*", " *", "x" * 201, "m\u0430ke", "a\u202eb *", "a\nb"),
                *("a\tb", "a ", "a` and `b", "\x1b[2J"),
            )
        ),
        (rules("x", tool="Ba\u0455h"), "addRules allow localSettings"),
        (rules(), "addRules allow localSettings"),
        (rules("/a\u200b", tool="Read"), "addRules allow localSettings"),
        ({**EDITS, "mode": "bypassPermissions"}, "setMode bypassPermissions session"),
        ({**EDITS, "mode": "auto"}, "setMode auto session"),
        ({**EDITS, "mode": ["acceptEdits"]}, "setMode session"),
        ({**EDITS, "also": 1}, "setMode acceptEdits session"),
        ({**FOLDER, "directories": []}, "addDirectories session"),
        ({**FOLDER, "directories": ["/a", "/b\u200b"]}, "addDirectories session"),
        ({**FOLDER, "directories": [""]}, "addDirectories session"),
        ({"type": "grant\u202e"}, "grant<U+202E>"),
        ({"type": ["addRules"]}, "something unknown"),
        (3, "something unknown"),
    ],
)
def test_what_words_cannot_say_is_not_offered(odd: object, named: str) -> None:
    """The request says that there is more; nothing gives it."""
    raw = suggesting(odd)
    assert ["allow", "edit", "deny", "stop"] == ids(asked(raw))
    assert (f"Not offered here: {named}",) == asked(raw).more
    assert asked(raw).digest != asked(suggesting()).digest
    for choice in ("always", "always-1", "folder", "edits", "replace"):
        assert CLAUDE.reply(raw, Answer(choice)) == b""
    both = offered(suggesting(odd, rules("y"), rules("z")))
    assert ["always-1", "always-2"] == [*both]  # all together would not be all


def test_each_choice_has_a_digit() -> None:
    """Suggestions beyond the digits are not offered."""
    raw = suggesting(*(rules(f"r{n}") for n in range(12)))
    assert [f"always-{n}" for n in range(1, 8)] == [*offered(raw)]
    assert ("Not offered here: addRules allow localSettings",) == asked(raw).more
    whole = asked(suggesting(*(rules(f"r{n}") for n in range(7))))
    assert ids(whole).index("always-7") == 8


@given(st.lists(json_values), json_values, st.data())
def test_only_what_was_chosen_is_sent_back(
    suggestions: list[Any], command: Any, data: st.DataObject
) -> None:
    """Other suggestions do not matter."""
    known = [EDITS, FOLDER, rules("a"), rules("b", to="session"), rules("c", behavior="deny")]
    mixed = data.draw(st.permutations([*known, *suggestions]))
    raw = payload("Bash", {"command": command}, permission_suggestions=mixed)
    made = CLAUDE.request(raw, "n", 1.0, FROM)
    for choice in ids(made) if made else ():
        said = CLAUDE.reply(raw, Answer(choice, input="x" if choice == "edit" else None))
        sent = json.loads(said)["hookSpecificOutput"]["decision"].get("updatedPermissions", [])
        assert all(each in mixed for each in sent)
        assert (EDITS in sent) == (choice == "edits")
        assert (FOLDER in sent) == (choice == "folder")
        assert rules("c", behavior="deny") not in sent
        assert len(sent) == (choice not in ("allow", "edit", "deny", "stop"))


@pytest.mark.parametrize("given", [PLAN, {}])
def test_a_plan(given: dict[str, str]) -> None:
    """The plan is always sent back with the approval: some versions take a missing one as empty."""
    raw = payload("ExitPlanMode", given)
    assert ids(asked(raw)) == ["approve", "approve-edits", "keep", "stop"]
    assert decided(raw, Answer("approve")) == {"behavior": "allow", "updatedInput": given}
    mode = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
    assert decided(raw, Answer("approve-edits")) == {
        "behavior": "allow",
        "updatedInput": given,
        "updatedPermissions": [mode],
    }
    assert decided(raw, Answer("keep", "More")) == {"behavior": "deny", "message": "More"}
    assert "needs a message" in check(asked(raw), Answer("keep", " \n"))


@pytest.mark.parametrize("tool", ["AskUserQuestion", "ExitPlanMode"])
def test_a_question_or_plan_is_never_just_allowed(tool: str) -> None:
    """Up to 2.1.119, that would be an empty answer."""
    raw = payload(tool, {"questions": [COLOR]})
    for choice in ("allow", "always", "edit"):
        assert "not one of its choices" in check(asked(raw), Answer(choice, input="x"))
        assert CLAUDE.reply(raw, Answer(choice, input="x")) == b""


def test_questions() -> None:
    """Answers go by the question's text; labels are joined in the order of the options."""
    raw = payload("AskUserQuestion", {"questions": [COLOR, SIZES]})
    request = asked(raw)
    assert [(q.text, q.header, q.many) for q in request.questions] == [
        ("Which colour?", "Colour", False),
        ("Which sizes?", "", True),
    ]
    assert request.questions[0].options == (Option("Red", "warm"), Option("Blue"))
    given = {"Which colour?": ["Blue"], "Which sizes?": ["L", "M"]}
    assert decided(raw, Answer("choose", answers=given)) == {
        "behavior": "allow",
        "updatedInput": {
            "questions": [COLOR, SIZES],
            "answers": {"Which colour?": "Blue", "Which sizes?": "M, L"},
        },
    }
    typed = decided(raw, Answer("choose", answers={"Which colour?": 'a "horn", please'}))
    assert typed["updatedInput"]["answers"] == {"Which colour?": 'a "horn", please'}


def test_a_question_with_hidden_characters_is_answered_by_its_own_text() -> None:
    """The shown text has marks; the sent text has not."""
    odd = {
        "question": "a\u202eb?",
        "options": [{"label": "x "}, {"label": "y\0"}],
        "multiSelect": True,
    }
    raw = payload("AskUserQuestion", {"questions": [odd]})
    (shown,) = asked(raw).questions
    assert (shown.text, [o.label for o in shown.options]) == ("a<U+202E>b?", ["x·", "y<U+0000>"])
    said = decided(raw, Answer("choose", answers={"a<U+202E>b?": ["y<U+0000>", "x·"]}))
    assert said["updatedInput"]["answers"] == {"a\u202eb?": "x , y\0"}


@pytest.mark.parametrize(
    "questions",
    [
        [COLOR, COLOR],
        [{**COLOR, "options": [{"label": "Red"}, {"label": "Red", "description": "other"}]}],
        [{**COLOR, "options": [{"label": "x "}, {"label": "x·"}]}],
        [{**COLOR, "question": "a\0"}, {**COLOR, "question": "a<U+0000>"}],
    ],
)
def test_options_that_look_the_same_are_not_answered_here(questions: list[object]) -> None:
    """Answers go by text: a choice between equal texts would be no choice."""
    raw = payload("AskUserQuestion", {"questions": questions})
    assert ids(asked(raw)) == ["deny", "stop"]
    assert not are_distinct(asked(raw).questions)
    said = Answer("choose", answers={asked(raw).questions[0].text: "Red"})
    assert CLAUDE.reply(raw, said) == b""


def test_questions_of_an_unknown_kind_are_shown_and_refused() -> None:
    for odd in ({}, {"questions": []}, {"questions": [{"ask": 1}]}, {"questions": "?"}):
        request = asked(payload("AskUserQuestion", odd))
        assert (ids(request), len(request.parts)) == (["deny", "stop"], 1)


def test_what_questions_do_not_show_is_shown_below_them() -> None:
    """A preview of an option is one; the answer is sent with all of it."""
    options = [{"label": "Red", "preview": "a red page"}, {"label": "Blue"}]
    for odd in ({**COLOR, "options": options}, {**COLOR, "why": "a red page"}):
        raw = payload("AskUserQuestion", {"questions": [odd, SIZES]})
        (part,) = asked(raw).parts
        assert (part.kind, "a red page" in part.text) == ("json", True)
        said = decided(raw, Answer("choose", answers={"Which colour?": ["Red"]}))
        assert said["updatedInput"]["questions"] == [odd, SIZES]
    assert asked(payload("AskUserQuestion", {"questions": [COLOR, SIZES]})).parts == ()


def test_a_form() -> None:
    raw = form()
    request = asked(raw)
    assert (request.kind, request.tool, ids(request)) == ("form", "db", ["fill", "decline"])
    assert [part.text for part in request.parts] == ["Who?"]
    assert request.fields == (
        Field("name", "Your name", required=True),
        Field("age", "Age", "In years", "integer"),
        Field("sure", type="boolean", default=True),
        Field("size", options=(Option("s", "Small"), Option("m", "Medium"))),
    )
    content = {"name": "Ada", "age": 36, "sure": False, "size": "m"}
    said = printed(raw, Answer("fill", content=content))
    assert said == {"hookEventName": "Elicitation", "action": "accept", "content": content}
    assert printed(raw, Answer("decline"))["action"] == "decline"


@pytest.mark.parametrize(
    "raw",
    [
        form({"properties": {"x": {"type": "object"}}}),
        form({"properties": {"x": 3}}),
        form({"properties": {"x": {"type": "string", "oneOf": [{"const": "a"}]}}}),
        form({"properties": {"x\0": {"type": "string"}}}),
        form({"properties": {"x": {"type": "string", "default": "a\u202eb"}}}),
        form({"properties": {"x": {"type": "string", "default": ["a"]}}}),
        form({}),
        form({"properties": {}, "required": "x"}),
        form(url="https://a.org/login"),
    ],
)
def test_a_form_of_an_unknown_kind_can_be_declined(raw: bytes) -> None:
    """The form is shown in full."""
    assert ids(asked(raw)) == ["decline"]
    assert [part.kind for part in asked(raw).parts] == ["text", "json"]


# ---------------------------------------------------------------- what is refused

REQUESTS = {
    "bash": asked(payload("Bash", {"command": "make"})),
    "asks": asked(payload("AskUserQuestion", {"questions": [COLOR, SIZES]})),
    "form": asked(form()),
}

#: What is asked, the answer, and why it is refused.  LONG is a text longer than an answer may be.
REFUSED = r"""
bash {"choice": "approve"}   | “approve” is not one of its choices: allow, edit, deny, stop
bash {"choice": "\u001b[2J"} | “??2J” is not one of its choices: allow, edit, deny, stop
bash {"choice": "allow", "message": "but"}  | “allow” takes no message
bash {"choice": "deny", "input": "ls"}      | “deny” takes no input
bash {"choice": "deny", "message": "LONG"}  | the message is longer than 64 kB
bash {"choice": "deny", "message": "LÖNG"}  | the message is longer than 64 kB
bash {"choice": "deny", "message": "a\u0000b"} | the message has the control character U+0000
bash {"choice": "deny", "message": "a\rb"}  | the message has the control character U+000D
bash {"choice": "deny", "message": "\ud800"} | the message has the control character U+D800
bash {"choice": "edit"}                     | “edit” needs a command
bash {"choice": "edit", "input": " "}       | “edit” needs a command
bash {"choice": "edit", "input": "a\u001b"} | the command has the control character U+001B
bash {"choice": "edit", "input": "LONG"}    | the command is longer than 64 kB
asks {}                                     | no question is answered
asks {"Which?": ["Red"]}                    | it does not ask that question
asks {"Which colour?": []}                  | an answer is empty
asks {"Which colour?": " "}                 | an answer is empty
asks {"Which colour?": "\u0000"}            | the answer has the control character U+0000
asks {"Which colour?": ["red"]}             | it does not offer that option
asks {"Which colour?": ["Red", "Blue"]}     | only one option can be chosen
asks {"Which sizes?": ["L", "L"]}           | an option is chosen twice
asks {"Which sizes?": ["S", "M"]}           | TWO WAYS; type the answer instead
form {}                                     | the form needs “Your name”
form {"name": ""}                           | the form needs “Your name”
form {"name": 3}                            | “Your name” must be a text
form {"name": "a\u0000"}                    | “Your name” has the control character U+0000
form {"name": "a", "x\n": 1}                | the form has no field “x?”
form {"name": "a", "age": "3"}              | “Age” must be a number
form {"name": "a", "age": true}             | “Age” must be a number
form {"name": "a", "age": Infinity}         | “Age” must be a number
form {"name": "a", "age": 3.5}              | “Age” must be a whole number
form {"name": "a", "sure": 1}               | “sure” must be yes or no
form {"name": "a", "size": "xl"}            | “size” is not one of its options
form {"name": "a", "size": ["s"]}           | “size” is not one of its options
"""


@pytest.mark.parametrize("row", REFUSED.strip().splitlines())
def test_an_answer_that_does_not_fit_is_refused_with_a_reason(row: str) -> None:
    told, _, why = row.partition("|")
    kind, _, told = told.partition(" ")
    told = told.replace("LONG", "x" * (LONGEST_ANSWER + 1))
    told = told.replace("LÖNG", "é" * (LONGEST_ANSWER // 2 + 1))
    given = json.loads(told)
    known = {
        "asks": {"choice": "choose", "answers": given},
        "form": {"choice": "fill", "content": given},
    }
    why = why.strip().replace("TWO WAYS", "the names of these options can be read in two ways")
    assert check(REQUESTS[kind], Answer(**known.get(kind, given))) == why


def test_a_command_with_hidden_characters_is_not_edited() -> None:
    """Their marks would become a part of the command."""
    assert ids(asked(payload("Bash", {"command": "ls\u200b"}))) == ["allow", "deny", "stop"]


def test_an_answer_is_decoded_strictly() -> None:
    """An editor cannot tell an empty list from an empty object."""
    empty: dict[str, Any] = {
        "choice": "allow",
        "answers": [],
        "content": [],
        "input": None,
        "by": 1,
    }
    assert answer_of(empty) == Answer("allow")
    full = {"choice": "choose", "answers": {"a": ["b"], "c": "d"}}
    assert answer_of(full) == Answer("choose", answers={"a": ["b"], "c": "d"})
    for wrong in (
        {},
        {"choice": 3},
        {"choice": "a", "message": 3},
        {"choice": "a", "answers": [1]},
    ):
        assert answer_of(wrong) is None
    assert answer_of({"choice": "a", "answers": {"a": {"b": 1}}}) is None


@pytest.mark.parametrize("half", ["\ud83d", "a\udcff"])
def test_half_a_character_is_of_no_type(half: str) -> None:
    """Half a character may come where another type is expected, and as a name."""
    for wrong in ({"content": half}, {"answers": half}, {half: 1, "answers": {"a": 1}}):
        assert answer_of({"choice": "fill", **wrong}) is None
    assert understood("preview", {"rows": half}) is None
    assert settings_in({"url": "nats://a", "team": half, "machine": [half]}) is None
    request = asked(payload("AskUserQuestion", {"questions": [{**COLOR, "options": [half]}]}))
    assert (request.complete, request.choices, request.questions) == (False, (), ())
    assert "Which colour?" in request.parts[0].text
