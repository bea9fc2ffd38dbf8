"""The session that a name means, and the message if it means several."""

from __future__ import annotations

import re

from rig.shell import Shell, fill


def test_a_session_can_be_named_by_id_prefix_project_or_name(shell: Shell) -> None:
    fill(shell)
    shell.bellboard("name", "b1", "the site")
    for called in ("b1", "b", "web", "the site"):
        assert "the site  new → idle" in shell.bellboard("history", called).stdout
    assert shell.fails("explain", "api") == (
        "bellboard: 2 sessions match api: a1 (title 0), a2 (title 1); give one of these ids\n"
    )
    assert shell.fails("explain", "nobody") == (
        "bellboard: no session matches nobody; run `bellboard list` to see them all\n"
    )


def test_a_name_comes_before_the_start_of_an_id(shell: Shell) -> None:
    """Of another session, which has any id; else a script's own names would fail now and then."""
    shell.emitted(30, "fe-1", "UserPromptSubmit", cwd="/w/api", prompt="x")
    assert "UserPromptSubmit" in shell.bellboard("explain", "fe").stdout
    shell.emitted(20, "b1", "UserPromptSubmit", cwd="/w/fe", prompt="x")
    shell.emitted(10, "b1", "Stop", cwd="/w/fe")
    assert "Stop" in shell.bellboard("explain", "fe").stdout
    assert "Stop" not in shell.bellboard("explain", "fe-").stdout


def test_the_start_of_several_ids_is_refused_though_they_have_ended(shell: Shell) -> None:
    for n, sid in enumerate(("over-1", "over-2")):
        shell.emitted(50 - n, sid, "SessionStart", cwd="/w/api")
        shell.emitted(40 - n, sid, "SessionEnd", reason="logout")
    assert shell.fails("goto", "over") == (
        "bellboard: 2 sessions match over: over-1, over-2; give one of these ids\n"
    )


def test_a_session_is_named_by_its_last_prompt(shell: Shell) -> None:
    """The last prompt names a session without a title, unless it has another name."""
    shell.emitted(30, "a1", "UserPromptSubmit", cwd="/w/api", prompt="plan the new region")
    assert "UserPromptSubmit" in shell.bellboard("explain", "plan the new region").stdout
    shell.bellboard("name", "plan the new region", "regions")
    assert "no session matches plan" in shell.fails("explain", "plan the new region")
    assert "UserPromptSubmit" in shell.bellboard("explain", "regions").stdout


def test_what_came_for_a_session_that_is_not_listed_is_explained(shell: Shell) -> None:
    """The log has it, with the reason; the start of its id is enough, if no other begins so."""
    shell.emitted(30, "lost-1", "Stop", cwd="/w/api")
    told = shell.bellboard("explain", "lost").stdout
    assert " not listed: each event says why\n" in told
    assert re.search(r"Stop +refused +the session is not listed", told)
    assert '"kind":"stop"' in shell.bellboard("record", "--session", "lost-1").stdout
    shell.emitted(20, "lost-2", "Stop", cwd="/w/api")
    assert "2 sessions in the log match lost: lost-1, lost-2; give" in shell.fails(
        "explain", "lost"
    )
    assert "Stop" in shell.bellboard("explain", "lost-2").stdout


def test_each_id_of_an_ambiguous_name_is_as_short_as_it_can_be(shell: Shell) -> None:
    """No other session has that start or that name, so the command accepts it."""
    ids = ["7bf3aa00-1", "7bf3aa00-2", "f4a69c01-3", "f4b7-4"]
    for sid in ids:
        prompt = f"add rate limits to the gateway of {sid}"
        shell.emitted(30, sid, "UserPromptSubmit", cwd="/w/api", prompt=prompt)
    shell.emitted(30, "other", "UserPromptSubmit", cwd="/w/f4a6", prompt="x")
    said = shell.fails("explain", "api")
    given = re.findall(r"(\S+) \(add rate limits to the…\)", said)
    assert given == ["7bf3aa00-1", "7bf3aa00-2", "f4a69", "f4b7"]
    for start, sid in zip(given, ids, strict=True):
        shell.bellboard("label", start, f"OF-{sid}")
        assert shell.sessions()[sid]["label"] == f"OF-{sid}"


def test_a_name_of_several_means_the_one_of_which_it_makes_sense(shell: Shell) -> None:
    """To answer, the one that asks; to go there, the one that needs you."""
    for sid in ("a1", "a2"):
        shell.emitted(30, sid, "UserPromptSubmit", cwd="/w/api", prompt="x")
    assert "2 sessions match api" in shell.fails("goto", "api")
    assert "2 sessions match api" in shell.fails("answer", "api")
    shell.emitted(20, "a2", "PermissionRequest", cwd="/w/api", tool_name="Bash")
    shell.emitted(10, "a2", "Notification", cwd="/w/api", notification_type="permission_prompt")
    assert "a2: its terminal is out of reach" in shell.fails("goto", "api")
    assert "match" not in shell.fails("answer", "api")
    assert "2 sessions match api" in shell.fails("explain", "api")
