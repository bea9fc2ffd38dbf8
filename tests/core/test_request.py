"""Requests in full, and what hostile text does to them."""

# ruff: noqa: RUF001
# Letters that look like others are what is tested.

from __future__ import annotations

import json
import time
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellboard.core.events import Origin
from bellboard.core.lookalikes import _TABLE
from bellboard.core.request import Answer, Choice, Option, Question, Request, check
from bellboard.core.text import marked, visible, warnings
from rig.host.asking import CLAUDE, COLOR, FROM, PLAN, SIZES, allows, asked, ids, payload
from rig.host.strategies import json_values


def test_a_request_says_who_asks_and_everything_that_the_tool_would_get() -> None:
    """Input without a part of its own is in the last part, a switch as well."""
    told = {"command": "make\nls", "description": "Build", "dangerouslyDisableSandbox": True}
    request = asked(payload("Bash", told, agent_id="a1", agent_type="Explore"))
    about = (request.id, request.session_id, request.agent, request.pid, request.asked_at)
    assert about == ("the-file", "s", "claude", 11, 5.0)
    assert (request.thread, request.thread_type) == ("a1", "Explore")
    assert (request.kind, request.tool, request.complete) == ("permission", "Bash", True)
    assert [(part.kind, part.text) for part in request.parts] == [
        ("command", "make\nls"),
        ("text", "Build"),
        ("json", '{\n  "dangerouslyDisableSandbox": true\n}'),
    ]


@pytest.mark.parametrize(
    ("tool", "given", "kinds"),
    [
        ("Edit", {"file_path": "/a", "old_string": "x", "new_string": "y"}, ["diff"]),
        ("Edit", {"file_path": "/a", "old_string": "x", "new_string": 3}, ["diff", "json"]),
        (
            "MultiEdit",
            {"file_path": "/a", "edits": [{"old_string": "x", "new_string": "y"}] * 2},
            ["diff", "diff"],
        ),
        ("MultiEdit", {"file_path": "/a", "edits": "?"}, ["file", "json"]),
        ("Write", {"file_path": "/a", "content": "x\n"}, ["file"]),
        (
            "NotebookEdit",
            {"notebook_path": "/a", "new_source": "x", "cell_id": "1"},
            ["file", "json"],
        ),
        ("WebFetch", {"url": "https://a.org", "prompt": "Sum up"}, ["url", "text"]),
        ("Read", {"file_path": "/a"}, ["file"]),
        ("mcp__db__ask", {"table": "users"}, ["json"]),
        ("mcp__db__ask", {}, []),
        ("ExitPlanMode", PLAN, ["plan"]),
        ("ExitPlanMode", {}, ["plan"]),
        ("ExitPlanMode", {**PLAN, "allowedPrompts": [1]}, ["plan", "json"]),
    ],
)
def test_each_tool_is_shown_in_parts(tool: str, given: object, kinds: list[str]) -> None:
    assert [part.kind for part in asked(payload(tool, given)).parts] == kinds


@pytest.mark.parametrize(
    ("everywhere", "label", "left"),
    [
        (False, "", ()),
        (True, "Everywhere in the file", ()),
        (1, "", ("replace_all",)),
        ("yes", "", ("replace_all",)),
    ],
)
def test_an_edit_says_in_words_where_it_replaces(
    everywhere: object, label: str, left: tuple[str]
) -> None:
    """A value that is no boolean is shown as it came."""
    change = {"old_string": "x", "new_string": "y", "replace_all": everywhere}
    for tool, told in (("Edit", change), ("MultiEdit", {"edits": [change]})):
        first, *rest = asked(payload(tool, {"file_path": "/a", **told})).parts
        assert (first.kind, first.label) == ("diff", label)
        assert len(left) == len(rest)
        assert all(name in part.text for name in left for part in rest)


@pytest.mark.parametrize("given", [{}, {"plan": " "}])
def test_a_plan_that_was_not_written_is_not_approved_unknowingly(given: object) -> None:
    assert asked(payload("ExitPlanMode", PLAN)).title == "Approve a plan"
    assert asked(payload("ExitPlanMode", given)).title == "Leave plan mode, without a plan"


members = st.sampled_from(["command", "url", "plan", "edits", "questions", "file_path", "x"])


