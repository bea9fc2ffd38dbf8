"""Our hooks in the text of a settings file: adding them to any content, and removing them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bellboard.agents.claude.installer import TIMEOUTS, handlers
from bellboard.agents.claude.versions import events_of
from bellboard.agents.installing import hookline
from bellboard.agents.installing.settings_file import (
    Before,
    HookHandler,
    JsonText,
    Malformed,
    NotJson,
    OurHook,
    Ours,
    SharedFile,
    _entries,
    without,
    without_comments,
)
from examples import examples
from settings_files import EVENTS, GROUPS, ODD, texts

pytestmark = pytest.mark.pure

HOME = "/home/me"
SCRIPT = "/home/me/.local/state/bellboard/emit"
NEWEST = (2, 1, 328)
SOME = examples(60)


def wanted(
    version: tuple[int, ...] | None = NEWEST, script: str = SCRIPT
) -> dict[str, HookHandler]:
    """Return our handlers for a version."""
    return handlers(events_of(version), lambda event: hookline.hook_line(script, event, HOME))


def ours(command: str) -> bool:
    """Return whether a command is ours, by the script that it runs."""
    return hookline.script_of(command, HOME) in (SCRIPT, "/old/hooks/emit")


def put_in(
    text: str | None,
    handlers: dict[str, HookHandler],
    ours: Ours,
    before: Before,
    comments: bool = False,
) -> tuple[str, Before]:
    return SharedFile(handlers, ours, comments).put_in(text, before)


def take_out(text: str, ours: Ours, before: Before | None, comments: bool = False) -> str | None:
    return SharedFile({}, ours, comments).take_out(text, before)


def ours_in(text: str, ours: Ours, comments: bool = False) -> list[OurHook]:
    return _entries(JsonText(text, comments), ours)


def notes(text: str) -> list[str]:
    """Return the comments in a text."""
    return [text[start:end] for start, end in without_comments(text)[1]]


def loaded(text: str | None) -> Any:
    """Return the settings in a text."""
    return json.loads((text or "{}").removeprefix("\ufeff").strip() or "{}")


def told(text: str) -> dict[str, HookHandler]:
    """Return our entries, by event."""
    return {entry.event: entry.handler.value for entry in ours_in(text, ours) if entry.whole}


#: A text, what a version that edited texts in another way made of it, and what it noted.
EARLIER: list[tuple[str, str, Before]] = [
    (
        '{\n\t"a": 1, // one\n\t"hooks": { "Stop": [ ] } // two\n}\n',
        '{\n\t"a": 1, // one\n\t"hooks": { "Stop": [\n\t\t{\n\t\t\t"hooks": [\n\t\t\t\t{\n'
        '\t\t\t\t\t"type": "command",\n\t\t\t\t\t"command": "/old/hooks/emit Stop \\"$PPID\\""\n'
        '\t\t\t\t}\n\t\t\t]\n\t\t}\n\t], "SessionEnd": [{"hooks": [{"type": "command", "command": '
        '"/old/hooks/emit SessionEnd \\"$PPID\\""}]}] } // two\n}\n',
        {"hooks.Stop": " ", "hooks.SessionEnd": None},
    ),
    (
        '{"hooks":{ }}',
        '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":'
        '"/old/hooks/emit Stop \\"$PPID\\""}]}]}}',
        {"hooks": " ", "hooks.Stop": None},
    ),
]


@pytest.mark.parametrize(("text", "new", "before"), EARLIER)
def test_what_an_earlier_version_wrote_is_removed(text: str, new: str, before: Before) -> None:
    """To the byte, also after an upgrade in place."""
    assert take_out(new, ours, before, comments=True) == text
    newer, before = put_in(new, wanted(), ours, before, comments=True)
    assert told(without_comments(newer)[0]) == wanted()
    assert take_out(newer, ours, before, comments=True) == text


BLANK = st.sampled_from(
    ["", " ", "\n", "\r\n", "\ufeff", "\ufeff\n", "{}", "{ }", "{\n}\n", "{\t}"]
)


@given(st.one_of(st.none(), BLANK, texts()))
@example('{"hooks": { }}')
@example('{"a": 1, "hooks": {\r\n}}')
@example('{"hooks": {"Stop": [ ], "Setup": [{"hooks": [\r\n]}]}}')
def test_adding_and_removing_gives_the_same_bytes(text: str | None) -> None:
    """In between, every event is registered once, and nothing else is changed."""
    new, before = put_in(text, wanted(), ours, {})
    assert told(new) == wanted()
    assert without(loaded(new), ours) == without(loaded(text), ours)
    assert put_in(new, wanted(), ours, before) == (new, before)
    assert take_out(new, ours, before) == text


@SOME
@given(texts())
def test_another_program_may_reformat_it_meanwhile(text: str) -> None:
    """The bytes differ, but the settings are the same."""
    new, before = put_in(text, wanted(), ours, {})
    again = json.dumps(loaded(new), indent=2) + "\n"
    assert loaded(take_out(again, ours, before)) == loaded(text)


@SOME
@given(texts(), texts(st.fixed_dictionaries({"a": GROUPS})), st.sampled_from(sorted(wanted())))
def test_what_is_added_beside_ours_stays(text: str, other: str, event: str) -> None:
    """Another tool adds its entry before or after ours; removing ours keeps it."""
    new, before = put_in(text, wanted(), ours, {})
    settings, group = loaded(new), loaded(other)["a"]
    settings["hooks"][event].insert(0, group)
    settings["hooks"][event].append(group)
    left = loaded(take_out(json.dumps(settings), ours, before))
    assert left["hooks"][event] == [group, *loaded(text).get("hooks", {}).get(event, []), group]


@SOME
@given(texts(), st.sampled_from([None, (2, 1, 76), (2, 1, 119), NEWEST]))
def test_upgrading_changes_only_our_lines(text: str, version: tuple[int, ...] | None) -> None:
    """In place; events that an older CLI does not know are removed again."""
    old, before = put_in(text, wanted((2, 1, 119), "/old/hooks/emit"), ours, {})
    new, before = put_in(old, wanted(version), ours, before)
    assert told(new) == wanted(version)
    assert len(list(ours_in(new, ours))) == len(wanted(version))
    assert take_out(new, ours, before) == text


@SOME
@given(texts())
def test_it_can_be_removed_without_a_record(text: str) -> None:
    """Empty lists that were there before are then removed, too."""
    new, _ = put_in(text, wanted(), ours, {})
    left = take_out(new, ours, None)
    assert left is not None
    assert without(loaded(left), ours) == without(loaded(text), ours)
    assert not list(ours_in(left, ours))


@SOME
@given(st.sampled_from([(2, 1, 76), (2, 1, 119), NEWEST]), st.booleans())
def test_hooks_that_came_without_a_record_leave_nothing(
    version: tuple[int, ...], is_shared: bool
) -> None:
    """From another machine, with another version: nothing says that there were empty lists."""
    theirs = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}
    text = json.dumps({"model": "opus", **(theirs if is_shared else {})})
    there, _ = put_in(text, wanted((2, 1, 119)), ours, {})
    here, before = put_in(there, wanted(version), ours, {})
    assert told(here) == wanted(version)
    assert take_out(here, ours, before) == text


@SOME
@given(texts(st.fixed_dictionaries({"hooks": ODD | st.dictionaries(st.sampled_from(EVENTS), ODD)})))
@example('{"hooks": []}')
@example('{"hooks": {"Stop": "x"}}')
@example('{"hooks": {"Stop": [1]}}')
@example('{"hooks": {"Stop": [{"hooks": {}}]}}')
def test_odd_types_are_refused_by_name_or_do_no_harm(text: str) -> None:
    """With anything in place of the hooks."""
    try:
        new, before = put_in(text, wanted(), ours, {})
    except Malformed as e:
        assert str(e).startswith("hooks")
        assert take_out(text, ours, None) == text
    else:
        assert take_out(new, ours, before) == text


@SOME
@given(texts(), st.data())
def test_a_typing_error_is_refused_with_its_line(text: str, data: st.DataObject) -> None:
    """Or tolerated, if other JSON parsers accept the text and read the same."""
    at = data.draw(st.integers(0, len(text)))
    what = data.draw(
        st.sampled_from(["//", "/*a*/", ",", "NaN", "'", '"', "}", "{", "[", "\t", ""])
    )
    broken = text[:at] + what + text[at + (not what) :]
    try:
        new, before = put_in(broken, wanted(), ours, {})
    except NotJson as e:
        assert str(e).startswith("line ")
    except Malformed:
        pass
    else:
        assert loaded(broken) is not None
        assert take_out(new, ours, before) == broken


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ('{\n  // mine\n  "a": 1\n}', 2, "JSON does not allow comments"),
        ('{"a": 1 /* why */}', 1, "JSON does not allow comments"),
        ('{\r\n"a": 1,\r\n}', 2, "trailing comma"),
        ('{"a": [1,\n]}', 1, "trailing comma"),
        ('{"a": NaN}', 1, "NaN is not JSON"),
        ('{"a": -Infinity}', 1, "-Infinity is not JSON"),
        ('{"a": 1,\n"b": 2,\n"a": 3}', 3, 'duplicate key "a"'),
        ('{"a": {"b": 1,\r"\\u0062": 2}}', 2, "duplicate key"),
        ('{"a": 01}', 1, "expecting ',' delimiter, not 1"),
        ("{'a': 1}", 1, "enclosed in double quotes"),
        ('{"a" 1}', 1, "expecting ':' delimiter"),
        ('{"a": 1 "b": 2}', 1, "expecting ',' delimiter"),
        ('{"a": "b\nc"}', 1, "invalid control character"),
        ('{"a": 1', 1, "unexpected end of file"),
        ('{"a": 1}\n{"a": 1}', 2, "unexpected text after the end"),
        ("[" * 300, 1, "unexpected end of file"),
        ("[" * 100_000, 1, "more levels than can be read"),
        ('{"a": {"b": 1, "b": 2}}', 1, 'duplicate key "b"'),
        ("\n[]", None, "the file is a list, expected an object"),
        ('{"hooks": "no"}', None, "hooks is a string, expected an object"),
        ('{"hooks": {"X": null}}', None, "hooks.X is true, false or null, expected a list"),
        ('{"hooks": {"X": [{"hooks": 1}]}}', None, "hooks.X[0].hooks is a number"),
    ],
)
def test_uneditable_text_is_reported_with_its_line(text: str, line: int | None, why: str) -> None:
    """So the user can mend it."""
    with pytest.raises(NotJson if line else Malformed) as refused:
        put_in(text, wanted(), ours, {})
    assert str(refused.value).startswith(f"line {line}: " if line else why[:5])
    assert why in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{\n    "model": "opus"\n}\n',
        '{\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{ "hooks": [] }\n\t\t]\n\t}\n}',
        '{"model":"opus","hooks":{"Stop":[]}}',
    ],
)
def test_it_follows_the_files_formatting(text: str) -> None:
    """A one-line file stays one line; indentation matches."""
    new, _ = put_in(text, wanted(), ours, {})
    in_lines = text == "{}" or "\n" in text
    assert ("\n" in new) == in_lines
    if in_lines:
        unit = "\t" if "\t" in text else "    " if "    " in text else "  "
        assert new == json.dumps(json.loads(new), indent=unit) + new[len(new.rstrip()) :] or (
            "{ " in text
        )
        assert f'\n{unit * 2}"SessionStart": [\n{unit * 3}{{\n{unit * 4}"hooks"' in new


@pytest.mark.parametrize(
    "script",
    [
        "/home/me/x/emit",
        '/home/me/it\'s "mine"/$HOME/`x`\\y/emit',
        '/srv/it\'s "mine"/$HOME/`x`\\y/emit',
        "/srv/two\nlines; exit 1/emit",
        "/srv/é ✓/emit",
    ],
)
def test_a_command_is_recognized_by_its_script(script: str) -> None:
    """However its path is quoted; not by parts of the path."""
    line = hookline.hook_line(script, "Stop", HOME)
    assert hookline.script_of(line, HOME) == script
    assert hookline.script_of(line + " # more", HOME) is None
    assert hookline.script_of(f"echo {line}", HOME) is None
    assert hookline.script_of('"/srv/a b/emit" Stop "$PPID"', HOME) == "/srv/a b/emit"
    assert hookline.script_of("/srv/emit Stop", HOME) is None
    assert hookline.script_of("", HOME) is None


@pytest.mark.parametrize("name", ["Stop", "turn_start", "turn2", "x" * 60])
def test_a_name_that_the_hook_takes_is_recognized(name: str) -> None:
    """The name may be of an event or of an agent."""
    for line in (hookline.hook_line("/x/emit", *(name, HOME, agent)) for agent in ("", name)):
        assert hookline.script_of(line, HOME) == "/x/emit"


@pytest.mark.parametrize("name", ["", "turn-start", "turn.start", "a b", "x; ls", "é", "x" * 61])
def test_a_name_that_the_hook_would_not_take_is_refused_with_what_to_do(name: str) -> None:
    """Before a file is written: the fault is in the table of the agent, not in the user's file."""
    with pytest.raises(ValueError, match=f'event "{re.escape(name)}" of tern: .* another name'):
        hookline.hook_line("/x/emit", name, HOME, "tern")
    if name:
        with pytest.raises(ValueError, match=f'agent "{re.escape(name)}": .* another key'):
            hookline.hook_line("/x/emit", "Stop", HOME, name)


