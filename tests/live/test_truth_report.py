"""The report of played scenes: its files and comparisons, and how it reads a CLI's account."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from live import seen
from live.account import Account, most_urgent
from live.lines import entry, file, gone, hook, tick
from live.page import page
from live.public import public
from live.report import Kept, Row, missed
from live.scene import OF_OTHERS, SCENES, SPOKEN, SPOKEN_OF_OTHERS, read
from live.witness import Transcripts
from rig import home as homes

pytestmark = pytest.mark.core

SCREEN = f"""❯ play:perm please
● Bash(touch made.txt)
{"─" * 60}
 Bash command
   touch /tmp/bb-abc123/project/made.txt
 Do you want to proceed?
 ❯ 1. Yes
   2. No
 Esc to cancel
"""


@pytest.mark.parametrize("base", sorted({"/tmp", homes.base()}))
def test_what_is_published_names_no_home(base: str) -> None:
    """Neither as a path nor as the name that Claude Code makes of it."""
    home = homes.Home(Path(base, "bb-a_c12"))
    log = f"{home.claude}/projects/{re.sub('[^A-Za-z0-9]', '-', str(home.project))}/s.jsonl"
    (line,) = public([{"t": 1.0, "hook": {"cwd": str(home.project), "transcript_path": log}}])
    shown = "/home/user/lab/claude/projects/-home-user-lab-project/s.jsonl"
    assert {"cwd": "/home/user/lab/project", "transcript_path": shown} == line["hook"]


def test_a_transcript_may_be_rewritten(tmp_path: Path) -> None:
    """2.1.332 takes a flagged answer back; what stays is not told again."""
    home = homes.Home(tmp_path)
    log = home.claude / "projects" / "p" / "s.jsonl"
    log.parent.mkdir(parents=True)
    transcripts = Transcripts(home)

    def told(*numbers: int) -> list[int]:
        log.write_text("".join(f'{{"n": {n}}}\n' for n in numbers))
        return [entry["n"] for _, entry in transcripts.look()]

    assert [1, 20, 300] == told(1, 20, 300)
    assert [4000] == told(1, 20, 4000)
    assert [5] == told(1, 20, 4000, 5)
    assert [] == told(1)
    assert [6] == told(1, 6)


def test_a_dialog_is_identified_by_its_constant_lines() -> None:
    """The screen above it is left out, and so are numbers and paths."""
    lines = seen.dialog(SCREEN)
    assert "Bash command" == lines[0]
    assert "touch #" == lines[1]
    assert "#. Yes" in lines
    assert not any("play:perm" in each or "abc" in each for each in lines)


def test_a_new_version_is_described_by_its_differences(tmp_path: Path) -> None:
    """Hooks, fields, statuses and screens, as the traces have them."""

    def trace(name: str, *lines: dict[str, Any]) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps({"t": 1.0, **x}) + "\n" for x in lines))
        return path

    def file(status: str, **more: str) -> dict[str, Any]:
        return {"registry": {"pid": 1, "record": {"status": status, **more}}}

    old = trace("old", {"hook": {"hook_event_name": "Stop", "cwd": "/p"}}, file("busy"))
    new = trace(
        "new",
        {"hook": {"hook_event_name": "Stop", "cwd": "/p", "mood": "fine"}},
        file("dreaming", dream="of sheep"),
        {"note": f"{seen.SCREEN}permission prompt\n{SCREEN}"},
    )
    told = seen.differences(seen.shapes([old], ["Stop"]), seen.shapes([new], ["Stop", "Dream"]))
    assert "hooks that it knows: + Dream" in told
    assert "fields of Stop: + mood" in told
    assert "fields of the session file: + dream" in told
    assert "status in the session file: + dreaming" in told
    assert "status in the session file: - busy" in told
    assert "dialog, permission prompt: + Bash command" in told
    assert not any("hooks that came" in each for each in told)


def test_a_stopped_run_continues_where_it_was(tmp_path: Path) -> None:
    """Scenes that passed are not played again; failed ones are."""
    kept = Kept(tmp_path / "rows")
    good = Row("good", compared=3.0, wrong=(0.1,), delays=(0.2,), listed=2)
    kept.add("2.1.330", good)
    kept.add("2.1.330", Row("bad", failure="AssertionError: it was late"))
    again = Kept(tmp_path / "rows")
    assert good == again.ways["2.1.330"]["good"]
    assert again.has("2.1.330", "good")
    assert not again.has("2.1.330", "bad")
    assert not again.has("2.1.328", "good")


def test_a_bar_is_missed_by_a_failure_a_slow_change_or_a_wrong_time() -> None:
    """Each is reported with its scene."""
    fine = Row("fine", compared=9.0, delays=(0.1,))
    slow = Row("slow", compared=1.0, delays=(0.7,))
    wrong = Row("wrong", compared=1.0, wrong=(0.5,))
    assert [] == missed([fine])
    assert ["slow: a change took 0.70 s"] == missed([fine, slow])
    assert ["agrees 95.00% of the time, not 99.9%"] == missed([fine, wrong])


def test_the_page_names_every_scene_and_what_the_monkey_found(tmp_path: Path) -> None:
    """The table of walks comes from the file that the walks wrote."""
    wrong = {"shown": "idle", "said": "blocked", "rule": "reopen", "seconds": 4.2}
    walk = {"seed": 7, "version": "2.1.330", "actions": 40, "compared": 120.0, "wrong": 6.0}
    (tmp_path / "walks").write_text(json.dumps({**walk, "wrongs": [wrong]}) + "\n")
    text = page({"2.1.330": {}}, tmp_path / "walks")
    assert all(f"| {scene.name} | not played |" in text for scene in SCENES)
    assert "| 2.1.330 | 1 | 40 | 2 | 95.00% | 1 |" in text
    assert "| idle, not blocked | reopen | 1 | 4.2 s | 7 |" in text


def said(*lines: dict[str, Any]) -> list[tuple[float, float, str]]:
    stretches = most_urgent(Account([*lines, tick(60.0)]).stretches)
    return [(x.start, x.end, "|".join(sorted(x.allowed))) for x in stretches]


def test_of_two_processes_the_more_urgent_one_counts() -> None:
    """The first one's question stays while the second is idle and ends."""
    told = said(
        file(0.0, "waiting", 1),
        file(10.0, "idle", 2),
        gone(20.0, 2),
        file(30.0, "busy", 1),
    )
    assert [(0.0, 30.0, "blocked"), (30.0, 60.0, "working")] == told