@given(st.dictionaries(members, json_values | st.text(max_size=5)))
def test_nothing_of_an_input_is_left_out(given: dict[str, Any]) -> None:
    """Each member is a text of some part, or is named in the last one."""
    for tool in ("Bash", "Edit", "MultiEdit", "WebFetch", "ExitPlanMode", "AskUserQuestion", "New"):
        request = CLAUDE.request(payload(tool, given), "n", 1.0, FROM)
        if request is not None and request.complete:
            texts = [getattr(p, at) for p in request.parts for at in ("text", "path", "old", "new")]
            named = [p.text for p in request.parts if p.kind == "json"]
            left = {name for name, value in given.items() if f'"{name}": ' not in "".join(named)}
            assert {name for name in left if marked(str(given[name])) not in texts} == set()


@pytest.mark.parametrize(
    ("text", "shown", "hidden"),
    [
        ("ls -l\n\tcd", "ls -l\n\tcd", ()),
        ("ls  \nx\t", "ls··\nx⇥", ("blanks at the end of a line",)),
        ("\x1b[2Kls", "<U+001B>[2Kls", ("escape sequences",)),
        ("a\0b\rc\x85", "a<U+0000>b<U+000D>c<U+0085>", ("control characters",)),
        ("a\u202eb", "a<U+202E>b", ("characters that change the writing direction",)),
        ("a\u200bb\ufeff\ud800", "a<U+200B>b<U+FEFF><U+D800>", ("invisible characters",)),
        ("a\u2028b", "a<U+2028>b", ("line breaks of another kind",)),
        ("rm\xa0x\u3000", "rm<U+00A0>x<U+3000>", ("blanks of another kind",)),
        ("rm\ufe0f", "rm<U+FE0F>", ("invisible characters",)),
        ("1\ufe0f\u20e3 \u2764\ufe0f", "1\ufe0f\u20e3 \u2764\ufe0f", ()),
        ("p\u0430y", "p<U+0430>y", ("letters that look like Latin ones",)),
        ("\u0420y \u039fx", "<U+0420>y <U+039F>x", ("letters that look like Latin ones",)),
        *(
            (text, shown, ("letters that look like Latin ones",))
            for text, shown in {
                "curl https://\u0430\u0440\u0440\u04cf\u0435.com # это": (
                    "curl https://<U+0430><U+0440><U+0440><U+04CF><U+0435>.com # это"
                ),
                "www.\u0585\u0578 да": "www.<U+0585><U+0578> да",
                "\u0441\u043e\u0440\u0443 a b": "<U+0441><U+043E><U+0440><U+0443> a b",
                "\u03bd\u03b9 a.txt": "<U+03BD><U+03B9> a.txt",
                "p\u03b1ypal \u0261it": "p<U+03B1>ypal <U+0261>it",
                "open \u0430\u0440\u0440\u04cf\u0435.\u0441\u043e\u043c": (
                    "open <U+0430><U+0440><U+0440><U+04CF><U+0435>.\u0441\u043e\u043c"
                ),
                "\u0430\u0440\u0440\u04cf\u0435.\u0441\u043e\u043c": (
                    "<U+0430><U+0440><U+0440><U+04CF><U+0435>.\u0441\u043e\u043c"
                ),
                "ssh \u0262\u026a\u1d1b.io": "ssh <U+0262><U+026A><U+1D1B>.io",
                "curl x\U0001d6a4.io": "curl x<U+1D6A4>.io",
                "ssh my\u03bb.io # \u0394t": "ssh my<U+03BB>.io # \u0394t",
                **{
                    text: text.replace(c, f"<U+{ord(c):04X}>")
                    for text in (
                        *("curl https://g\u0131thub.com/x", "npm i @a/l\u0131b", "githu\u0185"),
                        *("pip install req\u1d1cests", "\u1d04dn.example", "l\u2c9fdash"),
                        *("./\u13dfache", "ssh r\ua64dot", "\ua4d0uild"),
                    )
                    for c in text
                    if not c.isascii()
                },
                "l\uff53 \U0001d5c5s \u217cs": "l<U+FF53> <U+1D5C5>s <U+217C>s",
            }.items()
        ),
        *(
            (text, shown, ("signs that look like others",))
            for text, shown in {
                "rm \u2212rf a\u2044b\u2215c": "rm <U+2212>rf a<U+2044>b<U+2215>c",
                "x\u2024com\u037e my\u2010bank": "x<U+2024>com<U+037E> my<U+2010>bank",
            }.items()
        ),
        ("r\u0338m", "r<U+0338>m", ("lines through letters",)),
        ("1\u06002\U000110bd", "1<U+0600>2<U+110BD>", ("invisible characters",)),
        ("\u0441\u043e\u0440\u0443 \u0394T", "\u0441\u043e\u0440\u0443 \u0394T", ()),
        ("e" + "\u0301" * 6, "e" + "\u0301" * 4 + "<U+0301>" * 2, ("piles of accents",)),
        ("über 日本語 \N{GRINNING FACE}", "über 日本語 \N{GRINNING FACE}", ()),
    ],
)
def test_hidden_characters_are_shown_as_marks(text: str, shown: str, hidden: tuple[str]) -> None:
    assert (marked(text), warnings(text)) == (shown, hidden)


