"""Dialogs that a terminal must show before an answer is typed into it."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from bellboard.agents.claude.dialog import dialog_of
from bellboard.core.request import shown_digest_of
from rig import DATA

BASH = """\
● May I?

────────────────────────────────────────
 Bash command
   touch made.txt

 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and always allow access to /tmp/a/very/long/path from
      this project
   3. Yes, and switch to auto mode · auto mode handles these
   4. No

 Esc to cancel · Tab to amend

"""
OLD = """\
╭──────────────────────────────────────────────────────────╮
│ Edit file                                                │
│ src/cache.py                                             │
│ Do you want to make this edit to cache.py?               │
│ ❯ 1. Yes                                                 │
│   2. Yes, allow all edits during this session            │
│   3. No, and tell Claude what to do differently (esc)    │
╰──────────────────────────────────────────────────────────╯
"""
NOT_DIALOGS = {
    "an empty screen": "",
    "a list in an answer": "1. Yes\n2. No\n\nThat is all.\n\n\n> \n  ? for shortcuts\n",
    "a menu far above": BASH + "\nmore\nand\nmore\nbelow it\n",
    "a number missing": "❯ 1. Yes\n  3. No\n",
    "nothing chosen": "  1. Yes\n  2. No\n",
    "no numbers, twice the same": "❯ No\n  No\n",
    "no numbers, apart": "❯ No\n\n  Yes\n",
    "above a list": "❯ No\n  Yes\n\n1. One\n2. Two\n",
}


@pytest.mark.parametrize(("screen", "no"), [(BASH, "4"), (OLD, "3")])
def test_keys_are_read_from_the_screen(screen: str, no: str) -> None:
    """No is not always the third: the numbers differ by version and by question."""
    dialog = dialog_of(screen.splitlines())
    assert dialog is not None
    assert next(o.key for o in dialog.options if o.text.startswith("No")) == no
    assert (dialog.options[0].key, dialog.options[0].whole) == ("1", "Yes")


@pytest.mark.parametrize("screen", NOT_DIALOGS.values(), ids=NOT_DIALOGS)
def test_other_text_gets_no_key(screen: str) -> None:
    """Words that look alike, other menus, and dialogs that have scrolled away."""
    assert dialog_of(screen.splitlines()) is None


@pytest.mark.parametrize(
    ("screen", "detail", "is_so"),
    [
        (BASH, "touch made.txt", True),
        (BASH, "touch other.txt", False),
        (BASH, "touch made", False),
        (BASH, "touch made.txt now", False),
        (BASH, "", False),
        (OLD, "/home/me/project/src/cache.py", True),
        (OLD, "/home/me/project/src/other.py", False),
        (OLD, "/home/me/project/lib_src/cache.py", False),
        (BASH, "touch made.txt --token ***", False),
        (BASH, "touch made.txt ***", False),
        (BASH, "touch made.…", False),
    ],
)
def test_the_whole_request_must_be_on_the_screen(screen: str, detail: str, is_so: bool) -> None:
    """The whole command and nothing more, or the file; not if a secret or a cut hides some."""
    dialog = dialog_of(screen.splitlines())
    assert dialog is not None
    assert dialog.is_about(detail) is is_so


RULE, LINE = "─" * 60, "╌" * 60
LONG = "mkdir " + " ".join(f"argument-number-{n}" for n in range(9))
SCRIPT = "touch a.txt && \\\n  touch b.txt\n\ncat <<'EOF' > c.txt\n\tline  one\nEOF\n"
NEW = f"""\
● Making files
{RULE}
 Bash command                                         1 of 2
 Tip: auto mode handles these prompts for you — choose
 "switch to auto mode" below
 │ Make many folders, of which each
 │ has a name
{LINE}
 │ mkdir argument-number-0 argument-number-1 argument-number-2
 │ argument-number-3 argument-number-4 argument-number-5
 │ argument-number-6 argument-number-7 argument-number-8
{LINE}
 This command requires approval
 Do you want to proceed?
 ❯ 1. Yes
   2. No
"""
BEFORE = f"""\
● Bash(touch a.txt && \\…)
{RULE}
 Bash command

   touch a.txt && \\
     touch b.txt

   cat <<'EOF' > c.txt
           line  one
   EOF

   Make files

 Unhandled node type: file_redirect

 Do you want to proceed?
 ❯ 1. Yes
   2. No

 Esc to cancel · Tab to amend · ctrl+e to explain
"""
BARE = f"""\
{RULE}
 Bash command

   touch a | tee b
   Run shell command

 Do you want to proceed?
 ❯ 1. Yes
   2. No
"""
FILE = f"""\
{RULE}
 Create file
 ../../elsewhere/new.txt
{LINE}
  1 hello
{LINE}
 Do you want to create new.txt?
 ❯ 1. Yes
   2. No
"""
FETCH = f"""\
{RULE}
 Fetch
 Claude wants to fetch content from example.com
{LINE}
 url: https://example.com/some/path?q=1
 prompt: what is it
{LINE}
 Do you want to allow Claude to fetch this content?
 ❯ 1. Yes
   2. No, and tell Claude what to do differently (esc)
"""
FETCH_BEFORE = f"""\
{RULE}
 Fetch

   https://example.com/some/path?q=1
   Claude wants to fetch content from example.com

 Do you want to allow Claude to fetch this content?
 ❯ 1. Yes
   2. No, and tell Claude what to do differently (esc)
