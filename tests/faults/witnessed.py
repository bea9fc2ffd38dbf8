"""Files that a host reads besides the spool: session files, transcripts, git's files."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from faults.fault import Fault, Kind
from faults.files import THINGS, put, remove
from faults.junk import brief, changed, encoded, text
from faults.messages import LINES
from faults.target import Target

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


KINDS = (
    Kind("registry", make=registry, batch=20),
    Kind("transcript", make=transcript, batch=20),
    Kind("git", make=git, batch=10, settle=0.5),
    Kind("place", make=place, batch=20, settle=0.5),
)