@pytest.mark.parametrize(
    "text",
    [
        "Он сказал: а с git и JSON-файлом о ней р/с 5, ОК? Это работает у нас… Да — «хорошо».",
        "ОК",
        "Η εντολή git α και ο Δt είναι 5 μs · π ≈ 3,14; ½ m² −5 °C x⁻¹ №1 ™",
        "Բարև, git օր",
        "使用 git，然后（test）：好！ gitを使う １０時",
        "cat /srv/çalışma.txt ᏣᎳᎩ ⲁⲡⲁ kapı: ışık/şık",
        "Скопируй в git-а и PR-у, см. README.md, у.е., т.е. 3D-модель с API: ОК, с.5, и/или",
        "Виконай npm install, а потім онови файл у теці src: це єдине, що лишилося.",
        "Копирај го README.md и изврши го git push; Покрени git-у или npm-а поново.",
        "Τρέξε npm install και μετά git push στο αρχείο το.txt; Δt ≈ 5 μm, kΩ, 10 µs/op, λx.",
        "Գործարկիր npm install և հետո git push main.py ֆայլում։",
        "Chạy npm install rồi git push; đường dẫn ở ươm/ứng.txt và lưu lại.",
        "GRÖẞE=groß, --größe=5; Straße/Maße.txt; zażółć gęślą jaźń.txt; příliš.md; señor.py",
        "הרץ git-ו ואז npm install; ו-git הוא כלי",
        "شغّل npm install ثم الgit؛ ۵ فایل و git",
        "npm चलाएँ और git ५ बार; รัน npm แล้ว git push ๕; 깃git을 실행, gitを使う第〇回",
        "1=bəli, LED-ləri vəziyyət-çubuğu və git",
        "naïve façade, kadın ışık; well‑known – “quoted” — a … b",
    ],
)
def test_prose_of_any_language_has_no_marks(text: str) -> None:
    assert (marked(text), warnings(text)) == (text, ())


ALPHABETS = {
    "CYRILLIC": range(0x400, 0x530),
    "GREEK": range(0x370, 0x400),
    "ARMENIAN": range(0x531, 0x588),
    "CHEROKEE": range(0x13A0, 0x13F6),
    "LATIN LETTER SMALL CAPITAL": range(0x250, 0xAB6A),
}


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_no_letter_of_another_alphabet_passes_in_the_name_of_a_host(alphabet: str) -> None:
    """A rule finds each that there is, not a list."""
    every = [c for c in map(chr, ALPHABETS[alphabet]) if c.isalpha() and not c.isascii()]
    named = [c for c in every if unicodedata.name(c, "").startswith(f"{alphabet} ")]
    letters = [c for c in named if unicodedata.category(c) != "Lm"]
    assert len(letters) > 40
    for host in ("https://git{}ub.com/x", "{}ithub.com", "git@githu{}.com:a/b", "pypi.org/p{}p"):
        assert [] == [c for c in letters if f"<U+{ord(c):04X}>" not in marked(host.format(c))]


def test_no_letter_that_unicode_says_looks_like_one_of_ascii_passes_there() -> None:
    """The i without a dot has a rule of its own."""
    assert [] == [c for c in _TABLE if f"<U+{ord(c):04X}>" not in marked(f"http://git{c}ub.com")]


@given(st.text())
def test_a_marked_text_hides_nothing(text: str) -> None:
    """No character is invisible or left out, and a second marking changes nothing."""
    shown = marked(text)
    assert visible(shown.replace("\t", "")) == shown.replace("\t", "")
    assert marked(shown) == shown
    assert bool(warnings(text)) == (shown != text)
    assert len(shown) >= len(text)


