"""The hook waits for an answer, in every shell that may be /bin/sh, and for nothing else."""

from __future__ import annotations

import math
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from bellboard.storage.answers import REPLY, REPLY_COUNTS, TAKEN
from bellboard.storage.event_file import Item
from bellboard.storage.spool import Spool
from rig.fetched import tools
from rig.host.waiting_hook import Hook
from rig.machines.mounts import sandboxed
from rig.waiting import eventually, rest

SHELLS = {"dash": (), "bash": (), "busybox": ("sh",), "zsh": ()}
NAME = "00004711.1.PermissionRequest"
ANSWER = b'{"hookSpecificOutput":"\\n %s \\u0000 \\t $(touch x) `id` $HOME \\\\"}'
#: Bash needs to be told; other shells have them at once. And the hook is kept from removing them.
ALIASES = "command shopt -s expand_aliases 2>/dev/null\nalias unalias=:"
Ask = Callable[..., Hook]


@pytest.fixture(params=[*SHELLS, *tools.MORE_SHELLS])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, ...]:
    """Return a shell as /bin/sh: bash and zsh behave differently under that name."""
    path = tools.executable(request.param)
    if request.param in ("bash", "zsh", *tools.MORE_SHELLS):
        (tmp_path / "sh").symlink_to(path)
        path = tmp_path / "sh"
    return (str(path), *SHELLS.get(request.param, ()))


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


def send(spool: Spool, item: Item, answer: bytes = ANSWER) -> bool:
    return spool.pipes.send(item.pipe, item.name, item.payload, answer)


@pytest.mark.usefixtures("shell")
def test_it_prints_the_answer_and_nothing_else(spool: Spool, ask: Ask) -> None:
    """Byte for byte, also a long one, to anything that is asked; one hook takes a pipe."""
    asked = "".join(map(chr, range(1, 256))) + "a\\b" + "x" * 200_000 + "\n\n"
    for answer in (ANSWER, b'{"x":"' + b"\\n" * 100_000 + b'"}'):
        spool.pipes.offer()
        hook = ask(tool_input={"command": asked})
        item = event(spool)
        assert spool.pipes.found() == {item.pipe: True}
        assert spool.pipes.owner(item.pipe) == item.name
        assert hook.waits
        assert send(spool, item, answer)
        assert hook.printed() == answer + b"\n"
        assert not send(spool, item, answer)
        spool.pipes.remove(item.pipe)
    assert spool.pipes.found() == {}


@pytest.mark.usefixtures("shell")
def test_it_waits_as_long_as_its_question(spool: Spool, ask: Ask) -> None:
    """Not only as long as bash reads where a variable says so, as administrators set it."""
    spool.pipes.offer()
    hook = ask(env={"TMOUT": "1"})
    item = event(spool)
    rest(1.2)
    assert hook.waits
    assert send(spool, item)
    assert hook.printed() == ANSWER + b"\n"


@pytest.mark.usefixtures("shell")
def test_it_leaves_silently(spool: Spool, ask: Ask) -> None:
    """The hook was dismissed, also by an older host, or its last host has left."""
    for dismissed in (spool.pipes.dismiss, partial(dismissed_before, spool)):
        spool.pipes.offer()
        hook = ask()
        dismissed(event(spool).pipe)
        assert hook.printed() == b""
    hooks = []
    for start in (b"", b'{"x":', ANSWER + b"\n", ANSWER + b"\nend\n"):
        spool.pipes.offer()
        hooks.append(ask())
        pipe = event(spool).pipe
        wake(spool, pipe, start)
        spool.pipes.let_go(pipe)
    assert {hook.printed() for hook in hooks} == {b""}
    assert spool.pipes.found() == {}  # nobody else could have removed them


def wake(spool: Spool, pipe: str, said: bytes = b"\n") -> None:
    """Write into a pipe, as anything can that sees it."""
    (spool.home / "answers" / pipe).write_bytes(said)


def dismissed_before(spool: Spool, pipe: str) -> None:
    """Send a hook away as earlier versions did: they woke it first."""
    wake(spool, pipe)
    spool.pipes.remove(pipe)


