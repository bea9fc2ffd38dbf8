"""A request beyond the report of its hook: by the transcript, and by files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellboard.core.session import Block
from bellboard.core.text import marked
from bellboard.hosting.asked import (
    ELSEWHERE,
    LARGEST,
    LINKED,
    MOST_FILES,
    READS,
    REPLACED,
    SHORT,
    TOO_LARGE,
    UNREADABLE,
    WITHHELD,
)
from files.test_answering import SCREEN, THERE, Typewriter
from rig.home import Home
from rig.host.desk import INPUT, Desk, PlayedHook
from rig.machines.hung_mount import HungMount

BASH = {"type": "tool_use", "id": "t1", "name": "Bash", "input": INPUT}
WRITE = {"file_path": "/srv/w.txt", "content": "#!/bin/sh\nrm -rf ~\n"}
DONE = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}


def test_a_question_that_no_hook_reported_is_shown_as_its_transcript_has_it(desk: Desk) -> None:
    """In full, and answered by keys; as in auto mode."""
    asked = Block("permission", 1.0, tool="Bash", detail="make all", shown=True)
    desk.s = desk.session_of(blocks={":": asked}, transcript=desk.writes(BASH))
    terminal = desk.terminal = Typewriter(desk, SCREEN)
    shown = desk.request(request="")["request"]
    assert [part["text"] for part in shown["parts"]] == ["make all", "Build it"]
    assert desk.answer(request="", digest=shown["digest"])["way"] == "keys"
    assert terminal.keys == "1"
    write = {**BASH, "name": "Write", "input": WRITE}
    block = replace(asked, tool="Write", detail="/srv/w.txt")
    desk.s = desk.session_of(blocks={":": block}, transcript=desk.writes(write))
    shown = desk.request(request="")["request"]
    assert [part["text"] for part in shown["parts"]] == [WRITE["content"]]


@pytest.mark.parametrize(
    ("blocks", "facts"),
    [
        ([], {}),
        ([BASH, DONE], {}),
        ([BASH, {**BASH, "id": "t2"}], {}),
        ([{**BASH, "name": "Write", "input": WRITE}], {}),
        ([BASH], {"agent": "a1"}),
    ],
    ids=["nothing", "it has a result", "two of them", "another tool", "of a subagent"],
)
def test_one_line_of_a_question_is_not_the_question(
    desk: Desk, blocks: list[dict[str, Any]], facts: dict[str, Any]
) -> None:
    """Without a hook and a complete transcript, the question is answered in its terminal."""
    terminal = desk.terminal = Typewriter(desk, SCREEN)
    asked = Block("permission", 1.0, tool="Bash", detail="make all", shown=True)
    block = replace(asked, **facts)
    desk.s = desk.session_of(blocks={":": block}, transcript=desk.writes(*blocks))
    shown = desk.request(request="")["request"]
    assert (shown["complete"], shown.get("choices", [])) == (False, [])
    reply = desk.answer(request="", digest=shown["digest"])
    assert reply["why"] == f"its full request is not known here{THERE}"
    assert terminal.keys == ""


@pytest.mark.parametrize("is_hooked", [True, False], ids=["hook", "transcript"])
def test_a_command_shows_its_folder_if_that_is_not_the_folder_of_the_session(
    desk: Desk, is_hooked: bool
) -> None:
    """The agent may have changed it, and \"rm -r *\" looks the same everywhere."""
    last = {"kind": "file", "label": ELSEWHERE, "path": "/srv/api/build<U+202E>"}
    for project_dir, cwd, moved in (
        ("/srv/api", "/srv/api", False),
        ("/srv/api", "/srv/api/build\u202e", True),
        ("", "/srv/api/build\u202e", False),
        ("/srv/api", "", False),
    ):
        given = {"project_dir": project_dir, "cwd": cwd}
        if is_hooked:
            desk.asks(cwd=cwd)
            desk.s = desk.session_of(**given)
            shown = desk.request()["request"]
        else:
            asked = Block("permission", 1.0, tool="Bash", detail="make all", shown=True)
            transcript = desk.writes(BASH, cwd=cwd)
            desk.s = desk.session_of(blocks={":": asked}, transcript=transcript, **given)
            shown = desk.request(request="")["request"]
        part = {key: shown["parts"][-1].get(key) for key in last}
        assert moved == (part == last), (given, shown["parts"])
        assert len(shown["parts"]) == 2 + moved


def test_only_a_command_shows_its_folder(desk: Desk) -> None:
    """For a tool that changes a file, the folder does not matter."""
    path = desk.home.root / "new.txt"
    asks_to_write(desk, path)
    given = {"tool_name": "Write", "tool_input": {"file_path": str(path), "content": "new\n"}}
    desk.asks(cwd="/srv/other", **given)
    desk.s = replace(desk.s, project_dir="/srv/api", cwd="/srv/other")
    assert parts_of(desk) == [("file", "", str(path), "", "", "new\n")]


# The files that a request is about


def parts_of(desk: Desk, **given: Any) -> list[tuple[str, ...]]:
    found = desk.request(**given)["request"]["parts"]
    keys = ("kind", "label", "path", "old", "new", "text")
    return [tuple(part.get(key, "") for key in keys) for part in found]