@pytest.mark.parametrize(
    ("old", "new", "hidden"),
    [
        ("#\n", "#", ("a line break removed at the end",)),
        ("x", "y\n", ("a line break added at the end",)),
        ("x\n", "y\n", ()),
        ("x\n", "", ()),
        ("", "x\n", ()),
    ],
)
def test_a_change_that_joins_lines_says_so(old: str, new: str, hidden: tuple[str]) -> None:
    """The next line of the file may become part of a comment; a diff does not show that."""
    change = {"old_string": old, "new_string": new}
    for tool, told in (("Edit", change), ("MultiEdit", {"edits": [change]})):
        (part,) = asked(payload(tool, {"file_path": "/a", **told})).parts
        assert part.warnings == hidden


def test_a_digest_is_of_everything_that_binds_an_answer() -> None:
    """The order of members does not count."""
    told = {"command": "make", "timeout": 5}
    same = {"timeout": 5, "command": "make"}
    raw = payload("Bash", told)
    assert asked(raw).digest == asked(payload("Bash", same)).digest
    changed = [
        asked(payload("Bash", {**told, "command": "make "})),
        asked(payload("Bash", {**told, "timeout": 6})),
        asked(payload("Other", told)),
        asked(payload("Bash", told, session_id="t")),
        asked(payload("Bash", told, agent_id="a1")),
        asked(payload("Bash", told, permission_suggestions=[])),
        asked(raw, Origin(pid=12)),
        asked(raw, Origin(agent="codex", pid=11)),
        asked(raw, truncated=True),
        asked(raw, name="asked-again"),
    ]
    digests = {asked(raw).digest, *(request.digest for request in changed)}
    assert len(digests) == len(changed) + 1
    assert {len(digest) for digest in digests} == {16}


@pytest.mark.parametrize(
    "raw",
    [
        payload("Bash", {"command": "x\ud800"}).replace(b"\\\\", b"\\"),
        payload("Bash", {"command": "x"}).replace(b'"x"', b"NaN"),
        payload("Bash", ["ls"]),
        payload("Bash", {"command": "x"}, tool_name=["Bash"]),
        payload("Bash", {"command": "x"})[:-1] + b",",
        payload("Bash", {"command": "\xff"}).replace(b"\\u00ff", b"\xff"),
    ],
)
def test_what_cannot_be_decoded_exactly_can_only_be_answered_in_its_terminal(raw: bytes) -> None:
    request = CLAUDE.request(raw, "n", 1.0, FROM)
    if request is not None:
        assert (request.complete, request.choices) == (False, ())
        for choice in ("allow", "deny", "stop", "edit"):
            assert check(request, Answer(choice)) == request.why != ""
            assert CLAUDE.reply(raw, Answer(choice)) == b""


def test_a_payload_that_was_cut_shows_what_is_left_of_it() -> None:
    """A limit of the spool must not make a part of a command look like all of it."""
    request = asked(payload("Bash", {"command": "ls"}) + b"x" * 10, truncated=True)
    assert (request.complete, request.choices) == (False, ())
    assert [part.text for part in request.parts] == ["ls"]
    assert "too large to keep in full" in check(request, Answer("allow"))


def test_a_payload_that_was_cut_where_it_seems_whole_is_not() -> None:
    """The rest may be anything, and a reply is to the whole question."""
    for truncated in (False, True):
        request = asked(payload("Bash", {"command": "ls"}) + b" " * 9, truncated=truncated)
        assert (request.complete, bool(request.choices)) == (not truncated, not truncated)


@pytest.mark.parametrize("name", ["Stop", "PostToolUse", "PreToolUse", "Notification", "", "x"])
def test_other_events_ask_nothing(name: str) -> None:
    raw = payload("Bash", {"command": "ls"}, hook_event_name=name)
    assert CLAUDE.request(raw, "n", 1.0, FROM) is None
    assert CLAUDE.reply(raw, Answer("allow")) == b""


def test_a_hook_that_runs_before_a_question_shows_it_and_cannot_answer_it() -> None:
    """Output of such a hook would mean something else."""
    raw = payload("AskUserQuestion", {"questions": [COLOR]}, hook_event_name="PreToolUse")
    assert ids(asked(raw)) == ["choose", "deny", "stop"]
    assert CLAUDE.reply(raw, Answer("choose", answers={"Which colour?": ["Red"]})) == b""


# ---------------------------------------------------------------- attacks