@pytest.mark.usefixtures("shell")
def test_what_is_written_into_its_pipe_gives_no_answer(spool: Spool, ask: Ask) -> None:
    """From a sandbox, say: it goes on to wait for a host, and costs next to nothing meanwhile."""
    spool.pipes.offer()
    hook = ask()
    item = event(spool)
    wake(spool, item.pipe, ANSWER + b"\nend\n")
    wake(spool, item.pipe, b"\n" * 40_000 + ANSWER)  # as much as it holds, and not ended
    before = psutil.Process(hook.process.pid).cpu_times().user
    rest(0.6)
    assert hook.waits
    assert psutil.Process(hook.process.pid).cpu_times().user - before < 0.15
    assert send(spool, item)
    assert hook.printed() == ANSWER + b"\n"


#: What a program in a sandbox does for `allow`. All of it fails but the first, on Linux.
TRIES = """
cd "$1" || exit
for pipe in answers/*[0-9]; do
  printf '%s\\nend\\n' "$2" >"$pipe" && echo woke
  for name in reply taken; do
    printf '%s\\n%s\\n%s\\n' "$3" "$2" "$4" >"$pipe.$name" && echo "wrote $name"
    ln -s "$0" "$pipe.$name" && echo linked
    mv "$pipe.$name" answers/other && echo moved
  done
  mv "$pipe" answers/other || rm "$pipe" || chmod 666 "$pipe" && echo changed
  mv answers answers.old || mkdir -p answers/1.1 && echo replaced
done
mkdir -p spool/new/x && echo made
[ ! "$5" ] || kill "$5" && echo killed
"""


@pytest.mark.parametrize("kind", ["bwrap", "unshare"])
def test_nothing_in_a_sandbox_answers_for_its_agent(spool: Spool, ask: Ask, kind: str) -> None:
    """With the home mounted read-only, and processes of its own, where a pipe can be written."""
    spool.pipes.offer()
    hook = ask()
    item = event(spool)
    given = (str(spool.home), ANSWER, item.name, item.payload, str(hook.process.pid))
    tries = [*sandboxed(kind, spool.home), "sh", "-c", TRIES, "sh", *given]
    done = subprocess.run(tries, capture_output=True, text=True)
    assert done.stdout.split() == ["woke"], done.stderr
    rest(0.3)
    assert hook.waits
    assert send(spool, item)
    assert hook.printed() == ANSWER + b"\n"


REPLIES = {
    "of another event": lambda name, asks: b"1" + name + b"\n" + ANSWER + b"\n" + asks,
    "to something else": lambda name, asks: name + b"\n" + ANSWER + b"\n" + asks + b" ",
    "to a part of it": lambda name, asks: name + b"\n" + ANSWER + b"\n" + asks[:-5],
    "to nothing": lambda name, asks: name + b"\n" + ANSWER + b"\n",
    "of an older host": lambda name, asks: ANSWER + b"\nend\n",
    "cut": lambda name, asks: name,
    "empty": lambda name, asks: b"",
}


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("what", [*REPLIES, "a link", "a pipe", "a folder", "another user's"])
def test_only_a_file_for_its_own_event_is_obeyed(
    spool: Spool, ask: Ask, tmp_path: Path, what: str
) -> None:
    """Whole, regular, and ours; anything else leaves it waiting for the true answer."""
    spool.pipes.offer()
    hook = ask()
    item = event(spool)
    whole = item.name.encode() + b"\n" + ANSWER + b"\n" + item.payload
    reply = spool.home / "answers" / f"{item.pipe}{REPLY}"
    if make := REPLIES.get(what):
        reply.write_bytes(make(item.name.encode(), item.payload))
    elif what == "a link":
        (tmp_path / "reply").write_bytes(whole)
        reply.symlink_to(tmp_path / "reply")
    elif what == "a pipe":
        os.mkfifo(reply)
    elif what == "a folder":
        reply.mkdir()
    else:
        if os.geteuid() != 0:
            pytest.skip("only root can give a file away")
        reply.write_bytes(whole)
        os.chown(reply, 54321, 54321)
    wake(spool, item.pipe)
    rest(0.2)
    assert hook.waits
    if what == "a folder":
        reply.rmdir()
    assert send(spool, item)
    assert hook.printed() == ANSWER + b"\n"


