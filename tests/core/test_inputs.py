"""What stands in the input of a CLI is read from its screen, and nothing else that takes keys."""

# ruff: noqa: RUF001  their prompts are odd characters

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bellboard.agents.registry import agent_of
from rig import DATA

INPUTS = DATA / "inputs"
FORTY = "".join(f"line {n} of forty\n" for n in range(22, 40)).strip()
#: Screen → what stands in its input; those that are not listed show no input that takes a prompt.
HOLDS = {
    **dict.fromkeys(("rest", "working", "queued", "interrupted", "done"), ""),
    **dict.fromkeys(("typed", "typed_home"), "hello there"),
    "working_typed": "half typed",
    "pasted": "".join(f"line {n} x é 你 🙂 'q\" \\n\n" for n in range(3)).strip(),
}
#: And where that differs: a queued prompt may be put back, a paste is shown in part or in a word.
OTHERS: dict[str, dict[str, str | None]] = {
    "claude-2.1.332": {
        "hint": "",
        "shortcuts": "",
        "pasted_40": "[Pasted text #1 +39 lines]",
        "scrolled": "\n".join([*(f"line {n} of many" for n in range(7, 13)), "the last line"]),
        "slash": "/",
        "mention": "@",
    },
    "codex-0.171.0": {
        "interrupted": "DO: say queued answer",
        "pasted_40": FORTY,
        "pasted_50k": "[Pasted Content 39199 chars]",
        "slash": "/",
        "mention": "@",
    },
    "opencode-1.18.33": {
        "rest": None,  # before its first prompt, it shows no session
        "slash": "/",
        "mention": "@",
        "pasted": "[Pasted ~3 lines]",
        "pasted_40": "[Pasted ~40 lines]",
        "pasted_50k": "[Pasted ~1400 lines]",
    },
    "gemini-0.61.0": {
        "pasted_40": "[Pasted Text: 40 lines]",
        "pasted_50k": "[Pasted Text: 1400 lines]",
    },
    "qwen-0.24.4": {  # it suggests the next prompt, in words that may as well have been typed
        "pasted_40": "[Pasted Content 669 chars]",
        "pasted_50k": "[Pasted Content 39199 chars]",
        "mention": "@",
        **dict.fromkeys(("queued", "interrupted"), "queued answer"),
        "done": "Hello there",
    },
    "copilot-1.0.102": {
        "pasted_40": "[Paste #1 - 40 lines]",
        "pasted_50k": "[Saved pasted content to workspace (50.6 KB) id=1]",
        "slash": "/add-dir",
        "mention": "@",
    },
    "pi-1.6.0": {
        "interrupted": "DO: say queued answer",
        "pasted_40": "[paste #1 +40 lines]",
        "pasted_50k": "[paste #1 +1400 lines]",
        "slash": "/",
        "shell": "!",
        "mention": "@",
    },
}
SIZES = ("_narrow", "_wide")  # of a terminal that has not 120 columns


@pytest.mark.parametrize(
    "path", sorted(INPUTS.glob("*/*.txt")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_what_stands_in_an_input_is_read_from_the_screen(path: Path) -> None:
    """Without the hint of an empty one; dialogs, menus and shell mode are none."""
    key, _, _ = path.parent.name.partition("-")
    name = path.stem
    for size in SIZES:
        name = name.removesuffix(size)
    expected = {**HOLDS, **OTHERS.get(path.parent.name, {})}.get(name)
    screen = path.read_text().splitlines()
    prompt = agent_of(key).prompt(screen)
    assert expected == (prompt and re.sub(" +", " ", prompt.text))  # some draw a tab as blanks
    if prompt is not None:
        shown = "\n".join(["", *(row.rstrip() for row in screen), ""])
        assert "\n".join(["", *prompt.rows, ""]) in shown, "a key is only pressed if they show"


@pytest.mark.parametrize("key", ["codex", "opencode", "gemini", "qwen", "copilot", "pi"])
@pytest.mark.parametrize(
    "screen", [[], [""], ["›"], ["╹" + "▀" * 40], ["┃"] * 9, ["\x00" * 9] * 99]
)
def test_partial_screens_are_read(key: str, screen: list[str]) -> None:
    """Those of other programs, too."""
    prompt = agent_of(key).prompt(screen)
    assert prompt is None or not prompt.text


def test_words_of_a_dialog_in_an_input_are_a_text() -> None:
    """Whoever typed them may have quoted one; the row below the input decides."""
    rows = ["› 1. Yes", "  2. No", "", "  press enter to confirm or esc to cancel"]
    codex = agent_of("codex")
    assert codex.prompt(rows) is None
    prompt = codex.prompt([*rows, "", "  gpt · ~/project", "  ? for shortcuts"])
    assert prompt is not None
    assert prompt.text.startswith("1. Yes\n2. No\n\npress enter")
