"""How each channel notifies: the arguments it passes, and what becomes of hostile text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bellboard.core.notices import Notice
from bellboard.core.published import Published, project_of, publish
from bellboard.core.session import Block, Session
from bellboard.hosting.callbacks import Commands
from bellboard.hosting.channels import Channels, wording
from bellboard.system.mounts import Mounts
from rig.waiting import eventually

HOSTILE = (
    "4;1;100\x1b]0;owned\x07\x9b2J $(touch owned) `id` #(id) %{1} <b>&lt;</b> \u202e' \" \\\n-x"
)
ENV = {"PATH": "/usr/bin:/bin"}


def notice(channel: str, status: str = "blocked") -> Notice:
    return Notice(7, "s", channel, status)


def asking(text: str, folder: str = "/srv/api") -> Published:
    """Return a published session that asks with this text."""
    block = Block("permission", 1.0, tool="Bash", detail=text, shown=True)
    return publish(Session("s", turn="working", cwd=folder, blocks={":": block}))


def is_plain(text: str) -> bool:
    """Return whether a text has no control characters or direction marks."""
    return not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


@pytest.mark.parametrize("channel", ["desktop", "command"])
@pytest.mark.parametrize("via", ["notify-send", "osascript"])
def test_hostile_text_is_passed_as_separate_arguments(channel: str, via: str) -> None:
    """After `--`, without control characters."""
    channels = Channels({"desktop": via, "command": ["/bin/sh", "-c", "true"]}, ENV)
    told = channels.command_of(notice(channel), asking(HOSTILE, f"/srv/{HOSTILE}"))
    assert all(is_plain(word) for word in told)
    if channel == "command":
        assert told[:3] == ["/bin/sh", "-c", "true"]
        assert told[5:7] == ["blocked", "s"]
        return
    mark = told.index("--")
    assert len(told) == mark + 3
    assert "touch owned" not in " ".join(told[:mark])
    assert "touch owned" in told[-1]
    if via == "notify-send":
        assert "<" not in told[-1], "a body may hold markup"


@pytest.mark.parametrize("of", ["folder", "repository", "machine"])
def test_a_project_is_one_visible_line(of: str) -> None:
    """Callbacks get it as it is, and print it to terminals."""
    name = HOSTILE.replace("/", "") + "\nb"
    session = {
        "folder": Session("s", cwd=f"/srv/{name}"),
        "repository": Session("s", facts={"repository": f"owner/{name}"}),
        "machine": Session("s", machine="far", row={"project": name}),
    }[of]
    project = project_of(session)
    assert is_plain(project)
    assert "touch owned" in project


@pytest.mark.parametrize("via", ["osc9", "osc777"])
def test_an_escape_sequence_ends_where_we_end_it(via: str) -> None:
    """And is the one intended: 9;4 would be a progress bar, another `;` another field."""
    channels = Channels({"desktop": via}, ENV)
    line = channels.line_of(notice("desktop"), asking(HOSTILE, f"/srv/{HOSTILE}"))
    sequence = line["sequence"]
    assert sequence[0] == "\x1b"
    assert sequence[-1] == "\x07"
    assert is_plain(sequence[1:-1])
    if via == "osc9":
        assert sequence.startswith("\x1b]9;bellboard: ")
    else:
        assert sequence.startswith("\x1b]777;notify;")
        assert sequence.count(";") == 3


def test_a_command_is_run_without_a_shell(tmp_path: Path) -> None:
    """An agent's name for its folder is not executed."""
    out = tmp_path / "out"
    script = f"cd {tmp_path}; printf '%s\\n' \"$@\" >new; mv new out"
    channels = Channels({"command": ["sh", "-c", script, "phone"]}, ENV)
    commands = Commands()
    told = channels.command_of(notice("command"), asking(HOSTILE, "/srv/$(touch owned)"))
    commands.start(told)
    eventually(out.exists, "the command")
    assert out.read_text().splitlines() == told[4:]
    assert not (tmp_path / "owned").exists()
    eventually(lambda: commands.running == 0, "its end")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("blocked", ("api needs you", "Bash: rm -rf build")),
        ("error", ("api has an error", "overloaded")),
        ("completed", ("api has completed", "Removed 214 rules")),
    ],
)
def test_a_notice_says_who_and_what(status: str, expected: tuple[str, str]) -> None:
    if status == "blocked":
        p = asking("rm -rf build")
    else:
        s = Session("s", turn=status, cwd="/srv/api", error="overloaded" * (status == "error"))
        s.message = "Removed 214 rules"
        p = publish(s)
    assert wording(notice("desktop", status), p) == expected


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"branch": "fix/login"}, ("web (fix/login) has completed", "")),
        ({"branch": "main", "title": "tidy css"}, ("web (tidy css) has completed", "tidy css")),
        ({"branch": "main", "last_prompt": "go on"}, ("web (go on) has completed", "go on")),
        ({"branch": "main", "last_message": "completed"}, ("web (main) has completed", "")),
        ({"title": "web"}, ("web has completed", "web")),
        ({"agent": "codex"}, ("web has completed", "")),
        ({"agent": "codex", "mixed": True}, ("web (codex) has completed", "")),
        ({"agent": "a", "mixed": True, "branch": "fix"}, ("web (fix, a) has completed", "")),
    ],
)
def test_a_notice_says_which_of_several_and_nothing_twice(
    known: dict[str, Any], expected: tuple[str, str]
) -> None:
    """The branch, or on the main one the title; the agent where there are several."""
    p = {"session_id": "s", "status": "completed", "project": "web", "markers": [], **known}
    assert wording(notice("notify", "completed"), p) == expected


