"""The hook waits for an answer, in every shell that may be /bin/sh, and for nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bellboard.storage.answers import TAKEN
from bellboard.storage.item import Item
from bellboard.storage.spool import Spool
from rig import tools
from rig.waiting import PATIENCE, eventually
from waiting_hook import Hook

pytestmark = [pytest.mark.files, pytest.mark.quick]

SHELLS = {"dash": (), "bash": (), "busybox": ("sh",), "zsh": ()}
ANSWER = b'{"hookSpecificOutput":"\\n %s \\u0000 \\t $(touch x) `id` $HOME \\\\"}'
#: Bash needs to be told; other shells have them at once. And the hook is kept from removing them.
ALIASES = "command shopt -s expand_aliases 2>/dev/null\nalias unalias=:"
Ask = Callable[..., Hook]


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, ...]:
    """Return a shell as /bin/sh: bash and zsh behave differently under that name."""
    path = tools.executable(request.param)
    if request.param in ("bash", "zsh"):
        (tmp_path / "sh").symlink_to(path)
        path = tmp_path / "sh"
    return (str(path), *SHELLS[request.param])


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    made = Spool(tmp_path / "home")
    made.prepare()
    return made


@pytest.fixture
def ask(spool: Spool, request: pytest.FixtureRequest) -> Iterator[Ask]:
    """ask(**more) → a hook that has just started."""
    started: list[Hook] = []

    def one(**more: Any) -> Hook:
        if "shell" in request.fixturenames:
            more.setdefault("shell", request.getfixturevalue("shell"))
        started.append(Hook(spool.home, **more))
        return started[-1]

    yield one
    for hook in started:
        hook.end()


def event(spool: Spool) -> Item:
    """Wait for the event of the hook."""
    name = eventually(spool.scan)[0]
    item = spool.read(name)
    assert item
    spool.unlink([name])
    return item


@pytest.mark.usefixtures("shell")
def test_it_prints_the_answer_and_nothing_else(
    spool: Spool, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte, also one that no pipe can hold at once; one hook takes a pipe."""
    monkeypatch.setattr("bellboard.storage.pipes.PATIENCE", PATIENCE)
    for answer in (ANSWER, b'{"x":"' + b"\\n" * 100_000 + b'"}'):
        spool.pipes.offer()
        hook = ask()
        pipe = event(spool).pipe
        assert spool.pipes.found() == {pipe: True}
        assert hook.waits
        assert spool.pipes.send(pipe, answer)
        assert hook.printed() == answer + b"\n"
        assert not spool.pipes.send(pipe, answer)
        spool.pipes.remove(pipe)
    assert spool.pipes.found() == {}


@pytest.mark.usefixtures("shell")
def test_it_leaves_silently(spool: Spool, ask: Ask) -> None:
    """Dismissed, cut off in the middle of an answer, or left by the last host."""
    spool.pipes.offer()
    hook = ask()
    spool.pipes.dismiss(event(spool).pipe)
    assert hook.printed() == b""
    for start in (b"", b'{"x":', ANSWER + b"\n", ANSWER + b"\nen"):
        spool.pipes.offer()
        hook = ask()
        pipe = event(spool).pipe
        fd = os.open(spool.home / "answers" / pipe, os.O_WRONLY)
        os.write(fd, start)
        os.close(fd)
        spool.pipes.let_go(pipe)
        assert hook.printed() == b""
        spool.pipes.remove(pipe)
    spool.pipes.offer()
    hook = ask()
    spool.pipes.let_go(event(spool).pipe)
    assert hook.printed() == b""
    assert spool.pipes.found() == {}  # nobody else could have removed it


