"""The last turn of a session: its reply whole, and what it changed, as far as that is known."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from datetime import datetime, timezone
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellboard.agents import tailing
from bellboard.agents.claude.transcript import is_noise, last_turn
from bellboard.agents.codex.dialect import last_turn as codex_turn
from bellboard.agents.tailing import newest_first
from bellboard.core.session import Block, Session
from editor.test_live import STATUSLINE, hosted
from files.test_transcript import assistant, at, says, user, write
from rig.fixtures import Agents, Editors
from rig.home import Home
from rig.host.desk import errands
from rig.shell import Shell

SAID = "# Done\n\nI changed **all** of them:\n\n- `a.py`\n- `new.md`\n\n```py\nprint(4)\n```"
COMMIT = ("-c", "user.name=u", "-c", "user.email=u@example.org", "commit", "-qm", "m")


def git(home: Home, *args: str, later: float = 0.0) -> None:
    env = {**home.env, "GIT_COMMITTER_DATE": f"{time.time() + later:.0f} +0000"}
    subprocess.run(["git", *args], cwd=home.project, env=env, check=True)


@pytest.fixture
def repository(home: Home) -> Path:
    """A project with one commit, of files that have been there for long."""
    texts = {"a.py": "1\n", "sed.txt": "old\n", "moved.txt": "m\n" * 9, "gone.txt": "g\n"}
    (home.project / "sub").mkdir()
    for name, text in {**texts, "by-user.txt": "u\n", "sub/x.txt": "x\n"}.items():
        (home.project / name).write_text(text)
    git(home, "init", "-q", "-b", "main")
    git(home, "add", ".")
    git(home, *COMMIT, later=-60)
    time.sleep(0.05)  # the turn begins later than that
    return home.project


def errand(home: Home, s: Session, what: str, **told: Any) -> dict[str, Any]:
    told["session_id"] = s.session_id
    return asyncio.run(errands(home, s, environ=os.environ | home.env).do(what, told))


def turn_of(home: Home, s: Session) -> dict[str, Any]:
    reply = errand(home, s, "turn")
    assert reply["ok"], reply
    return reply["turn"]  # type: ignore[no-any-return]


def diff_of(home: Home, s: Session, path: Path) -> str:
    reply = errand(home, s, "diff", path=str(path))
    return str(reply.get("diff") or reply["why"])


def files_of(turn: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the files, those that are claimed first."""
    fields = ("path", "how", "added", "removed", "was", "unclaimed", "why")
    return [tuple(each.get(name) for name in fields) for each in turn["files"]]


@pytest.mark.live
@pytest.mark.editor
def test_a_turn_of_the_real_cli(
    home: Home, repository: Path, claude: Agents, nvim: Editors
) -> None:
    """Edit, Write, outside the repository, `sed -i`, a rename, `rm`, and the user in between.

    A Neovim beside it shows the same.
    """
    given = {"config": {"answer": {"key_delay": 0}}, "lua": STATUSLINE, "lines": 40}
    editor = hosted(nvim(**given))
    agent = claude(settings={"permissions": {"allow": ["Bash", "Edit", "Write", "Edit(//**)"]}})
    agent.submit("play:changes please")
    agent.happens("Stop")
    agent.becomes("idle")
    (repository / "by-user.txt").write_text("u\nedited\n")
    with (repository / "a.py").open("a") as file:
        file.write("by the user\n")
    [path] = home.claude.glob("projects/*/*.jsonl")
    said = {
        "message": "# Done I changed **all** of them: - `a.py`",
        "hooked": True,
        "over": time.time(),
    }
    s = Session(path.stem, cwd=str(repository), transcript=str(path), turn="completed", **said)
    turn = turn_of(home, s)
    assert (turn["prompt"], turn["text"], turn["tokens"]) == ("play:changes please", SAID, 5 * 462)
    assert 0 < turn["took"] < 60
    aside = str(home.root / "aside.txt")
    outside = "not in a git repository"
    assert files_of(turn) == [
        ("a.py", "changed", 3, 2, None, None, None),
        ("new.md", "created", 3, 0, None, None, None),
        (aside, "created", 1, 0, None, None, outside),
        ("by-user.txt", "changed", None, None, None, True, None),
        ("sed.txt", "changed", None, None, None, True, None),
        ("sub/moved.txt", "renamed", None, None, "moved.txt", True, None),
        ("gone.txt", "deleted", None, None, None, True, None),
    ]
    said = "# the working tree against HEAD: whoever changed it\ndiff --git a/{0} b/{0}\n"
    assert diff_of(home, s, repository / "a.py").startswith(said.format("a.py"))
    assert diff_of(home, s, repository / "a.py").endswith(
        "@@ -1 +1,3 @@\n-1\n+4\n+3\n+by the user\n"
    )
    assert "+# New" in diff_of(home, s, repository / "new.md")
    assert "-old\n+new\n" in diff_of(home, s, repository / "sed.txt")
    assert "-g\n" in diff_of(home, s, repository / "gone.txt")
    assert "it is as in HEAD" == diff_of(home, s, repository / "sub/moved.txt")
    assert diff_of(home, s, Path(aside)) == (
        "# the edits of its tools, from its log: not in a git repository\n"
        f"--- a{aside}\n+++ b{aside}\n@@ -0,0 +1,1 @@\n+x\n"
    )
    assert "does not name that file" in diff_of(home, s, repository / "sub/x.txt")

    editor.shows("+1")
    editor.command("ClaudeSessions answer project")
    editor.shows("I changed **all** of them:")
    editor.shows("renamed from moved.txt")
    editor.press("gd")
    editor.shows("Put the cursor on a file")
    editor.press("gd")
    editor.shows("+by the user")