def test_a_turn_continued_by_a_stop_hook_may_end_either_way() -> None:
    """The turn was completed; Esc makes it idle."""
    told_on = {"type": "user", "isMeta": True, "message": {"content": "Stop hook feedback:\ngo on"}}
    told = said(
        hook(0.0, "UserPromptSubmit", 1, prompt="go"),
        file(0.0, "busy", 1),
        hook(10.0, "Stop", 1),
        entry(10.1, told_on),
        file(20.0, "idle", 1),
    )
    assert [(0.0, 20.0, "working"), (20.0, 60.0, "completed|idle")] == told


def test_a_stop_whose_hooks_take_seconds_is_no_end() -> None:
    """The file says busy until they have finished."""
    told = said(
        hook(0.0, "UserPromptSubmit", 1, prompt="go"),
        file(0.0, "busy", 1),
        hook(10.0, "Stop", 1),
        file(14.0, "idle", 1),
    )
    assert [(0.0, 14.0, "working"), (14.0, 60.0, "completed")] == told


def test_a_queued_prompt_does_not_end_a_question() -> None:
    """The file still says waiting."""
    told = said(file(0.0, "waiting", 1), hook(10.0, "UserPromptSubmit", 1), file(13.0, "busy", 1))
    assert [(0.0, 13.0, "blocked"), (13.0, 60.0, "working")] == told


def test_a_dialog_is_the_agents_own_if_a_tool_of_the_turn_waits() -> None:
    """In auto mode, a dialog is a question; a dialog that the user opens at rest is not."""
    told = said(
        file(0.0, "busy", 1),
        hook(1.0, "PreToolUse", 1, tool_use_id="a"),
        file(2.0, "waiting", 1, "dialog open"),
        file(10.0, "idle", 1),
        hook(10.0, "Stop", 1),
        file(20.0, "waiting", 1, "dialog open"),
    )
    assert [(0.0, 2.0, "working"), (2.0, 10.0, "blocked")] == told[:2]
    assert 20.0 == told[-1][1]


def test_a_row_that_cannot_be_played_is_named() -> None:
    """With its number, and the words that there are."""
    (made,) = read(
        "## Plans #F4\nWAITS = sleep 3\nEsc in it #tmux | idle | user-hook Stop: <WAITS>"
    )
    assert ("Esc in it", "idle", "Plans") == (made.name, made.final, made.group)
    assert (("user-hook Stop: sleep 3",), {"F4", "tmux"}) == (made.steps, made.tags)
    with pytest.raises(ValueError, match=r"scenes.txt:2: no word 'pres' \(start, after, prompt, "):
        list(read("# odd\nEsc | idle | start | pres Escape"))
    with pytest.raises(ValueError, match=r"scenes.txt:1: NAME \| STATUS \| STEP"):
        list(read("Esc | idle"))
    for scenes in (SCENES, SPOKEN, OF_OTHERS, SPOKEN_OF_OTHERS):
        assert len(scenes) == len({scene.name for scene in scenes})