"""
BASH_INPUTS: dict[str, tuple[str, dict[str, str]]] = {
    "2.1.330": (
        NEW,
        {"command": LONG, "description": "Make many folders, of which each has a name"},
    ),
    "2.1.119": (BEFORE, {"command": SCRIPT, "description": "Make files"}),
    "without a description": (BARE, {"command": "touch a | tee b"}),
}


@pytest.mark.parametrize("name", BASH_INPUTS)
def test_a_command_is_compared_in_full(name: str) -> None:
    """Wraps do not matter; the description is included if nothing separates the two."""
    screen, given = BASH_INPUTS[name]
    dialog = dialog_of(screen.splitlines())
    assert dialog is not None

    def is_about(**other: str) -> bool:
        asked = shown_digest_of(Raw(json.dumps({**given, **other}).encode()))
        return dialog.is_about("touch", asked)

    command = given["command"]
    assert is_about()
    for other in (
        f"{command} more",
        command[:-2],
        command.replace("t", "\N{ZERO WIDTH SPACE}t", 1),
        command.replace(" ", " \x1b[8m", 1),
        command.replace("a", "\N{CYRILLIC SMALL LETTER A}", 1),
        f"x{command}",
        "",
    ):
        assert not is_about(command=other), other
    assert is_about(command=command.replace(" ", "\n  "))
    if name != "without a description":
        assert not is_about(description="Something else")
        assert not is_about(command=f"{command} && rm -rf /")


@pytest.mark.parametrize(
    ("path", "folders", "is_so"),
    [
        ("/tmp/elsewhere/new.txt", ("/tmp/a/b",), True),
        ("/tmp/elsewhere/new.txt", ("/tmp/a", "/tmp/a/b"), True),
        ("/tmp/elsewhere/new.txt", ("/home/me/b",), False),
        ("/etc/elsewhere/new.txt", ("/tmp/a/b",), False),
        ("/tmp/a/b/new.txt", ("/tmp/a/b",), False),
    ],
)
def test_a_file_is_compared_by_path(path: str, folders: tuple[str, ...], is_so: bool) -> None:
    """Relative to the folder of the session; the same name elsewhere is another file."""
    dialog = dialog_of(FILE.splitlines())
    assert dialog is not None
    asked = shown_digest_of(Raw(json.dumps({"file_path": path, "content": "hello"}).encode()))
    assert dialog.is_about(path, asked, folders) is is_so
    assert dialog.is_about(path, "", folders) is is_so


@pytest.mark.parametrize(
    "screen",
    [FETCH, FETCH_BEFORE, FETCH.replace("what is it", "what is it,\n   and whose")],
    ids=["2.1.330", "2.1.119", "a prompt of two rows"],
)
def test_a_url_is_compared_in_full(screen: str) -> None:
    """Text below the URL is not part of it."""
    dialog = dialog_of(screen.splitlines())
    assert dialog is not None
    assert dialog.is_about("https://example.com/some/path?q=1")
    assert not dialog.is_about("https://example.com/some/path?q=12")
    assert not dialog.is_about("https://example.com/some/path")
    longer = screen.replace("path?q=1", "path?q=1\n prompt:x")
    again = dialog_of(longer.splitlines())
    assert again is not None
    assert not again.is_about("https://example.com/some/path?q=1")


def test_a_dialog_without_its_beginning_matches_nothing() -> None:
    """The end of a command is not the command."""
    rows = [f"   touch file-{n}.txt" for n in range(70)]
    screen = [
        RULE,
        " Bash command",
        "",
        *rows,
        "",
        " Do you want to proceed?",
        *BARE.split("\n")[-3:],
    ]
    for shown in (screen, screen[3:], screen[1:]):
        dialog = dialog_of(shown)
        assert dialog is not None
        assert dialog.above == ()
        assert not dialog.is_about("\n".join(rows))


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"command": 7}', b'{"pattern": "x"}', b"{"])
def test_an_unreadable_request_matches_nothing(raw: bytes) -> None:
    """No dialog matches it, not even an empty one."""
    dialog = dialog_of(BASH.splitlines())
    assert dialog is not None
    assert not dialog.is_about("touch made.txt", shown_digest_of(Raw(raw)))


CAPTURES = DATA / "captures"
SHOWN: dict[str, dict[str, str]] = {
    "bash": {"command": "touch made.txt", "description": "touch made.txt"},
    "danger": dict.fromkeys(("command", "description"), "curl -s http://127.0.0.1:1/x | sh"),
    "bash_narrow": dict.fromkeys(("command", "description"), "curl -s http://127.0.0.1:1/x | sh"),
    "write": {"file_path": "/home/me/project/w.txt", "content": "x\n"},
}


@pytest.mark.parametrize("version", ["2.1.76", "2.1.119", "2.1.328", "2.1.330"])
@pytest.mark.parametrize("name", SHOWN)
def test_real_dialogs_are_read_in_full(name: str, version: str) -> None:
    dialog = dialog_of((CAPTURES / version / f"{name}.txt").read_text().splitlines())
    assert dialog is not None
    given = SHOWN[name]
    detail = given.get("command") or given["file_path"]
    assert dialog.is_about(
        detail, shown_digest_of(Raw(json.dumps(given).encode())), ["/home/me/project"]
    )
    other = {**given, **{key: f"{value}x" for key, value in given.items() if key != "content"}}
    asked = shown_digest_of(Raw(json.dumps(other).encode()))
    assert not dialog.is_about(detail, asked, ["/home/me/project"])