def test_a_shell_prints_it(shell: Shell, repository: Path) -> None:
    """The same facts, as JSON too; nothing that a terminal acts on."""
    path, now = shell.home.root / "log", {"timestamp": stamp()}
    place = {"cwd": str(repository), "transcript_path": str(path)}
    shell.emit("SessionStart", source="startup", **place)
    shell.emit("UserPromptSubmit", prompt="make it short\x1b[2J", **place)
    assert "project: it is still working; its reply is whole" in shell.fails("show", "s")
    edits = {"file_path": str(repository / "a.py")}
    done = patch("-1", "+2", "+3")
    write(path, {**user("make it short\x1b[2J\nand good"), **now})
    write(path, {**uses("a", "Edit", 2, **edits), **now}, {**result("a", 3, done), **now})
    write(path, {**uses("b", "Bash", 4, command="x"), **now}, {**result("b", 5), **now})
    write(path, {**assistant(says("It *is* now:\n\n- a\x1b[31m"), second=6), **now})
    (repository / "sed.txt").write_text("new\n")
    shell.emit("Stop", last_assistant_message="It *is* now:", **place)
    printed = shell.bellboard("show", "s").stdout
    assert printed == SHOWN
    turn = json.loads(shell.bellboard("show", "s", "--json").stdout)["turn"]
    assert turn["prompt"] == "make it short\nand good"
    assert [each["path"] for each in turn["files"]] == ["a.py", "sed.txt"]
    assert "no session matches" in shell.fails("show", "nobody")


SHOWN = """\
project
0s · 486 tokens

> make it short
> and good

It *is* now:

- a

1 file
  a.py  +2 -1

changed since, by its commands or by somebody else
  sed.txt
"""


# ---------------------------------------------------------------- from a log, without the CLI


