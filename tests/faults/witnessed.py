"""Files that a host reads besides the spool: session files, transcripts, git's files.

`SESSION_FILES` and `TRANSCRIPTS` spoil each one in a known way, in a session of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from bellboard.system.processes import started_of
from faults.fault import Do, Fault, Kind
from faults.files import THINGS, put, remove
from faults.junk import brief, changed, encoded, text
from faults.messages import LINES
from faults.target import HEAL, Fallen, Target
from rig.waiting import eventually, leniency, rest

DEEP = b"[" * 50_000
Make = Callable[[Path], object]
RECORD = {
    **LINES["registry"]["record"],
    "updatedAt": 1.8e12,
    "startedAt": 1.8e12,
    "version": "2.1.328",
    "tmux": "/tmp/none",
}
ENTRIES: tuple[dict[str, Any], ...] = (
    LINES["transcript"]["entry"],
    {"type": "user", "message": {"role": "user", "content": "[Request interrupted by user]"}},
    {
        "type": "user",
        "toolUseResult": {"x": 1},
        "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "is_error": True}]},
    },
    {"type": "system", "subtype": "api_error", "error": {"status": 529}, "retryAttempt": 1},
    {"type": "custom-title", "customTitle": "a title"},
    {"type": "summary", "summary": "x", "leafUuid": "u"},
    {"type": "queue-operation", "operation": "enqueue", "content": "x"},
)


def registry(random: Random) -> Fault:
    """Put any value into any field of a session file, or replace the file."""
    given = changed(random, RECORD)
    raw = encoded(random, given)
    what = random.choice([*([""] * 8), *THINGS])
    other = random.random() < 0.2
    name = text(random)[:200].replace("/", "_").replace("\0", "_") or "x"

    def do(target: Target) -> None:
        folder = target.home.claude / "sessions"
        folder.mkdir(exist_ok=True)
        pid = target.sleeper()
        path = folder / (f"{name}.json" if other else f"{pid}.json")
        with contextlib.suppress(OSError, ValueError):
            remove(path)
            if what:
                THINGS[what](path)
            else:
                mine = raw.replace(b"4711", str(pid).encode())
                path.write_bytes(mine)

    return Fault(f"{what or brief(raw)} as {brief(name, 40) if other else 'PID'}.json", do)


def transcript(random: Random) -> Fault:
    """Break lines of a transcript, or replace, truncate or tear the file."""
    rows = [encoded(random, changed(random, random.choice(ENTRIES))) for _ in range(5)]
    raw = b"\n".join(rows) + random.choice([b"\n", b"", b"\r\n", b"\n\n\n"])
    what = random.choice([*([""] * 8), *THINGS])
    cut = random.random() < 0.2
    session = f"t{random.randrange(4)}"

    def do(target: Target) -> None:
        path = target.home.root / f"{session}.jsonl"
        put(path, what, raw, cut)
        target.hook("UserPromptSubmit", session, target.sleeper(), transcript_path=str(path))

    return Fault(f"{session}: {what or brief(raw)}{' (cut)' if cut else ''}", do)


def _chain(path: Path) -> None:
    """Return very many sections: a quadratic parser takes minutes."""
    path.write_text("".join(f'[remote "r{n}"]\n\turl = x{n}\n' for n in range(20_000)))


def _long_line(path: Path) -> None:
    path.write_text('[remote "origin"]\n\turl = ' + "\\\n" * 100_000 + '"' * 300_000 + "\n")


def _binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 3000)


GIT: dict[str, Callable[[Path], object]] = {
    **THINGS,
    "20,000 sections": _chain,
    "a line without end": _long_line,
    "bytes": _binary,
    "brackets": lambda path: path.write_text("[" * 700_000),
    "spaces": lambda path: path.write_text("[remote" + " " * 700_000),
    "a host of colons": lambda path: path.write_text(
        f'[remote "o"]\n\turl = ssh://{":" * 700_000}'
    ),
    "rules": lambda path: path.write_text('[url "x"]\ninsteadOf = y\n' * 20_000),
    "a ref of itself": lambda path: path.write_text("ref: HEAD\n"),
    "a ref upwards": lambda path: path.write_text(f"ref: {'../' * 99}etc/passwd\n"),
    "a git folder elsewhere": lambda path: path.write_text("gitdir: /proc/self/root/../..\n"),
    "a git folder with NUL": lambda path: path.write_text("gitdir: a\0b\n"),
    "a git folder too long": lambda path: path.write_text(f"gitdir: {'x' * 5000}\n"),
    "itself": lambda path: path.write_text("gitdir: .\n"),
    "a commit": lambda path: path.write_text("0" * 40 + "\n"),
}


def git(random: Random) -> Fault:
    """Replace any file of a repository by anything, while a session works there."""
    chosen = [(random.choice(list(GIT)), _git_file(random)) for _ in range(random.randrange(1, 3))]
    said, session = text(random)[:2000], f"g{random.randrange(9)}"

    def do(target: Target) -> None:
        root = target.home.project / target.unique()
        git = root / ".git"
        (git / "objects").mkdir(parents=True)
        (git / "refs/heads").mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (git / "config").write_text('[remote "origin"]\n\turl = git@example.invalid:a/b.git\n')
        with contextlib.suppress(OSError, ValueError, UnicodeError):
            for what, name in chosen:
                path = root / name
                if os.path.realpath(path.parent) != str(path.parent.absolute()):
                    continue  # .git points elsewhere by now
                remove(path)
                GIT[what](path)
            is_own = not any(path.is_symlink() for path in (git, git / "config"))
            if said and is_own and (git / "config").is_file():
                with (git / "config").open("a", errors="surrogatepass") as file:
                    file.write(f'[remote "o"]\n\turl = {said}\n')
        target.hook("UserPromptSubmit", session, target.sleeper(), cwd=str(root))

    return Fault(f"{chosen}, and {brief(said, 60)}", do)


def _git_file(random: Random) -> str:
    return random.choice([".git", ".git/HEAD", ".git/config", ".git/commondir", ".git/refs"])


def place(random: Random) -> Fault:
    """A session with an impossible directory, home and transcript."""
    where, told, config = (text(random) for _ in range(3))
    head = f"agent=claude\0event=Stop\0pid=PID\0CLAUDE_CONFIG_DIR={config}\0\0"
    payload = {"session_id": f"p{random.randrange(9)}", "hook_event_name": "UserPromptSubmit"}
    payload |= {"cwd": where, "transcript_path": told}

    def do(target: Target) -> None:
        start = head.replace("PID", str(target.sleeper()))
        raw = f"bellboard 1\0{start}{json.dumps(payload)}"
        target.put(os.fsencode(raw) if raw.isascii() else raw.encode("utf-8", "surrogatepass"))

    return Fault(f"{brief(where, 60)}, {brief(told, 60)}, {brief(config, 60)}", do)


# ------------------------------------------------------------------ one known way each


def record(pid: int, status: str = "busy", at: int = 1, **changed: Any) -> bytes:
    """Return a session file as the CLI writes it."""
    known = {"pid": pid, "sessionId": f"s{pid}", "cwd": "/srv", "procStart": started_of(pid)}
    said = {"status": status, "statusUpdatedAt": at}
    asks = {"waitingFor": "permission prompt"} if status == "waiting" else {}
    return json.dumps({**known, **said, **asks, **changed}).encode()


def session_file(target: Target, pid: int | str) -> Path:
    """Return the path of a process's session file."""
    folder = target.home.claude / "sessions"
    folder.mkdir(exist_ok=True)
    return folder / f"{pid}.json"