def asks_to_write(desk: Desk, path: Path, tool: str = "Write", **given: Any) -> PlayedHook:
    given = given or {"content": "new\n"}
    desk.asks(tool_name=tool, tool_input={"file_path": str(path), **given})
    hook = desk.waits()
    desk.becomes(tool=tool, detail=str(path), pipe="1.1")
    return hook


def test_a_file_on_a_mount_that_a_program_serves_is_shown_too(desk: Desk) -> None:
    """Such as FUSE and 9p, which a process of its own reads, as they may hang."""
    source = desk.home.root / "source"
    source.mkdir()
    (source / "w.txt").write_text("old\n")
    mount = HungMount(source, desk.home.root / "mount")
    try:
        path = mount.place / "w.txt"
        hook = asks_to_write(desk, path)
        assert parts_of(desk) == [("diff", REPLACED, str(path), "old\n", "new\n", "")]
        assert desk.answer()["way"] == "hook"
        assert "allow" in hook.said[0]
    finally:
        mount.close()


def test_a_patch_is_bound_to_each_file_that_it_changes(
    home: Home, processes: Callable[..., int]
) -> None:
    """Of Codex and OpenCode, too: it would be applied to what nobody has seen."""
    one, two = (home.root / name for name in ("one.txt", "two.txt"))
    patch = f"*** Begin Patch\n*** Update File: one.txt\n@@\n-a\n+b\n*** Add File: {two}\n+c\n"
    ids = {"id": "per_1", "sessionID": "s", "permission": "edit"}
    files = {"filepath": "one.txt, two.txt", "files": [{"filePath": str(p)} for p in (one, two)]}
    for agent, payload in (
        ("codex", {"tool_name": "apply_patch", "tool_input": {"command": patch}}),
        ("opencode", {"properties": {**ids, "metadata": {**files, "diff": patch}}}),
    ):
        desk = Desk(home, processes(agent))
        desk.asks(agent, cwd=str(home.root), type="permission.asked", **payload)
        desk.s = desk.session_of(agent=agent)
        one.write_text("a\n")
        two.unlink(missing_ok=True)
        digests = [desk.request()["request"]["digest"]]
        for path in (one, two):
            path.write_text("another\n")
            digests.append(desk.request()["request"]["digest"])
            assert desk.answer(digest=digests[-2])["why"].startswith("the request has changed")
        assert len({*digests}) == 3
    many = "".join(f"*** Delete File: {n}\n" for n in range(MOST_FILES + 1))
    desk = Desk(home, processes("codex"))
    desk.asks("codex", cwd="/", tool_name="apply_patch", tool_input={"command": many})
    desk.s = desk.session_of(agent="codex")
    assert desk.request()["request"]["why"].startswith("it changes more than 100 files")


def test_what_a_file_holds_can_be_left_out(desk: Desk) -> None:
    """For those who may only look: no choices; what they read has the digest of the whole."""
    path = desk.home.root / "w.txt"
    path.write_text("a secret\n")
    asks_to_write(desk, path)
    for given in ({}, {"ways": False}):
        assert "a secret" in str(desk.request(**given))
        assert "a secret" not in str(desk.request(contents=False, **given))
    assert parts_of(desk, contents=False) == [("file", WITHHELD, str(path), "", "", "new\n")]
    shown = desk.request(contents=False)["request"]
    assert not shown.get("choices") and not shown["complete"] and shown["why"] == READS
    assert shown["way"] == "look"
    digests = {desk.request(contents=c)["request"]["digest"] for c in (True, False)}
    assert 1 == len(digests)
    path.write_text("another\n")
    assert desk.request()["request"]["digest"] not in digests


def test_what_a_file_would_lose_is_shown(desk: Desk) -> None:
    path = desk.home.root / "w.txt"
    asks_to_write(desk, path)
    assert parts_of(desk) == [("file", "", str(path), "", "", "new\n")]
    path.write_text("old\n")
    assert parts_of(desk) == [("diff", REPLACED, str(path), "old\n", "new\n", "")]
    path.write_text("x" * (LARGEST + 1))
    assert parts_of(desk) == [("file", TOO_LARGE, str(path), "", "", "new\n")]


@pytest.mark.parametrize(("new", "done"), [("old", "removed"), ("old\n\n", ""), ("one\n", "")])
def test_a_line_break_that_comes_or_goes_at_the_end_is_named(
    desk: Desk, new: str, done: str
) -> None:
    """No row of a diff shows it; whoever may not see what the file holds is not told either."""
    path = desk.home.root / "w.txt"
    path.write_text("old\n")
    asks_to_write(desk, path, content=new)
    (part,) = desk.request()["request"]["parts"]
    assert [*part.get("warnings", ())] == ([f"a line break {done} at the end"] if done else [])
    (part,) = desk.request(contents=False)["request"]["parts"]
    assert "warnings" not in part