def program(folder: Path, name: str) -> None:
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("environ", "programs", "expected"),
    [
        ({"DISPLAY": ":0"}, ["notify-send"], "notify-send"),
        ({"WAYLAND_DISPLAY": "wayland-0"}, ["notify-send"], "notify-send"),
        ({}, ["notify-send"], ""),
        ({"DISPLAY": ":0"}, [], ""),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "a"}, ["notify-send"], ""),
        ({"SSH_CONNECTION": "a", "TERM_PROGRAM": "WezTerm"}, ["notify-send"], "osc9"),
        ({"TERM": "foot"}, [], "osc777"),
        ({"LC_TERMINAL": "iTerm2"}, [], "osc9"),
    ],
)
def test_the_desktop_is_notified_by_what_is_available(
    tmp_path: Path,
    environ: dict[str, str],
    programs: list[str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program on a desktop, else a terminal known to forward notifications."""
    monkeypatch.setattr("sys.platform", "linux")
    for name in programs:
        program(tmp_path, name)
    channels = Channels({}, {"PATH": str(tmp_path), **environ})
    assert channels.desktop == expected
    assert ("desktop" in channels.able(front=False)) == (expected == "notify-send")
    assert ("desktop" in channels.able(front=True)) == bool(expected)


def test_a_sound_is_chosen_by_label_then_status(tmp_path: Path) -> None:
    """A missing file is not played; a name stands for a sound that machines have."""
    horn, gong = tmp_path / "horn.wav", tmp_path / "gong.wav"
    horn.touch()
    gong.touch()
    settings: dict[str, Any] = {
        "player": ["play", "-q"],
        "sounds": {"blocked": str(gong), "error": "/nowhere.wav"},
        "labels": {"MINE": {"sounds": {"blocked": str(horn)}}},
    }
    channels = Channels(settings, ENV)
    p = asking("x")
    assert channels.command_of(notice("sound"), p) == ["play", "-q", str(gong)]
    mine = channels.command_of(notice("sound"), {**p, "label": "MINE"})
    assert mine == ["play", "-q", str(horn)]
    assert channels.command_of(notice("sound", "error"), p) == []


def test_a_sound_on_a_mount_that_may_hang_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop would wait for it; its player may."""
    table = tmp_path / "mountinfo"
    table.write_text(f"36 35 0:99 / {tmp_path}/far rw - nfs4 server:/home rw\n")
    monkeypatch.setattr("bellboard.hosting.channels.MOUNTS", Mounts(str(table)))
    (tmp_path / "horn.wav").symlink_to("far/horn.wav")
    sounds = {"blocked": f"{tmp_path}/horn.wav", "error": f"{tmp_path}/none.wav"}
    channels = Channels({"player": ["play"], "sounds": sounds}, ENV)
    assert channels.command_of(notice("sound"), asking("x")) == ["play", sounds["blocked"]]
    assert channels.command_of(notice("sound", "error"), asking("x")) == []


def test_a_channel_that_is_missing_is_not_claimed(tmp_path: Path) -> None:
    """A host without a player leaves the sound to one that has it."""
    bare = Channels({}, {"PATH": str(tmp_path)})
    assert bare.able(front=False) == frozenset()
    assert bare.able(front=True) == {"float", "notify", "bell"}
    program(tmp_path, "paplay")
    equipped = Channels({"command": ["phone"]}, {"PATH": str(tmp_path)})
    assert equipped.able(front=False) == {"sound", "command"}
