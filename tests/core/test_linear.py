"""No reader of foreign text takes long for a text that was made for that."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from bellboard.agents import trace_line
from bellboard.agents.agent import About
from bellboard.agents.claude import dialog
from bellboard.agents.claude.dialog import options_in
from bellboard.agents.claude.request import request
from bellboard.agents.codex.request import runs_command
from bellboard.agents.installing.settings_file import SharedFile, without_comments
from bellboard.agents.registry import agent_of
from bellboard.core.events import Origin
from bellboard.core.feed import read
from bellboard.core.request import Answer, Choice, Option, Question, Request, check
from bellboard.core.secrets import hide
from bellboard.core.text import marked, visible, warnings
from bellboard.core.words import place


def seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def is_linear(work: Callable[[str], object], unit: str, length: int) -> bool:
    """Return whether 16 times the text takes not much more than 16 times the time."""
    short, long = (unit * (n // len(unit)) for n in (length >> 4, length))
    least = min(seconds(lambda: work(short)) for _ in range(2))
    return any(seconds(lambda: work(long)) < 60 * max(0.002, least) for _ in range(3))


@pytest.mark.parametrize("work", [visible, marked, warnings])
@pytest.mark.parametrize(
    "unit",
    [
        *(
            "\x90",
            "\x9d",
            "\x9b",
            "\x1b]",
            "\x1b[0",
            "\u0301",
            "\ufe0f",
            "\u200b",
            " ",
            " \t",
            "\x7f",
        ),
        *("\u0430", "\u0430.", "/\u0430", "a\u0430", "\u0430 \n", "\u0570", "\u2010a", "a\u0334"),
        *("\u5b57", "\u0665x", "g\u0430 ", "\u0430.b", "\u03b1\u03bb"),
        *("\u0131", "\u0131.", "\u0131_", "\u0131 ", "\u13df", "\U0001d400"),
    ],
    ids=ascii,
)
def test_hidden_characters_are_found_in_linear_time(
    work: Callable[[str], object], unit: str
) -> None:
    assert is_linear(work, unit, 1 << 16)


@pytest.mark.parametrize("unit", ["/*x", "/* x */", '"', "//", "/*x*/\n"])
def test_comments_are_removed_in_linear_time(unit: str) -> None:
    assert is_linear(lambda text: without_comments(text), unit, 1 << 17)


@pytest.mark.parametrize("ours", ["x", "y"])
def test_many_hooks_of_ours_are_removed_in_linear_time(ours: str) -> None:
    """A file may hold anything, such as hooks of every version."""
    form = SharedFile({"Stop": {"command": "x"}}, lambda command: command == ours)
    unit = '{"hooks":[{"command":"x"},{"command":"y"}]},{"hooks":[{"command":"x"}]},'

    def work(text: str) -> None:
        form.put_in(f'{{"hooks":{{"Stop":[{text[: text.rfind("},") + 1]}]}}}}', {})

    assert is_linear(work, unit, 1 << 18)


@pytest.mark.parametrize("unit", [' \\\\\\\\\\\\\\\\"', " \\\\\\\\\\\\\\\\\\'", "\\", '\\"'])
@pytest.mark.parametrize("head", ["password ", 'a token="'])
def test_secrets_in_quotes_are_hidden_in_linear_time(head: str, unit: str) -> None:
    """Nor is there a RecursionError."""
    assert is_linear(lambda text: hide(head + text), unit, 1 << 16)


ROWS = [
    *(" " * 4000 + "x", " " * 4000 + ":", "│" * 4000, " " * 4000 + "Accept" + " " * 4000),
    *("1. a" + " " * 4000 + "x", "1. a" + "│ " * 2000 + "x", "❯" + " " * 4000 + "1"),
]


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
@pytest.mark.parametrize("kind", ["permission", "form", "question", "plan"])
def test_the_rows_of_a_terminal_are_read_quickly(kind: str, row: str) -> None:
    """The agent controls them."""
    asked = Request("1", "s", "claude", kind, "d", choices=(Choice("allow", "Yes"),))
    press, rows = agent_of("claude").press, [row] * 50
    assert seconds(lambda: press(rows, asked, Answer("allow"), About("make"))) < 0.5
    assert seconds(lambda: dialog.fill_form(rows, asked, Answer("fill"))) < 0.5
    assert seconds(lambda: options_in(rows)) < 0.5


@pytest.mark.parametrize(
    "given",
    [
        '{"a": ' + "[" * 100 + "1," * 25_000 + "1" + "]" * 100 + "}",
        '{"a": [' + "1e300," * 100_000 + "1]}",
        '{"command": "' + "\\u007f" * 100_000 + '"}',
        '{"command": "' + "ls " * 200_000 + '"}',
    ],
    ids=["deep", "large numbers", "hidden characters", "blanks"],
)
def test_a_large_request_is_read_quickly(given: str) -> None:
    """The request is shown in full, or as far as possible."""
    about = '"session_id": "s", "hook_event_name": "PermissionRequest", "tool_name": "mcp__a__b"'
    payload, origin = f'{{{about}, "tool_input": {given}}}'.encode(), Origin("claude", 1)

    def made() -> None:
        assert request(payload, "1", 1.0, origin) is not None

    assert seconds(made) < 1.5


def test_many_numbers_in_a_trace_and_in_a_feed_are_read_quickly() -> None:
    """As msgspec reads them itself, each takes 8 µs."""
    line = b'{"t": 1, "tick": [' + b"1e300," * 100_000 + b"1]}"
    assert seconds(lambda: trace_line.event_in(line)) < 0.5
    assert seconds(lambda: read(line)) < 0.5


def test_a_large_reply_of_another_machine_is_read_quickly() -> None:
    """A reply with thousands of texts is no request."""
    texts = json.dumps({"type": "reply", "id": 1, "ok": True, "x": ["\x7f"] * 100_000})
    begun = seconds(lambda: read(texts.encode()))
    assert begun < 1.0
    reply = read(texts.encode())
    assert (reply.ok, "too many parts" in reply.why) == (False, True)  # type: ignore[union-attr]


def test_a_long_command_line_of_codex_is_read_quickly() -> None:
    assert seconds(lambda: runs_command("bash -lc '" + "x" * 1_000_000 + "'", "x")) < 0.5


def test_a_choice_of_many_labels_is_checked_quickly() -> None:
    labels = [", ".join("a" * n) for n in range(1, 400)]
    question = Question("Which?", many=True, options=tuple(map(Option, labels)))
    asked = Request("1", "s", "claude", "question", "d", questions=(question,))
    asked = replace(asked, choices=(Choice("choose", "Answer", "answers"),))
    answer = Answer("choose", answers={"Which?": labels})
    assert seconds(lambda: check(asked, answer)) < 0.5
    assert "type the answer instead" in check(asked, answer)


def test_a_long_address_of_a_neovim_is_read_quickly() -> None:
    published: Any = {"nvim": "/" + "a" * 100_000 + "/"}
    assert seconds(lambda: place(published)) < 0.1
    assert place({"nvim": "/run/user/0/nvim.4711.0"}) == "nvim 4711"
    assert place({"nvim": "/tmp/mine.sock"}) == "nvim mine"