def uses(name: str, tool: str, second: float, **given: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": name, "name": tool, "input": given}
    return assistant(block, second=second, id=f"msg-{name}")


def result(name: str, second: float, done: Any = None, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": name, "content": "done", **more}
    entry = {"type": "user", "timestamp": at(second), "toolUseResult": done, "cwd": "/work"}
    return {**entry, "message": {"role": "user", "content": [block]}}


def patch(*rows: str) -> dict[str, Any]:
    return {"structuredPatch": [{"oldStart": 4, "newStart": 4, "lines": [*rows]}]}


def resting(home: Home, path: Path, **more: Any) -> Session:
    known = {"cwd": str(home.project), "turn": "completed", "transcript": str(path), **more}
    return Session("s", **known)


def test_a_turn_begins_where_a_person_spoke(home: Home, tmp_path: Path) -> None:
    """Not where a task ended; a skill is a prompt, a command of the CLI itself is none."""
    path = tmp_path / "log"
    task = "<task-notification>\n<task-id>a</task-id></task-notification>"
    skill = "<command-message>review</command-message>\n<command-name>/review</command-name>\n"
    write(
        path, user("first"), uses("x", "Bash", 2), result("x", 3), assistant(says("One."), second=4)
    )
    queued = {"type": "queued_command", "prompt": "and this", "commandMode": "prompt"}
    write(path, {"type": "attachment", "timestamp": at(3), "attachment": queued})
    turn = turn_of(home, resting(home, path))
    assert ("first\n\nand this", "One.", 3.0) == tuple(turn[k] for k in FACTS)
    write(path, user(task, 20), assistant(says("Heard."), says("Of it."), second=22, id="m"))
    turn = turn_of(home, resting(home, path))
    assert ("first\n\nand this", "Heard.\n\nOf it.", 5.0) == tuple(turn[k] for k in FACTS)
    assert turn["note"].startswith("its commands may have changed other files: ")
    write(path, user("<command-name>/cost</command-name>", 30))
    write(path, user("<local-command-stdout>1 $</local-command-stdout>", 31))
    assert turn == turn_of(home, resting(home, path))
    write(path, user(skill + "<command-args>the last commit</command-args>", 40))
    write(path, assistant(says("Good."), second=41), user("x", 42, isSidechain=True))
    turn = turn_of(home, resting(home, path))
    assert ("/review the last commit", "Good.", 1.0) == tuple(turn[k] for k in FACTS)
    assert "note" not in turn


FACTS = ("prompt", "text", "took")


def stamp() -> str:
    """Return the time in the form of an entry."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def test_a_log_that_is_late_is_waited_for(home: Home, tmp_path: Path) -> None:
    """The hook has reported the end of the turn; its last message is written a moment later."""
    path, known = tmp_path / "log", {"hooked": True, "message": "Done. And more."}
    write(path, user("go"), assistant(says("I begin."), second=2))
    assert turn_of(home, resting(home, path, over=1.0, **known))["text"] == "I begin."
    late = Timer(0.2, write, (path, assistant(says("Done. And more."), second=3, id="m")))
    late.start()
    turn = turn_of(home, resting(home, path, over=time.time(), **known))
    late.join()
    assert turn["text"] == "Done. And more."


def test_what_was_refused_or_failed_changed_nothing(home: Home, tmp_path: Path) -> None:
    """Nor what another agent did in its own log; tokens count once per message."""
    path, file = tmp_path / "log", str(home.project / "a.py")
    edits = {"file_path": file, "old_string": "1", "new_string": "2"}
    write(path, user("go"), uses("a", "Edit", 2, **edits), result("a", 3, "Error", is_error=True))
    write(path, uses("b", "Write", 4, file_path=str(home.project / "b")))
    write(path, uses("c", "Edit", 5, **edits), result("c", 6, patch(" 0", "-1", "+2", "+3")))
    write(path, uses("c", "Edit", 5, **edits), assistant(says("Done."), second=7, id="m"))
    write(path, assistant(says("More."), second=7.1, id="m"))
    turn = turn_of(home, resting(home, path))
    assert files_of(turn) == [("a.py", "deleted", 2, 1, None, None, "not in a git repository")]
    assert (turn["text"], turn["tokens"]) == ("Done.\n\nMore.", 4 * 162)
    assert "note" not in turn


def test_a_notebook_and_a_relative_path(home: Home, tmp_path: Path) -> None:
    """A change without a patch in the log has no count."""
    path = tmp_path / "log"
    (home.project / "n.ipynb").write_text("{}")
    note = {"notebook_path": str(home.project / "sub/../n.ipynb")}
    write(path, user("go"), uses("a", "NotebookEdit", 2, **note), result("a", 3, {"cell_id": "1"}))
    write(
        path,
        uses("b", "Write", 4, file_path="b"),
        result("b", 5, {"type": "create", "content": ""}),
    )
    turn = turn_of(home, resting(home, path))
    assert files_of(turn)[0][:4] == ("n.ipynb", "changed", None, None)
    assert files_of(turn)[1][:4] == ("/work/b", "deleted", 0, 0)


def test_a_commit_in_the_turn_is_not_the_end_of_its_diff(home: Home, repository: Path) -> None:
    """The diff starts at the HEAD before the turn, and includes commits since."""
    path, now = home.root / "log", {"timestamp": stamp()}
    edits = {"file_path": str(repository / "a.py"), "old_string": "1", "new_string": "2"}
    write(path, {**user("go"), **now})
    write(path, {**uses("a", "Edit", 2, **edits), **now})
    write(path, {**result("a", 3, patch("-1", "+2")), **now})
    s = resting(home, path)
    (repository / "a.py").write_text("2\n")
    assert "whoever changed it" in (made := diff_of(home, s, repository / "a.py"))
    git(home, *COMMIT[:-1], "second", "-a", later=5)
    assert made.split("\n")[1:] == diff_of(home, s, repository / "a.py").split("\n")[1:]
    assert "which was HEAD when its turn began" in diff_of(home, s, repository / "a.py")


def test_nothing_of_a_repository_is_run(home: Home, repository: Path) -> None:
    """Filters, hooks, monitors, diffs and transports are programs of a repository."""
    path, ran, now = home.root / "log", home.root / "ran", {"timestamp": stamp()}
    write(path, {**user("go"), **now}, {**uses("a", "Bash", 2), **now})
    write(path, {**assistant(says("Done."), second=4), **now})
    evil = home.root / "evil"
    evil.write_text(f"#!/bin/sh\necho $0 >> {ran}\ncat\n")
    evil.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external", "core.pager", "core.sshCommand", "core.editor"):
        git(home, "config", key, str(evil))
    for key in ("filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.x.textconv"):
        git(home, "config", key, str(evil))
    git(home, "config", "diff.x.command", str(evil))
    git(home, "config", "core.hooksPath", str(home.root))
    git(home, "config", "extensions.partialClone", "origin")
    git(home, "config", "remote.origin.url", f"ext::{evil}")
    git(home, "config", "remote.origin.promisor", "true")
    (repository / ".gitattributes").write_text("* filter=x diff=x\n")
    ran.unlink(missing_ok=True)
    (repository / "sed.txt").write_text("new\n")
    s = resting(home, path)
    changed = {each["path"] for each in turn_of(home, s)["files"]}
    assert {".gitattributes", "sed.txt"} <= changed
    assert "-old\n+new\n" in diff_of(home, s, repository / "sed.txt")
    blobs = subprocess.run(
        ["git", "ls-tree", "HEAD", "sed.txt"], cwd=repository, env=home.env, capture_output=True
    )
    oid = blobs.stdout.split()[2].decode()
    (repository / f".git/objects/{oid[:2]}/{oid[2:]}").unlink()  # as in a partial clone
    assert "+new" in diff_of(home, s, repository / "sed.txt")
    assert not ran.exists(), ran.read_text()


@pytest.mark.parametrize("status", ["working", "blocked"])
def test_a_session_at_work_has_no_last_turn(home: Home, tmp_path: Path, status: str) -> None:
    """The reason names what has to happen first."""
    path = tmp_path / "log"
    write(path, user("go"))
    blocks = {":": Block("permission", 1.0, shown=True)} if status == "blocked" else {}
    reply = errand(home, resting(home, path, turn="working", blocks=blocks), "turn")
    assert not reply["ok"]
    assert ("answer that first" if blocks else "still working") in reply["why"]
    reply = errand(home, resting(home, tmp_path / "none"), "turn")
    assert reply == {"ok": False, "why": "it has said nothing yet"}


def coded(kind: str, second: float, *, of: str = "event_msg", **more: Any) -> dict[str, Any]:
    """Return a line of Codex's log, as 0.171 writes it."""
    return {"timestamp": at(second), "type": of, "payload": {"type": kind, **more}}


def item(kind: str, second: float, **more: Any) -> dict[str, Any]:
    return coded("item_completed", second, item={"type": kind, **more})


def spoke(kind: str, text: str, second: float) -> dict[str, Any]:
    return item(kind, second, content=[{"type": "Text", "text": text}])


def test_codex_keeps_a_turn_in_its_log(home: Home, tmp_path: Path) -> None:
    """Its patches with their lines, also of a file that it moved; a patch that failed is none."""
    path, root = tmp_path / "rollout.jsonl", str(home.project)
    (home.project / "n.txt").write_text("2\n")
    (home.project / "new.txt").write_text("hello\n")
    add = {f"{root}/new.txt": {"type": "add", "content": "hello\n"}}
    diff = {"type": "update", "unified_diff": "@@ -1 +1 @@\n-1\n+2\n"}
    moved = {f"{root}/m.txt": {**diff, "move_path": f"{root}/n.txt"}}
    gone = {f"{root}/d.txt": {"type": "delete", "content": "1\n"}}
    used = {"input_tokens": 9000, "cached_input_tokens": 8900, "output_tokens": 20}
    patch = {"of": "response_item", "name": "exec", "input": "text(await tools.apply_patch(…));"}
    write(
        path, coded("task_started", 1), spoke("UserMessage", "before", 1), coded("task_complete", 2)
    )
    write(path, coded("task_started", 10), spoke("UserMessage", "go", 11))
    write(path, spoke("AgentMessage", "I begin.", 12), coded("custom_tool_call", 12, **patch))
    for n, change in enumerate((add, moved, gone)):
        write(
            path, item("FileChange", 13, changes=change, status="failed" if n > 1 else "completed")
        )
        write(path, coded("token_count", 13, info={"last_token_usage": used}))
    write(path, spoke("AgentMessage", "Done.", 14))
    write(path, coded("task_complete", 15, last_agent_message="# Done"))
    turn = turn_of(home, resting(home, path, agent="codex"))
    assert ("go", "# Done", 5.0) == tuple(turn[key] for key in FACTS)
    why = "not in a git repository"
    assert files_of(turn) == [
        ("new.txt", "created", 1, 0, None, None, why),
        ("n.txt", "renamed", 1, 1, "m.txt", None, why),
    ]
    assert (turn["tokens"], turn.get("note")) == (360, None)
    run = {**patch, "input": "text(await tools.exec_command({cmd: 'make'}));"}
    write(path, coded("custom_tool_call", 16, **run))
    assert (
        "its commands may have changed" in turn_of(home, resting(home, path, agent="codex"))["note"]
    )


def test_of_other_clis_the_words_of_their_hooks_are_known(home: Home) -> None:
    """And it says that this is not all."""
    edited = {"/work/old": 1.0, str(home.project / "new"): 5.0}
    said = {"prompt": "go", "message": "Done…", "began": 4.0, "over": 9.0, "edited": edited}
    s = Session("s", agent="qwen", cwd=str(home.project), turn="completed", **said)
    turn = turn_of(home, s)
    assert ("go", "Done…", 5.0) == tuple(turn[key] for key in FACTS)
    assert [each["path"] for each in turn["files"]] == ["new"]
    assert turn["note"] == "only what its hooks report is known: the beginning of its reply"


def test_of_a_turn_that_failed_the_error_is_shown(home: Home) -> None:
    """It may have said nothing before."""
    said = {"prompt": "go", "error": "overloaded: try again later", "began": 4.0, "over": 9.0}
    turn = turn_of(home, Session("s", cwd=str(home.project), turn="error", **said))
    assert ("go", "overloaded: try again later", 5.0) == tuple(turn[key] for key in FACTS)
    assert turn["note"] == "only what its hooks report is known"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=9), x, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_a_damaged_log_has_a_turn_or_none(data: st.DataObject) -> None:
    """Any value at any place of an entry."""
    now = {"type": "create", "content": "x"}
    entries = [user("go"), uses("a", "Write", 2, file_path="/x"), result("a", 3, now)]
    entries += [uses("b", "Edit", 4, file_path="/x"), result("b", 5, patch("+1"))]
    coding = [
        coded("task_started", 1),
        spoke("UserMessage", "go", 2),
        spoke("AgentMessage", "1", 3),
    ]
    coding += [item("FileChange", 4, changes={"/x": {"type": "add"}}, status="completed")]
    for decode, rows in ((last_turn, entries), (codex_turn, coding)):
        broken = json.loads(json.dumps(rows))
        for _ in range(data.draw(st.integers(1, 3))):
            at_: Any = broken
            keys: list[Any] = [data.draw(st.integers(0, len(broken) - 1))]
            while isinstance(inner := at_[keys[-1]], dict | list) and inner:
                if data.draw(st.booleans()):
                    break
                at_ = inner
                among = [*inner] if isinstance(inner, dict) else [*range(len(inner))]
                keys.append(data.draw(st.sampled_from(among)))
            at_[keys[-1]] = data.draw(JSON)
        decode(x for x in broken[::-1] if isinstance(x, dict))
    for odd in (5, "x", {"content": 5}, {"content": [5, {"type": "text", "text": 5}]}):
        last_turn([{"type": kind, "message": odd} for kind in ("user", "assistant")])


def test_a_log_is_read_from_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces of any size: whole lines, newest first; none too long, none beyond a limit."""
    path = tmp_path / "log"
    entries = [{"n": n, "text": "x" * (n * 37 % 200)} for n in range(60)]
    write(path, *entries[:30], b'{"n": "' + b"y" * 5000 + b'"}\n', *entries[30:], b'{"n": 1')
    monkeypatch.setattr(tailing, "LINE", 1000)
    for chunk in (1, 7, 100, 999, 10_000):
        monkeypatch.setattr(tailing, "CHUNK", chunk)
        assert entries[::-1] == [*newest_first(str(path), is_noise)]
    monkeypatch.setattr(tailing, "CHUNK", 100)
    assert 0 < len([*newest_first(str(path), is_noise, 500)]) < 10
    monkeypatch.undo()
    with path.open("ab") as file:
        file.truncate(100 << 20)  # of zeros
    began = time.monotonic()
    assert [] == [*newest_first(str(path), is_noise)]
    assert time.monotonic() - began < 2
    assert [] == [*newest_first("/nowhere", is_noise)]
