"""A running host carries out what a shell answers, as the command does without a host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bellboard.storage import orders
from rig.waiting import eventually
from shell import ROOT, Shell, fill
from shell import shell as shell  # a fixture

pytestmark = pytest.mark.files

BY = "a shell, process 1"
FOREIGN = "bellboard order 0.0.0\0somebody\0answer\0a1\0allow"
#: What cannot be answered, and why.
REFUSED = (
    (("nobody", "allow"), 1, "no session matches nobody"),
    (("b1", "allow"), 1, "b1 is not asking anything"),
    (("a", "allow"), 1, "2 sessions match a"),
    (("a1", "allow", "--digest", "0"), 1, "api was not answered: "),
    (("a1", "allow", "--json"), 1, '"ok":false'),
    (("a1", "nonsense"), 2, "invalid choice"),
    (("a1", "allow", "--nope"), 2, "unrecognized arguments: --nope"),
    (("a1", "allow", "--message"), 2, "expected one argument"),
)


def handed(shell: Shell, *words: str) -> dict[str, object]:
    """Hand in an order; return the reply, {} if no host carries it out."""
    reply = orders.hand(words, BY, shell.env)
    return dict(json.loads(reply)) if reply else {}


def left(shell: Shell) -> list[str]:
    return sorted(path.name for path in (shell.spool.home / orders.FOLDER).iterdir())


def plant(folder: Path, name: str, text: str) -> None:
    """Put an order there, without a reader of its pipe."""
    (folder / "draft").write_text(text)
    (folder / "draft").rename(folder / f"{name}{orders.ORDER}")


def test_what_is_refused_is_refused_alike_with_a_host_and_without(shell: Shell) -> None:
    """The same words, on the same stream, with the same exit code; and the host took it."""
    fill(shell)
    shell.bellboard("list")

    def said(words: tuple[str, ...]) -> tuple[int, str, str]:
        argv = [*shell.argv, "answer", *words]
        done = subprocess.run(argv, env=shell.env, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    alone = [said(words) for words, _, _ in REFUSED]
    for (words, code, text), (exit_code, out, err) in zip(REFUSED, alone, strict=True):
        assert (code, True) == (exit_code, text in out + err), (words, out, err)
    shell.start("serve")
    taken = [eventually(lambda w=words: handed(shell, "answer", *w)) for words, *_ in REFUSED[:5]]
    assert [bool(each["why"]) for each in taken] == [True] * 4 + [False]
    assert alone == [said(words) for words, _, _ in REFUSED]
    assert left(shell) == []


def test_without_a_host_that_can_nothing_is_handed_over(shell: Shell) -> None:
    """None, a suspended one, or one that does not do that: the command does it itself, soon."""
    fill(shell)
    shell.bellboard("list")
    assert handed(shell, "answer", "a1", "allow") == {}
    host = shell.start("serve")
    eventually(lambda: handed(shell, "answer", "b1", "allow"))
    for words in (("answer", "b1", "--json"), ("answer", "b1", "allow", "--popup"), ("stop", "b1")):
        assert handed(shell, *words) == {}
    os.kill(host.pid, signal.SIGSTOP)
    begun = time.monotonic()
    assert handed(shell, "answer", "b1", "allow") == {}
    assert orders.SOON < time.monotonic() - begun < orders.PATIENCE / 2
    assert left(shell) == []  # nor does it happen once the host goes on
    os.kill(host.pid, signal.SIGCONT)
    assert "b1 is not asking anything" in shell.fails("answer", "b1", "allow")


@pytest.mark.parametrize("how", ["a link", "open to others", "another user's", "missing"])
def test_a_folder_that_is_not_ours_alone_is_not_used(shell: Shell, how: str) -> None:
    """What is answered is private, and its reply must be that of our own host."""
    folder = shell.spool.home / orders.FOLDER
    (shell.spool.home / "hosts" / str(os.getpid())).touch()
    if how == "a link":
        other = shell.home.root / "other"
        folder.rename(other)
        folder.symlink_to(other)
    elif how == "open to others":
        folder.chmod(0o750)
    elif how == "another user's":
        if os.geteuid():
            pytest.skip("needs root")
        os.chown(folder, 65534, 65534)
    else:
        folder.rmdir()
    begun = time.monotonic()
    assert handed(shell, "answer", "a1", "allow") == {}
    assert time.monotonic() - begun < orders.SOON  # it did not even wait


def test_an_order_of_another_version_is_declined(shell: Shell) -> None:
    """Its command does it itself, at once."""
    shell.start("serve")
    eventually(lambda: handed(shell, "answer", "nobody", "allow"))
    folder = shell.spool.home / orders.FOLDER
    os.mkfifo(folder / "7.8", 0o600)
    pipe = os.open(folder / "7.8", os.O_RDONLY | os.O_NONBLOCK)
    plant(folder, "7.8", FOREIGN)
    eventually(lambda: left(shell) == [])
    assert eventually(lambda: os.read(pipe, 99)) == orders.TAKEN
    assert eventually(lambda: os.read(pipe, 99) == b"")
    os.close(pipe)


def test_what_is_no_order_is_not_carried_out(shell: Shell) -> None:
    """Nor is one whose command has ended; and the host goes on."""
    fill(shell)
    shell.start("serve")
    eventually(lambda: handed(shell, "answer", "b1", "allow"))
    folder, text = shell.spool.home / orders.FOLDER, orders.encoded(("answer", "a1", "allow"), BY)
    good = text.decode()
    plant(folder, "1.1", good)  # no pipe
    os.mkfifo(folder / "1.2")
    plant(folder, "1.2", good)  # nobody reads it
    (folder / "1.3").write_text("a file")
    plant(folder, "1.3", good)
    (folder / "1.4").symlink_to("/dev/null")
    plant(folder, "1.4", good)
    os.mkfifo(folder / "1.5")
    reader = os.open(folder / "1.5", os.O_RDONLY | os.O_NONBLOCK)
    plant(folder, "1.5", "x" * (orders.LARGEST + 1))
    (folder / f"1.6{orders.ORDER}").mkdir()
    (folder / f"1.7{orders.ORDER}").symlink_to("/dev/zero")
    os.mkfifo(folder / f"1.8{orders.ORDER}")
    plant(folder, "1.9.x", good)
    assert eventually(lambda: handed(shell, "answer", "b1", "allow"))["why"]
    os.close(reader)
    assert "a shell, process 1" not in shell.bellboard("explain", "a1").stdout
    assert (folder / "1.3").exists() is False  # its pipe is removed, whatever it was
    old = time.time() - 3600
    for name in left(shell):
        os.utime(folder / name, (old, old), follow_symlinks=False)
    shell.start("serve")  # looks after the folder, as each does every 30 s
    eventually(lambda: left(shell) == [])


def test_handing_over_loads_little() -> None:
    """It is done before the rest of the command is loaded, which takes as long as the answer."""
    code = "import sys; sys.path.append(sys.argv[1]); import bellboard.storage.orders; "
    argv = [sys.executable, "-I", "-S", "-c", f"{code}print(*sys.modules)"]
    path = str(ROOT / "rplugin/python3")
    loaded = subprocess.run([*argv, path], capture_output=True, text=True, check=True).stdout
    slow = {"typing", "re", "json", "enum", "pathlib", "contextlib", "collections", "msgspec"}
    assert slow & {*loaded.split()} == set()


def test_a_host_that_dies_leaves_the_command_to_do_it(shell: Shell) -> None:
    """The pipe ends, so that the command does not wait for nothing."""
    fill(shell)
    folder = shell.spool.home / orders.FOLDER
    (shell.spool.home / "hosts" / str(os.getpid())).touch()

    def die() -> None:
        name = eventually(lambda: [*folder.glob(f"*{orders.ORDER}")], pause=0.001)[0]
        pipe = os.open(name.with_suffix(""), os.O_WRONLY)
        name.unlink()
        os.write(pipe, orders.TAKEN + b'{"code": 0, "text": "half of')
        os.close(pipe)

    dying = threading.Thread(target=die)
    dying.start()
    begun = time.monotonic()
    assert handed(shell, "answer", "a1", "allow") == {}
    dying.join()
    assert time.monotonic() - begun < orders.PATIENCE
    assert left(shell) == []