@pytest.mark.parametrize(
    ("tool", "given"),
    [("Write", {}), ("Edit", {"old_string": "a", "new_string": "b", "replace_all": True})],
)
def test_a_file_that_changes_after_the_look_is_looked_at_again(
    desk: Desk, tool: str, given: dict[str, Any]
) -> None:
    path = desk.home.root / "w.txt"
    path.write_text("a\n")
    hook = asks_to_write(desk, path, tool, **given)
    digest = desk.request()["request"]["digest"]
    path.write_text("a\na\n")
    assert (
        desk.answer(digest=digest)["why"]
        == "the request has changed since you read it; read it again"
    )
    assert hook.said == []
    assert desk.answer()["way"] == "hook"


@pytest.mark.parametrize("tool", ["Write", "Edit", "Read"])
def test_a_file_that_a_link_leads_to_is_shown(desk: Desk, tool: str) -> None:
    """Its folder may be the link; a link above the project leads nowhere else."""
    project, outside = desk.home.root / "project", desk.home.root / "outside"
    (project / "own").mkdir(parents=True)
    outside.mkdir()
    (project / "docs").symlink_to(outside)
    (desk.home.root / "there").symlink_to(desk.home.root)
    cwd = desk.home.root / "there" / "project"
    given = {"old_string": "a", "new_string": "b"} if tool == "Edit" else {"content": "x"}
    for folder, real in (("docs", outside / "a.txt"), ("own", None)):
        desk.asks(tool_name=tool, tool_input={"file_path": str(cwd / folder / "a.txt"), **given})
        desk.s = replace(desk.session_of(), cwd=str(cwd))
        desk.becomes(tool=tool)
        desk.s = replace(desk.s, cwd=str(cwd))
        links = [path for _, label, path, *_ in parts_of(desk) if label == LINKED]
        assert links == ([str(real)] if real else [])


def test_a_plan_that_is_no_longer_in_its_file_is_not_approved(desk: Desk) -> None:
    """The CLI reads that file again once the plan is approved."""
    path = desk.home.root / "plan.md"
    path.write_text("# Do it\n")
    desk.asks(tool_name="ExitPlanMode", tool_input={"plan": "# Do it", "planFilePath": str(path)})
    hook = desk.waits()
    desk.becomes(asks="plan", tool="ExitPlanMode", pipe="1.1")
    shown = desk.request()["request"]
    assert "approve" in [choice["id"] for choice in shown["choices"]]
    path.write_text("# rm everything\n")
    why = f"{path} no longer holds what you were asked about{THERE}"
    assert desk.answer("approve", digest=shown["digest"])["why"] == why
    assert (desk.request()["request"]["why"], hook.said) == (why, [])


@pytest.mark.parametrize(
    ("named", "real"),
    [
        ("w.txt", "project/w.txt"),
        ("../w.txt", "w.txt"),
        ("~/home/w.txt", "home/w.txt"),
    ],
)
def test_a_short_path_is_shown_and_bound_whole(desk: Desk, named: str, real: str) -> None:
    """The CLI takes it relative to the session's folder, or to the user's home."""
    project, path = desk.home.root / "project", desk.home.root / real
    for folder in (project, path.parent):
        folder.mkdir(exist_ok=True)
    desk.asks(tool_name="Write", cwd=str(project), tool_input={"file_path": named, "content": "x"})
    desk.becomes(tool="Write")
    assert parts_of(desk)[1:] == [("file", SHORT, str(path), "", "", "")]
    digest = desk.request()["request"]["digest"]
    path.write_text("old")
    assert desk.request()["request"]["digest"] != digest
    assert parts_of(desk)[0] == ("diff", REPLACED, named, "old", "x", "")


@pytest.mark.parametrize("named", ["w.txt", "~somebody/w.txt", "/a\0b"])
@pytest.mark.parametrize("tool", ["Write", "Read", "Edit", "ExitPlanMode"])
def test_what_names_no_file_is_answered_there(desk: Desk, named: str, tool: str) -> None:
    given = {"file_path": named, "planFilePath": named, "plan": "# Do it", "content": "x"}
    desk.asks(tool_name=tool, tool_input=given | {"old_string": "a", "new_string": "b"})
    desk.becomes(tool=tool, asks="plan" if tool == "ExitPlanMode" else "permission")
    shown = desk.request()["request"]
    assert not shown["complete"] and not shown.get("choices")
    assert shown["why"] == f"it is not known which file “{marked(named)}” is{THERE}"


def test_the_name_behind_a_link_may_be_any_bytes(desk: Desk) -> None:
    path, other = desk.home.root / "w.txt", os.fsencode(desk.home.root / "other-") + b"\xff"
    path.symlink_to(os.fsdecode(other))
    asks_to_write(desk, path)
    shown = [path for _, label, path, *_ in parts_of(desk) if label == LINKED]
    assert shown == [str(desk.home.root / "other-") + "<U+DCFF>"]


def test_a_file_that_cannot_be_read_is_not_called_large(desk: Desk) -> None:
    path = desk.home.root / "w.txt"
    path.mkdir()
    asks_to_write(desk, path)
    assert parts_of(desk) == [("file", UNREADABLE, str(path), "", "", "new\n")]
    path.rmdir()
    assert parts_of(desk) == [("file", "", str(path), "", "", "new\n")]