def test_a_restricted_copy_of_ours_is_not_enough() -> None:
    """If a matcher or a duplicate was added, one entry without a matcher remains."""
    line = wanted()["Stop"]["command"]
    handler = {"type": "command", "command": line, "timeout": 9}
    groups = [
        {"matcher": "Bash", "hooks": [handler]},
        {"matcher": "*", "hooks": [handler, handler]},
    ]
    before: Before = {}
    new, before = put_in(json.dumps({"hooks": {"Stop": groups}}), wanted(), ours, before)
    assert loaded(new)["hooks"]["Stop"] == [{"matcher": "*", "hooks": [handler]}]


@SOME
@given(texts(), st.sampled_from([None, 60, "5"]))
def test_the_hook_that_waits_gets_its_time(text: str, timeout: object) -> None:
    """An older version wrote none: in place, and without a trace once it is removed."""
    new, before = put_in(text, wanted(), ours, {})
    event, line = "PermissionRequest", json.dumps(TIMEOUTS["PermissionRequest"])
    [entry] = [e for e in ours_in(new, ours) if e.event == event]
    *_, last, limit = JsonText(new).parts(entry.handler.start)
    assert limit.key == "timeout"
    assert new[limit.start : limit.end] == line
    if timeout is None:
        old = new[: last.end] + new[limit.end :]
    else:
        old = new[: limit.start] + json.dumps(timeout) + new[limit.end :]
    again, before = put_in(old, wanted(), ours, before)
    assert loaded(again) == loaded(new)
    assert take_out(again, ours, before) == text


