"""Settings of a repository that anybody may have written: no command is led astray by them."""

from __future__ import annotations

import pytest

from rig import warm
from rig.home import Home

pytestmark = pytest.mark.files

KEY = '"\x9b2J\x9d0;x\x9c\u202egnp"'
LONG = f'{{"hooks": {{"Stop": [{{"matcher": {"9" * 5000}, "hooks": [{{"command": "x"}}]}}]}}}}'


def said(home: Home, command: str, text: str) -> tuple[int, str]:
    """Return a command's exit code and output with these settings of a project."""
    path = home.project / ".claude/settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    argv = ["-m", "bellboard", *command.split()]
    done = warm.run(argv, env=home.env, cwd=home.project, merged=True)
    return done.returncode, done.stdout


@pytest.mark.parametrize("command", ["hooks check --project", "uninstall --yes", "doctor"])
def test_nothing_in_them_reaches_the_terminal(home: Home, command: str) -> None:
    """The place of an error is quoted without control characters."""
    code, told = said(home, command, f'{{"hooks": {{{KEY}: [], {KEY}: []}}}}')
    assert code == 1
    assert "duplicate key" in told
    assert all(line.isprintable() for line in told.splitlines())


@pytest.mark.parametrize("command", ["hooks check --project", "uninstall --yes --purge", "doctor"])
def test_a_number_without_end_is_an_error_with_its_line(home: Home, command: str) -> None:
    """Such a number is valid JSON, and Python refuses to read it."""
    code, told = said(home, command, LONG)
    assert code == 1
    assert "line 1: a value that is too long to read" in " ".join(told.split())
    assert "internal error" not in told


def test_the_name_of_a_project_folder_does_not_reach_the_terminal(home: Home) -> None:
    """The name is printed with each file that is written or kept."""
    folder = home.project / "\x9b2J\u202egnp"
    (folder / ".claude").mkdir(parents=True)
    (folder / ".claude/settings.json").write_text("{}")
    for command in ("hooks install --project --yes", "uninstall --yes"):
        argv = ["-m", "bellboard", *command.split()]
        done = warm.run(argv, env=home.env, cwd=folder, merged=True)
        assert done.returncode == 0, done.stdout
        assert all(line.isprintable() for line in done.stdout.splitlines())
