"""What a terminal must show before yes or no is put into it."""

from __future__ import annotations

import pytest

from bellboard.hosting.dialog import dialog_of

pytestmark = pytest.mark.pure

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
    "a question": "Which colour?\n❯ 1. Red\n  2. Blue\n\nEnter to select",
    "a menu far above": BASH + "\nmore\nand\nmore\nbelow it\n",
    "no plain yes": "❯ 1. Yes, and always\n  2. No\n",
    "no no": "❯ 1. Yes\n  2. Yes, always\n",
    "two no": "❯ 1. Yes\n  2. No\n  3. No, and tell\n",
    "a number missing": "❯ 1. Yes\n  3. No\n",
    "nothing chosen": "  1. Yes\n  2. No\n",
}


@pytest.mark.parametrize(("screen", "no"), [(BASH, "4"), (OLD, "3")])
def test_the_keys_are_read_off_the_screen(screen: str, no: str) -> None:
    """No is not always the third: the numbers differ by version and by question."""
    dialog = dialog_of(screen.splitlines())
    assert dialog is not None
    assert dialog.key(yes=True) == "1"
    assert dialog.key(yes=False) == no
    assert dialog.rows[0].strip("│ ") == "❯ 1. Yes"


@pytest.mark.parametrize("screen", NOT_DIALOGS.values(), ids=NOT_DIALOGS)
def test_what_is_no_such_question_gets_no_key(screen: str) -> None:
    """Words that look alike, menus of other kinds, and what has scrolled away."""
    assert dialog_of(screen.splitlines()) is None


@pytest.mark.parametrize(
    ("screen", "detail", "is_so"),
    [
        (BASH, "touch made.txt", True),
        (BASH, "touch other.txt", False),
        (BASH, "", True),
        (OLD, "/home/me/project/src/cache.py", True),
        (OLD, "/home/me/project/src/other.py", False),
        (BASH, "touch made.txt --token ***", False),
        (BASH, "touch made.txt ***", True),
    ],
)
def test_what_is_asked_stands_on_the_screen(screen: str, detail: str, is_so: bool) -> None:
    """The command, or the name of the file; secrets are not shown to us, and do not count."""
    dialog = dialog_of(screen.splitlines())
    assert dialog is not None
    assert dialog.is_about(detail) is is_so