def test_an_answer_that_was_taken_back_is_not_obeyed(spool: Spool, ask: Ask) -> None:
    """Nor one that a killed host left without waking the hook: another host removes it."""
    spool.pipes.offer()
    hook = ask()
    item = event(spool)
    hook.process.send_signal(signal.SIGSTOP)  # too slow to obey it
    assert send(spool, item)
    reply = spool.home / "answers" / f"{item.pipe}{REPLY}"
    spool.pipes.take_back(item.pipe, item.name, item.payload, b"another")
    assert reply.exists()
    assert 0.0 < spool.pipes.expire() <= REPLY_COUNTS
    os.utime(reply, (1.0, 1.0))
    assert spool.pipes.expire() == math.inf
    assert not reply.exists()
    assert send(spool, item)
    spool.pipes.take_back(item.pipe, item.name, item.payload, ANSWER)
    hook.process.send_signal(signal.SIGCONT)
    rest(0.2)
    assert hook.waits
    spool.pipes.dismiss(item.pipe)
    assert hook.printed() == b""
    assert [*(spool.home / "answers").iterdir()] == []


@pytest.mark.usefixtures("shell")
def test_it_does_not_wait_without_a_promise(spool: Spool, ask: Ask, tmp_path: Path) -> None:
    """There is no pipe, or one of a dead host, a taken one, or another file under its name."""
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
    """The pipe in that folder is ours nevertheless."""
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
    """A machine need not have grep; the hook uses only coreutils."""
    spool.pipes.offer()
    lacks = f"{ALIASES}; alias grep=false\n"
    assert ask(first=lacks, agent_id="a1", long="x" * 70_000).printed() == b""


@pytest.mark.usefixtures("shell")
def test_an_argument_of_a_tool_makes_no_subagent(spool: Spool, ask: Ask) -> None:
    """An argument may have any name: `agent_id` counts only beside the tool's name."""
    given = {"agent_id": "7", "tool_input": {"agent_id": "8"}}
    spool.pipes.offer()
    hook = ask(tool_input=given)
    item = event(spool)
    assert hook.waits
    assert send(spool, item)
    assert hook.printed() == ANSWER + b"\n"
    spool.pipes.remove(item.pipe)
    spool.pipes.offer()
    assert ask(tool_input=given, agent_id="a1").printed() == b""


@pytest.mark.usefixtures("shell")
def test_it_does_not_wait_where_that_holds_the_dialog_back(spool: Spool, ask: Ask) -> None:
    """For a subagent, of a headless run, for another agent, or with standard output closed."""
    spool.pipes.offer()
    assert ask(agent_id="a1").printed() == b""
    assert event(spool).pipe == ""
    for env in ({"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}, {"BELLBOARD_AGENT": "codex"}):
        assert ask(env=env).printed() == b""
        assert event(spool).pipe == ""
    assert [*spool.pipes.found().values()] == [False]


def test_a_suspended_host_promises_nothing(spool: Spool, ask: Ask) -> None:
    """For example, the host of a Neovim after CTRL-Z, in whose terminal the CLI may run."""
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


def test_fifty_at_once_with_few_pipes(spool: Spool, ask: Ask) -> None:
    """Each pipe has one hook, the others do not wait, and every event arrives."""
    for _ in range(3):
        spool.pipes.offer()
    hooks = [ask(session_id=f"s{n}") for n in range(50)]
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
            spool.pipes.send("1.1", NAME, b"{}", line)


@pytest.mark.parametrize("name", ["1.1", "1.2", "1.3", "1.4", "1.5", "a.fifo", "../answers/1.2"])
def test_only_a_pipe_of_ours_gets_an_answer(spool: Spool, tmp_path: Path, name: str) -> None:
    """Not a link to one, a file, nor one that the hook of another event took; and never a path."""
    os.mkfifo(tmp_path / "fifo")
    read = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    answers = spool.home / "answers"
    (answers / "1.1").symlink_to(tmp_path / "fifo")
    (answers / "1.2").touch()
    for pipe in ("a.fifo", "1.4", "1.5"):
        os.link(tmp_path / "fifo", answers / pipe)
    for pipe in ("1.1", "1.2", "1.3", "1.4", "a.fifo"):
        (answers / f"{pipe}{TAKEN}").write_text(f"{NAME}\n")
    (answers / f"1.5{TAKEN}").write_text(f"{NAME}.0\n")
    assert not spool.pipes.hold("1.1") and not spool.pipes.hold("a.fifo")
    was = sorted(answers.iterdir())
    assert spool.pipes.send(name, NAME, b"{}", ANSWER) == (name == "1.4")
    (answers / f"1.4{REPLY}").unlink(missing_ok=True)
    assert sorted(answers.iterdir()) == was
    assert os.read(read, 9) == (b"\n" if name == "1.4" else b"")
    os.close(read)