choices = st.sampled_from(
    ["allow", "always", "deny", "stop", "edit", "choose", "approve", "keep", "fill", "decline", ""]
)
answers = st.builds(
    Answer,
    choices,
    st.text(max_size=9),
    st.dictionaries(
        st.text(max_size=3), st.text(max_size=3) | st.lists(st.text(max_size=3)), max_size=2
    ),
    st.dictionaries(st.text(max_size=3), json_values, max_size=2),
    st.none() | st.text(max_size=9),
)
tools = st.sampled_from(
    ["Bash", "Edit", "MultiEdit", "AskUserQuestion", "ExitPlanMode", "WebFetch", "x"]
)
inputs = json_values | st.dictionaries(
    st.sampled_from(["command", "questions", "edits", "plan", "url", "file_path"]), json_values
)
fields = st.dictionaries(
    st.sampled_from(["agent_id", "permission_suggestions", "message", "requested_schema", "url"]),
    json_values,
)


@given(tools, inputs, fields, st.sampled_from(["PermissionRequest", "Elicitation"]), answers)
def test_no_input_breaks_it_and_what_is_refused_is_never_written(
    tool: str, told: Any, more: dict[str, Any], name: str, answer: Answer
) -> None:
    raw = payload(tool, told, **more, hook_event_name=name)
    request = CLAUDE.request(raw, "n", 1.0, FROM)
    said = CLAUDE.reply(raw, answer)
    if request is None or check(request, answer):
        assert said == b""
    else:
        assert json.loads(said)["hookSpecificOutput"]["hookEventName"] == name


@given(st.binary(max_size=300), st.booleans(), answers)
def test_no_bytes_break_it(raw: bytes, truncated: bool, answer: Answer) -> None:
    CLAUDE.request(raw, "n", 1.0, FROM, truncated)
    assert CLAUDE.reply(raw, answer) == b""


@given(
    st.lists(st.sampled_from(["a", "b", "a, b", "b, a", "c,", " "]), min_size=1, unique=True),
    st.data(),
)
def test_labels_that_are_sent_can_be_read_in_one_way(
    labels: list[str], data: st.DataObject
) -> None:
    """No other choice of options gives the same text."""
    question = Question("?", many=True, options=tuple(map(Option, labels)))
    request = Request(
        "",
        "",
        "",
        "question",
        "",
        questions=(question,),
        choices=(Choice("choose", "", "answers"),),
    )
    some = data.draw(st.lists(st.sampled_from(labels), min_size=1, unique=True))
    in_order = [label for label in labels if label in some]
    others = [
        [x for n, x in enumerate(labels) if number >> n & 1]
        for number in range(1, 1 << len(labels))
    ]
    same = [other for other in others if ", ".join(other) == ", ".join(in_order)]
    if not check(request, Answer("choose", answers={"?": some})):
        assert same == [in_order]


def nested(value: bytes) -> bytes:
    return payload("Bash", {"command": "x"}).replace(b'"x"', value)


def suggesting(*rules: str) -> bytes:
    made = [allows({"toolName": "Bash", "ruleContent": rule})[0] for rule in rules]
    return payload("Bash", {"command": "x"}, permission_suggestions=made)


def questions(*made: object) -> bytes:
    return payload("AskUserQuestion", {"questions": [*made]})


@pytest.mark.parametrize(
    "make",
    [
        lambda: payload("Bash", {"command": "x" * 2_000_000}),
        lambda: payload("Bash", {"command": " " * 300_000 + "x"}),
        lambda: payload("Bash", {"command": "e" + "\u0301" * 20_000}),
        lambda: payload("Write", {"content": "\u202e \n" * 50_000}),
        lambda: payload("mcp__a__b", {f"k{n}": n for n in range(20_000)}),
        lambda: questions(*({**SIZES, "question": str(n)} for n in range(500))),
        lambda: questions({**SIZES, "options": [{"label": f"{n}, "} for n in range(3000)]}),
        lambda: questions({**SIZES, "options": [{"label": "a" * n} for n in range(1, 300)]}),
        lambda: suggesting(*(["a"] * 30_000)),
        lambda: suggesting("e" + "\u0301" * 300_000, "*" * 300_000, "x " * 300_000),
        lambda: nested(b"[" * 100_000 + b"]" * 100_000),
        lambda: nested(b'{"a":' * 900 + b"1" + b"}" * 900),
        lambda: nested(b"9" * 100_000),
    ],
)
def test_large_requests_take_no_time(make: Callable[[], bytes]) -> None:
    """Quadratic work on one of these would take minutes."""
    raw, start = make(), time.process_time()
    request = CLAUDE.request(raw, "n", 1.0, FROM)
    if request is not None:
        labels = {q.text: [o.label for o in q.options] for q in request.questions}
        check(request, Answer("choose", answers={**labels}))
    assert time.process_time() - start < 10