def spoilt(
    made: Callable[[int], bytes] | None = None, instead: Make | None = None
) -> tuple[Do, Do]:
    """Spoil the session file of a session at work: that is shown until the next good file."""
    processes: list[subprocess.Popen[bytes]] = []

    def do(target: Target) -> None:
        processes.append(process := target.process_of_its_own())
        path = session_file(target, pid := process.pid)
        path.write_bytes(record(pid))
        target.shows(f"s{pid}", status="working")
        if instead is not None:
            path.unlink()
            instead(path)
        elif made is not None:
            path.write_bytes(made(pid))

    def mend(target: Target) -> None:
        pid = processes[-1].pid
        path = session_file(target, pid)
        with target.must(f"health does not name {path}"):
            eventually(lambda: str(path) in target.host.notes, within=HEAL * leniency())
        if target.host.shown.get(f"s{pid}") != "working":
            raise Fallen(f"its last good value does not count: {target.host.shown}")
        if instead is not None:
            remove(path)
        path.write_bytes(record(pid, "waiting", 2))
        target.shows(f"s{pid}", status="blocked")
        with target.must(f"health still names {path}"):
            eventually(lambda: str(path) not in target.host.notes, within=HEAL * leniency())
        processes.pop().kill()
        path.unlink()

    return do, mend