@pytest.mark.usefixtures("shell")
def test_it_does_not_wait_without_a_promise(spool: Spool, ask: Ask, tmp_path: Path) -> None:
    """Without a pipe, of a dead host, taken, or something else under its name."""
    answers = spool.home / "answers"
    (tmp_path / "pipe").touch()
    os.mkfifo(tmp_path / "fifo")
    os.mkfifo(answers / "2147483647.1")  # no such process
    os.mkfifo(answers / f"{os.getpid()}.1")
    (answers / f"{os.getpid()}.1{TAKEN}").touch()
    (answers / f"{os.getpid()}.2").touch()
    (answers / f"{os.getpid()}.3").symlink_to(tmp_path / "fifo")
    (answers / f"{os.getpid()}.4").mkdir()
    assert ask().printed() == b""
    assert event(spool).pipe == ""


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("whose", ["a stranger", "a link"])
def test_it_waits_in_no_folder_that_others_can_change(
    spool: Spool, ask: Ask, tmp_path: Path, whose: str
) -> None:
    """Although the pipe in it is ours."""
    spool.pipes.offer()
    answers = spool.home / "answers"
    if whose == "a link":
        answers.rename(tmp_path / "answers")
        answers.symlink_to(tmp_path / "answers")
    elif os.geteuid() == 0:
        os.chown(answers, 54321, 54321)
    else:
        pytest.skip("only root can give a folder away")
    hook = ask()
    assert event(spool).pipe == ""
    assert hook.printed() == b""


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("planted", ["file", "pipe"])
def test_what_replaces_its_pipe_gives_no_answer(
    spool: Spool, ask: Ask, tmp_path: Path, planted: str
) -> None:
    """A link made between the check of the pipe and its opening: to a file, or another's pipe."""
    other, answers = tmp_path / "other", spool.home / "answers"
    spool.pipes.offer()
    [pipe] = spool.pipes.found()
    if planted == "pipe" and os.geteuid() == 0:
        os.mkfifo(other)
        os.chown(other, 54321, 54321)
    else:
        other.write_bytes(ANSWER + b"\nend\n")
    swap = f"mv {answers}/{pipe} {tmp_path}/was; ln -s {other} {answers}/{pipe}"
    hook = ask(first=f"{ALIASES}; alias kill='{swap}; kill'\n")
    assert hook.printed() == b""
    assert (tmp_path / "was").exists()
    assert event(spool).pipe == ""


@pytest.mark.usefixtures("shell")
def test_a_subagent_is_recognized_without_grep(spool: Spool, ask: Ask) -> None:
    """Which a machine need not have; what it does have is in coreutils."""
    spool.pipes.offer()
    lacks = f"{ALIASES}; alias grep=false\n"
    assert ask(first=lacks, agent_id="a1", long="x" * 70_000).printed() == b""


@pytest.mark.usefixtures("shell")
def test_an_argument_of_a_tool_makes_no_subagent(spool: Spool, ask: Ask) -> None:
    """It may have any name: `agent_id` belongs to a subagent only beside the tool's name."""
    given = {"agent_id": "7", "tool_input": {"agent_id": "8"}}
    spool.pipes.offer()
    hook = ask(tool_input=given)
    pipe = event(spool).pipe
    assert hook.waits
    assert spool.pipes.send(pipe, ANSWER)
    assert hook.printed() == ANSWER + b"\n"
    spool.pipes.remove(pipe)
    spool.pipes.offer()
    assert ask(tool_input=given, agent_id="a1").printed() == b""