COMMENTS = st.sampled_from(["// a note", '/* "hooks": {} */', "/* two\n lines */", "//", "/**/"])


@st.composite
def noted(draw: st.DrawFn) -> str:
    """A text with comments wherever JSON allows whitespace."""
    text = draw(texts())
    ends = [0, *(n for n, c in enumerate(text) if c in "{}[],:" and in_no_string(text, n))]
    for at in sorted(draw(st.lists(st.sampled_from(ends), max_size=4)), reverse=True):
        comment = draw(COMMENTS)
        line = "\n" if comment.startswith("//") or draw(st.booleans()) else ""
        head = at + (at > 0 and draw(st.booleans()))
        text = f"{text[:head]} {comment}{line}{text[head:]}" if head else text
    return text


def in_no_string(text: str, at: int) -> bool:
    """Return whether a position is outside all strings."""
    quotes = text[:at].replace("\\\\", "").replace('\\"', "").count('"')
    return quotes % 2 == 0


@SOME
@given(noted())
def test_comments_stay_where_they_are_allowed(text: str) -> None:
    """All comments stay in order, with the settings; removing our hooks gives the same bytes."""
    new, before = put_in(text, wanted(), ours, {}, comments=True)
    assert notes(new) == notes(text)
    assert {e.event for e in ours_in(new, ours, comments=True) if e.whole} == {*wanted()}
    plains = [loaded(without_comments(each)[0]) for each in (new, text)]
    assert without(plains[0], ours) == without(plains[1], ours)
    assert put_in(new, wanted(), ours, before, comments=True) == (new, before)
    assert take_out(new, ours, before, comments=True) == text


def test_hooks_are_added_behind_the_remark_of_a_line() -> None:
    """A remark is about the text before it."""
    new, before = put_in('{\n  "a": 1 // one\n}', {"Stop": {"command": "x"}}, ours, {}, True)
    assert new.startswith('{\n  "a": 1, // one\n  "hooks": {\n    "Stop": [')
    assert before["hooks"] is None


@pytest.mark.parametrize("end", ["", ",", " // mine\n,", ", // mine\n", ' /* "a": 1, */ ,'])
def test_what_another_program_adds_behind_ours_stays(end: str) -> None:
    """Qwen adds its version there at its first start; comments are before it and behind."""
    text = '{\n  "a": 1 // one\n}'
    new, before = put_in(text, wanted(), ours, {}, comments=True)
    added = new.removesuffix("\n}") + (f'{end}\n  "$version": 4\n}}' if end else "\n}")
    left = take_out(added, ours, before, comments=True)
    assert left is not None
    assert notes(left) == notes(added)
    assert loaded(without_comments(left)[0]) == {"a": 1, **({"$version": 4} if end else {})}
    assert end or left == text