def disowned(why: str, pid_of: Callable[[Target], int], **changed: Any) -> Fault:
    """Write the session file of a process that is no agent of ours: no session is listed."""
    pids: list[int] = []

    def do(target: Target) -> None:
        pids.append(pid := pid_of(target))
        session_file(target, pid).write_bytes(record(pid, **changed))

    def mend(target: Target) -> None:
        path = session_file(target, pid := pids.pop())
        if target.host.notes.get(str(path)) != why:
            raise Fallen(f"health does not say {why!r}: {target.host.notes}")
        path.unlink()
        if f"s{pid}" in target.host.shown and pid != target.host.pid:  # another host may list that
            raise Fallen("it lists a session of a process that is no agent of ours")

    return Fault(why, do, mend, says=why)


def anothers(target: Target) -> int:
    how = {"user": 65534} if os.geteuid() == 0 else {}
    return target.process_of_its_own(**how).pid if how else 1


def alive(target: Target) -> int:
    return target.process_of_its_own().pid


def dead(target: Target) -> int:
    process = target.process_of_its_own()
    process.kill()
    process.wait()
    return process.pid


ODD_NAMES = ("0.json", "-1.json", "99999999999.json", "x.json", "PID.key", "PID.json~")


def misnamed() -> tuple[Do, Do]:
    """Write files with other names into the folder of session files: none is read."""
    pids: list[int] = []

    def files(target: Target) -> list[Path]:
        folder = session_file(target, 0).parent
        return [folder / name.replace("PID", str(pids[-1])) for name in ODD_NAMES]

    def do(target: Target) -> None:
        pids.append(target.process_of_its_own().pid)
        for path in files(target):
            path.write_bytes(record(pids[-1]))

    def mend(target: Target) -> None:
        pid = pids[-1]
        named = target.host.notes.keys() & {*map(str, files(target))}
        if named or f"s{pid}" in target.host.shown:
            raise Fallen(f"it reads what is no session file: {named}")
        session_file(target, pid).write_bytes(record(pid))
        target.shows(f"s{pid}", status="working")
        for path in (*files(target), session_file(target, pid)):
            path.unlink()
        pids.pop()

    return do, mend


def half(pid: int) -> bytes:
    return record(pid)[:70]


SESSION_FILES = (
    *(
        Fault(f"is {what}", *spoilt(made), says="cannot be parsed")
        for what, made in (
            ("half-written", half),
            ("empty", lambda _: b""),
            ("binary", lambda _: bytes(range(256)) * 8),
            ("deep", lambda _: DEEP),
            ("deep inside", lambda pid: record(pid)[:-1] + b', "x": ' + DEEP),
            ("a list", lambda _: b"[]"),
            ("null", lambda _: b"null"),
            ("of a session whose id is a number", lambda pid: record(pid, sessionId=7)),
            ("of a session id without end", lambda pid: record(pid, sessionId="x" * 300)),
            ("of another pid", lambda pid: record(pid + 1)),
            ("far too large", lambda pid: record(pid, cwd="x" * 100_000)),
        )
    ),
    Fault("is a folder", *spoilt(instead=Path.mkdir)),
    Fault("is a pipe", *spoilt(instead=os.mkfifo)),
    Fault("is a link to a folder", *spoilt(instead=lambda path: path.symlink_to(path.parent))),
    disowned("its process belongs to another user", anothers),
    disowned("its process is dead and the pid was reused", alive, procStart="1"),
    disowned("it names this background process", lambda target: target.host.pid),
    disowned("its process is dead", dead),
    Fault("of other names", *misnamed()),
)