@pytest.mark.usefixtures("shell")
def test_it_does_not_wait_where_that_holds_the_dialog_back(spool: Spool, ask: Ask) -> None:
    """For a subagent, of a headless run, for another agent, or with standard output closed."""
    spool.pipes.offer()
    assert ask(agent_id="a1").printed() == b""
    [pipe] = spool.pipes.found()
    assert event(spool).pipe == pipe  # it is sent away by a host, if nothing else does
    spool.pipes.remove(pipe)
    spool.pipes.offer()
    for env in ({"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}, {"BELLBOARD_AGENT": "codex"}):
        assert ask(env=env).printed() == b""
        assert event(spool).pipe == ""


def test_a_suspended_host_promises_nothing(spool: Spool, ask: Ask) -> None:
    """As the host of a Neovim after CTRL-Z, in whose terminal the CLI may run."""
    other = subprocess.Popen(["sleep", "60"])
    try:
        other.send_signal(signal.SIGSTOP)
        os.mkfifo(spool.home / "answers" / f"{other.pid}.1")
        eventually(lambda: "T (stopped)" in Path(f"/proc/{other.pid}/status").read_text())
        assert ask().printed() == b""
        assert event(spool).pipe == ""
    finally:
        other.kill()
        other.wait()


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it(spool: Spool, ask: Ask, number: int) -> None:
    """The CLI sends SIGTERM; a terminal that is closed sends SIGHUP."""
    spool.pipes.offer()
    hook = ask()
    pipe = event(spool).pipe

    def ends() -> bool:
        hook.process.send_signal(number)  # again: it ignores a hangup until its event is written
        return not hook.waits

    eventually(ends)
    # A child of it may live a moment longer.
    eventually(lambda: not spool.pipes.is_read(pipe))


def test_it_is_one_process(spool: Spool, ask: Ask) -> None:
    """While it waits: cat and the others have ended."""
    spool.pipes.offer()
    hook = ask()
    event(spool)
    pid = hook.process.pid
    eventually(lambda: not Path(f"/proc/{pid}/task/{pid}/children").read_text())
    assert hook.waits


def test_hundreds_at_once_with_few_pipes(spool: Spool, ask: Ask) -> None:
    """Each pipe has one hook, the others do not wait, and every event arrives."""
    for _ in range(3):
        spool.pipes.offer()
    hooks = [ask(session_id=f"s{n}") for n in range(100)]
    eventually(lambda: len(spool.scan()) == len(hooks))
    pipes = [item.pipe for name in spool.scan() if (item := spool.read(name))]
    assert sorted(filter(None, pipes)) == sorted(spool.pipes.found())
    eventually(lambda: sum(hook.waits for hook in hooks) == 3)
    for pipe in spool.pipes.found():
        spool.pipes.dismiss(pipe)
    assert {hook.printed() for hook in hooks} == {b""}


def test_an_answer_is_one_line(spool: Spool) -> None:
    """Anything else would be taken for its end."""
    for line in (b"", b"a\nb", b"a\0b"):
        with pytest.raises(ValueError, match="one line"):
            spool.pipes.send("1.1", line)


def test_only_a_pipe_of_ours_gets_an_answer(spool: Spool, tmp_path: Path) -> None:
    """Not a link to one, nor a file; and never a path."""
    os.mkfifo(tmp_path / "fifo")
    read = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    answers = spool.home / "answers"
    (answers / "1.1").symlink_to(tmp_path / "fifo")
    (answers / "1.2").touch()
    os.link(tmp_path / "fifo", answers / "a.fifo")
    for name in ("1.1", "1.2", "a.fifo", "../answers/1.2", "1.3"):
        assert not spool.pipes.send(name, ANSWER)
        assert not spool.pipes.hold(name)
    if os.geteuid() == 0:
        os.link(tmp_path / "fifo", answers / "1.4")
        os.chown(answers / "1.4", 12345, 12345)
        assert not spool.pipes.send("1.4", ANSWER)
    assert os.read(read, 1) == b""
    os.close(read)
    assert (answers / "1.2").read_bytes() == b""


def test_sending_waits_for_no_hook(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not read, with a pipe that cannot grow, costs a moment and gets no answer."""
    monkeypatch.setattr("bellboard.storage.pipes.PATIENCE", 0.05)
    monkeypatch.setattr("bellboard.storage.pipes._SET_ROOM", None)
    spool.pipes.offer()
    [pipe] = spool.pipes.found()
    read = os.open(spool.home / "answers" / pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert not spool.pipes.send(pipe, b"x" * 1_000_000)
    spool.pipes.dismiss(pipe)
    os.close(read)
    spool.pipes.offer()
    [pipe] = spool.pipes.found()
    got: list[bytes] = []
    monkeypatch.setattr("bellboard.storage.pipes.PATIENCE", 30.0)
    path = spool.home / "answers" / pipe
    thread = threading.Thread(target=lambda: got.append(path.read_bytes()))
    thread.start()
    eventually(lambda: spool.pipes.is_read(pipe))
    assert spool.pipes.send(pipe, b"x" * 1_000_000)
    spool.pipes.let_go(pipe)
    thread.join()
    assert got == [b"x" * 1_000_000 + b"\nend\n"]
