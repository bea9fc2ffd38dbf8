"""Our hooks in the text of a settings file: adding them to any content, and removing them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from bellboard.agents.claude.installer import TIMEOUTS, handlers
from bellboard.agents.claude.versions import events_of
from bellboard.agents.installing.hookline import hook_line, script_of
from bellboard.agents.installing.settings_file import (
    Before,
    HookHandler,
    JsonText,
    Malformed,
    NotJson,
    SharedFile,
    _entries,
    without,
)
from rig.examples import examples
from rig.host.settings_files import (
    ANY,
    EVENTS,
    GROUPS,
    ODD,
    comments_in,
    settings_in,
    texts,
    values,
    with_comments,
)

HOME = "/home/me"
SCRIPT = "/home/me/.local/state/bellboard/emit"
OLD = "/old/hooks/emit"
VERSIONS = [None, (2, 1, 76), (2, 1, 119), (2, 1, 328)]
NEWEST = VERSIONS[-1]


def wanted(
    version: tuple[int, ...] | None = NEWEST, script: str = SCRIPT
) -> dict[str, HookHandler]:
    """Return our handlers for a version of Claude Code."""
    return handlers(events_of(version), lambda event: hook_line(script, event, HOME))


@cache
def is_ours(command: str) -> bool:
    return script_of(command, HOME) in (SCRIPT, OLD)


STRICT = SharedFile(wanted(), is_ours)
TOLERANT = SharedFile(wanted(), is_ours, has_comments=True)


def registered(text: str) -> dict[str, HookHandler]:
    """Return our handlers by event; one for each."""
    entries = _entries(JsonText(text, True), is_ours)
    assert all(entry.whole for entry in entries)
    assert len(entries) == len({entry.event for entry in entries})
    return {entry.event: entry.handler.value for entry in entries}


@given(ANY)
@example('{"hooks": { }}')
@example('{"a": 1, "hooks": {\r\n}}')
@example('{"hooks": {"Stop": [ ], "Setup": [{"hooks": [\r\n]}]}}')
@example(
    '{\n  "hooks": {\n    "Stop": [\n      // a note\n      {"hooks": []} // more\n    ]\n  }\n}'
)
@example('{"url": "https://x/*no comment*/", /* one */ "hooks": {"Stop": [] /* here */}}')
@example("// nothing yet")
def test_hooks_go_into_any_text_and_out_without_a_trace(text: str | None) -> None:
    """In between, each event is registered once, and nothing else is changed."""
    for file in [TOLERANT] if comments_in(text) else [STRICT, TOLERANT]:
        new, before = file.put_in(text, {})
        assert registered(new) == wanted()
        assert comments_in(new) == comments_in(text)
        assert without(settings_in(new), is_ours) == without(settings_in(text), is_ours)
        assert file.put_in(new, before) == (new, before)
        assert file.take_out(new, before) == text


def test_a_large_file_takes_no_minutes() -> None:
    text = json.dumps({"big": [{"hooks": HOOKS}] * 8_000})
    new, before = STRICT.put_in(text, {})
    assert STRICT.take_out(new, before) == text


class Meanwhile(RuleBasedStateMachine):
    """What may happen to a settings file with our hooks, beside a model without them."""

    @initialize(text=texts())
    def start(self, text: str) -> None:
        self.first = self.text = text
        self.before: Before | None = {}
        self.others = settings_in(text)
        self.is_edited = self.is_forgotten = False

    @rule(
        version=st.sampled_from(VERSIONS),
        script=st.sampled_from([SCRIPT, OLD]),
        timeout=st.sampled_from([None, 60, "5"]),
    )
    def older_hooks_go_in(
        self, version: tuple[int, ...] | None, script: str, timeout: object
    ) -> None:
        """Hooks of another version, from another installation; older ones had other limits."""
        older = {event: dict(handler) for event, handler in wanted(version, script).items()}
        for event in TIMEOUTS.keys() & older.keys():
            older[event] |= {"timeout": timeout}
            if timeout is None:
                del older[event]["timeout"]
        self.put_in(older)

    @rule()
    def hooks_go_in(self) -> None:
        self.put_in(wanted())
        assert registered(self.text) == wanted()

    def put_in(self, handlers: Mapping[str, HookHandler]) -> None:
        file = SharedFile(handlers, is_ours)
        self.text, self.before = file.put_in(self.text, self.before or {})
        there = registered(self.text)
        assert there.keys() == handlers.keys()
        assert all(handler.items() <= there[event].items() for event, handler in handlers.items())

    @rule(indent=st.sampled_from([None, 2, "\t"]))
    def another_program_writes_it_in_its_own_layout(self, indent: Any) -> None:
        self.text = json.dumps(settings_in(self.text), indent=indent) + "\n"
        self.is_edited = True

    @rule(group=GROUPS, event=st.sampled_from(sorted(wanted())), is_first=st.booleans())
    def another_tool_adds_its_hook(self, group: Any, event: str, is_first: bool) -> None:
        told = settings_in(self.text)
        for each in (told, self.others):
            groups = each.setdefault("hooks", {}).setdefault(event, [])
            groups.insert(0 if is_first else len(groups), group)
        self.text, self.is_edited = json.dumps(told), True

    @rule()
    def our_record_is_lost(self) -> None:
        """Nothing says any longer which objects and lists were empty: those go with ours."""
        self.before, self.is_forgotten = None, True

    @rule()
    def our_hooks_are_removed(self) -> None:
        left = STRICT.take_out(self.text, self.before)
        assert left is not None
        assert not registered(left)
        is_full = self.others and without(self.others, is_ours) == self.others
        if is_full or not self.is_forgotten:
            assert settings_in(left) == self.others
            assert self.is_edited or left == self.first
        self.text, self.before = left, {}

    @invariant()
    def others_stay(self) -> None:
        if hasattr(self, "text"):
            assert without(settings_in(self.text), is_ours) == without(self.others, is_ours)

    def teardown(self) -> None:
        if hasattr(self, "text"):
            self.our_hooks_are_removed()
            self.others_stay()


def test_whatever_happens_meanwhile_only_our_hooks_go() -> None:
    many = settings(examples(150), stateful_step_count=6)
    run_state_machine_as_test(Meanwhile, settings=many)  # type: ignore[no-untyped-call]


ERRORS = ["//", "/*a*/", ",", "NaN", "'", '"', "}", "{", "[", "\t", ""]


@given(st.data(), texts() | texts(values(ODD | st.dictionaries(st.sampled_from(EVENTS), ODD))))
@example(None, '{"hooks": []}')
@example(None, '{"hooks": {"Stop": "x"}}')
@example(None, '{"hooks": {"Stop": [1]}}')
@example(None, '{"hooks": {"Stop": [{"hooks": {}}]}}')
def test_anything_else_is_refused_by_its_place_or_does_no_harm(
    data: st.DataObject | None, text: str
) -> None:
    """Odd types, and typing errors that other parsers may take."""
    if data is not None:
        at, error = data.draw(st.integers(0, len(text))), data.draw(st.sampled_from(ERRORS))
        text = text[:at] + error + text[at + (not error) :]
    try:
        new, before = STRICT.put_in(text, {})
    except NotJson as e:
        assert str(e).startswith("line ")
    except Malformed as e:
        assert str(e).startswith(("hooks", "the file"))
        assert STRICT.take_out(text, None) == text
    else:
        assert STRICT.take_out(new, before) == text


HANDLER = {"Stop": {"command": "x"}}
HOOKS = {"Stop": [{"hooks": [{"command": "x"}]}]}
#: A text, and the text with our hook.
LAYOUTS = {
    "nothing": ("{}", json.dumps({"hooks": HOOKS}, indent=2)),
    "four blanks": (
        '{\n    "model": "opus"\n}\n',
        json.dumps({"model": "opus", "hooks": HOOKS}, indent=4) + "\n",
    ),
    "tabs, CRLF": (
        '{\r\n\t"hooks": {}\r\n}',
        json.dumps({"hooks": HOOKS}, indent="\t").replace("\n", "\r\n"),
    ),
    "one line": (
        '{"model": "opus", "hooks": {"Stop": []}}',
        json.dumps({"model": "opus", "hooks": HOOKS}),
    ),
    "tight": (
        '{"model":"opus","hooks":{}}',
        '{"model":"opus","hooks":{"Stop":[{"hooks":[{"command":"x"}]}]}}',
    ),
    "a remark at the end of a line": (
        '{\n  "a": 1 // one\n}',
        json.dumps({"a": 1, "hooks": HOOKS}, indent=2).replace("1,", "1, // one"),
    ),
}


@pytest.mark.parametrize(("text", "with_hook"), LAYOUTS.values(), ids=LAYOUTS)
def test_hooks_follow_the_layout_of_a_file(text: str, with_hook: str) -> None:
    assert SharedFile(HANDLER, is_ours, has_comments=True).put_in(text, {})[0] == with_hook


@pytest.mark.parametrize("end", ["", ",", " // mine\n,", ", // mine\n", ' /* "a": 1, */ ,'])
def test_an_addition_of_another_program_behind_ours_stays(end: str) -> None:
    """Qwen adds its version there at its first start; comments are before it and behind."""
    text = '{\n  "a": 1 // one\n}'
    new, before = TOLERANT.put_in(text, {})
    added = new.removesuffix("\n}") + (f'{end}\n  "$version": 4\n}}' if end else "\n}")
    left = TOLERANT.take_out(added, before)
    assert comments_in(left) == comments_in(added)
    assert settings_in(left) == {"a": 1, **({"$version": 4} if end else {})}
    assert end or left == text


def test_a_list_of_ours_stays_with_a_comment_that_was_added_to_it() -> None:
    text = '{"hooks": {}}'
    new, before = TOLERANT.put_in(text, {})
    left = TOLERANT.take_out(new.replace('"Stop": [', '"Stop": [ /* mine */ '), before)
    assert comments_in(left) == ["/* mine */"]
    assert settings_in(left) == {"hooks": {"Stop": []}}


@given(st.data(), texts())
def test_a_comment_that_was_added_among_ours_is_not_lost_in_silence(
    data: st.DataObject, text: str
) -> None:
    new, before = TOLERANT.put_in(text, {})
    noted = data.draw(with_comments(new))
    left = TOLERANT.take_out(noted, before)
    try:
        assert TOLERANT.is_kept(noted, left)
    except ValueError as e:
        assert "a comment among the hooks of bellboard would be lost" in str(e)


def test_a_restricted_or_second_copy_of_ours_is_removed() -> None:
    """If a matcher or a duplicate was added, one entry without a matcher remains."""
    handler = {"type": "command", "command": wanted()["Stop"]["command"], "timeout": 9}
    groups = [
        {"matcher": "Bash", "hooks": [handler]},
        {"matcher": "*", "hooks": [handler, handler]},
    ]
    new, _ = STRICT.put_in(json.dumps({"hooks": {"Stop": groups}}), {})
    assert settings_in(new)["hooks"]["Stop"] == [{"matcher": "*", "hooks": [handler]}]


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
def test_hooks_of_an_earlier_version_are_removed(text: str, new: str, before: Before) -> None:
    """The text is restored to the byte, also after an upgrade in place."""
    assert TOLERANT.take_out(new, before) == text
    newer, before = TOLERANT.put_in(new, before)
    assert registered(newer) == wanted()
    assert TOLERANT.take_out(newer, before) == text


# The command of a hook

NAMES = st.text("azAZ09_", min_size=1, max_size=60)


@given(
    path=st.text("/ab .'\"$`\\é✓\n;", max_size=12),
    folder=st.sampled_from([HOME, "/srv"]),
    event=NAMES,
    agent=st.just("") | NAMES,
)
@example(path='it\'s "mine"/$HOME/`x`\\y', folder=HOME, event="Stop", agent="")
@example(path='it\'s "mine"/$HOME/`x`\\y', folder="/srv", event="turn_start", agent="pi")
@example(path="two\nlines; exit 1", folder="/srv", event="x" * 60, agent="x" * 60)
def test_a_command_is_recognized_by_its_script(
    path: str, folder: str, event: str, agent: str
) -> None:
    """The path may be quoted in any way; a command with more text is not ours."""
    script = f"{folder}/{path}/emit"
    line = hook_line(script, event, HOME, agent)
    assert script_of(line, HOME) == script
    for other in (f"{line} # more", f"echo {line}", f"{line}; ls", line.replace("set --", "set")):
        assert script_of(other, HOME) is None


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ('"/srv/a b/emit" Stop "$PPID"', "/srv/a b/emit"),
        ("/srv/emit Stop", None),
        ('emit Stop "$PPID"', None),
        ("", None),
    ],
)
def test_a_command_that_was_pasted_by_hand_is_recognized(command: str, script: str | None) -> None:
    assert script_of(command, HOME) == script


@pytest.mark.parametrize("name", ["", "turn-start", "turn.start", "a b", "x; ls", "é", "x" * 61])
def test_a_name_that_the_hook_would_not_take_is_refused_with_what_to_do(name: str) -> None:
    """The fault is in the table of the agent, not in the user's file."""
    with pytest.raises(ValueError, match=f'event "{re.escape(name)}" of tern: .* another name'):
        hook_line("/x/emit", name, HOME, "tern")
    if name:
        with pytest.raises(ValueError, match=f'agent "{re.escape(name)}": .* another key'):
            hook_line("/x/emit", "Stop", HOME, name)