def title(name: str) -> bytes:
    return json.dumps({"type": "custom-title", "customTitle": name}).encode() + b"\n"


def followed(spoil: Make) -> tuple[Do, Do]:
    """Spoil the transcript of a session at work: what follows is read."""
    told: list[tuple[str, Path]] = []

    def do(target: Target) -> None:
        session, path = target.unique(), target.home.root / f"{target.unique()}.jsonl"
        path.write_bytes(title("first"))
        pid = target.process_of_its_own().pid
        target.hook("UserPromptSubmit", session, pid, transcript_path=str(path))
        target.shows(session, title="first")
        told.append((session, path))
        spoil(path)

    def mend(target: Target) -> None:
        session, path = told.pop()
        if not path.is_file():
            remove(path)
        with path.open("ab") as file:
            file.write(title("after it"))
        target.shows(session, title="after it", status="working")
        target.hook("SessionEnd", session)

    return do, mend


def replaced(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_bytes(title("another"))
    other.replace(path)


def instead(make: Make) -> Make:
    def do(path: Path) -> None:
        path.unlink()
        make(path)

    return do


def added(path: Path, *rows: bytes) -> None:
    with path.open("ab") as file:
        for row in rows:
            file.write(row)
            file.flush()


def without_end(path: Path) -> None:
    """Add two lines of 30 MB, at once and while the host reads, which may skip what is far back."""
    added(path, b'{"type":"user","message":{"content":"' + b"x" * (30 << 20) + b'"}}\n')
    for _ in range(30):
        added(path, b"y" * (1 << 20))
        rest(0.005)
    added(path, b"\n")


def costs_no_memory(do: Do, mend: Do) -> tuple[Do, Do]:
    """Check that the peak of the host's memory hardly rises."""

    def peak(target: Target) -> int:
        status = Path(f"/proc/{target.host.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) >> 10

    def noted(target: Target) -> None:
        Path(f"/proc/{target.host.pid}/clear_refs").write_text("5")  # the peak is now
        before.append(peak(target))
        do(target)

    def compared(target: Target) -> None:
        mend(target)
        if (more := peak(target) - before.pop()) > 16:
            raise Fallen(f"it took {more} MB")

    before: list[int] = []
    return noted, compared


JUNK = (bytes(range(10)) * 9, DEEP, b"{", b'"text"', b"\xff\xfe")
ODD_ENTRIES = b'{"type": 7}\n{"type": "user", "message": [[]], "timestamp": {}}\n'
TRANSCRIPTS = (
    Fault("is replaced", *followed(replaced)),
    Fault("is emptied", *followed(lambda path: os.truncate(path, 0))),
    Fault("is deleted", *followed(Path.unlink)),
    Fault("is a folder", *followed(instead(Path.mkdir)), says="not a file"),
    Fault("is a pipe", *followed(instead(os.mkfifo)), says="not a file"),
    Fault(
        "has junk",
        *followed(lambda path: added(path, *(row + b"\n" for row in JUNK), ODD_ENTRIES)),
        says="5 lines that cannot be parsed",
    ),
    Fault(
        "has a line in parts", *followed(lambda path: added(path, title("w")[:9], title("w")[9:]))
    ),
    Fault("has lines without end", *costs_no_memory(*followed(without_end))),
)

KINDS = (
    Kind("session file", SESSION_FILES, batch=len(SESSION_FILES)),
    Kind("followed", TRANSCRIPTS, batch=len(TRANSCRIPTS)),
    Kind("registry", make=registry, batch=20),
    Kind("transcript", make=transcript, batch=20),
    Kind("git", make=git, batch=10, settle=0.5),
    Kind("place", make=place, batch=20, settle=0.5),
)
