"""Settings files of every kind, through the user's commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bellboard.agents.claude.agent import ClaudeCode
from bellboard.agents.claude.installer import Settings, handlers, project_file
from bellboard.agents.claude.versions import CORE, LATER, cli_version, events_of
from bellboard.agents.installing import hook_record
from bellboard.agents.installing.installer import SettingsError, backups
from bellboard.agents.installing.settings_file import hook_group
from bellboard.cli.uninstall import REMEMBERED
from bellboard.storage.hosts import Hosts
from bellboard.system import files
from hosting import RecordedHost
from rig.home import Home
from rig.tmux import Server
from rig.waiting import eventually
from settings_files import UNSAFE
from shell import run

pytestmark = pytest.mark.files

ROOT = Path(__file__).resolve().parents[1]
NEWEST = (2, 1, 328)
OTHER = {
    "model": "opus",
    "hooks": {"Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "say done"}]}]},
}
TEXT = json.dumps(OTHER, indent=4) + "\n"


@pytest.fixture
def settings(home: Home) -> Settings:
    """Return the settings of this home, as a command sees them."""
    return ClaudeCode().installer(home.bellboard, home.env)


@pytest.fixture
def file(settings: Settings) -> Path:
    """Write user settings with a hook of another tool."""
    path = settings.user_file()
    path.write_text(TEXT)
    return path


def put_in(settings: Settings, path: Path) -> None:
    """Install the hooks without asking."""
    settings.apply(settings.put_in(path, NEWEST))


def take_out(settings: Settings, path: Path) -> None:
    """Uninstall the hooks without asking."""
    settings.apply(settings.take_out(path))


# In and out again


@pytest.mark.parametrize(
    "raw",
    [
        None,
        b"",
        b"{}",
        b"\n",
        TEXT.encode(),
        TEXT.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        json.dumps({**OTHER, "big": [OTHER] * 20_000}).encode(),
    ],
    ids=["missing", "empty", "object", "blank", "lines", "CRLF", "BOM", "2 MB"],
)
def test_install_and_uninstall_restore_the_bytes(
    home: Home, settings: Settings, raw: bytes | None
) -> None:
    """Both may be done twice, and a missing file may need a folder."""
    path = project_file(home.project)
    if raw is not None:
        path.parent.mkdir()
        path.write_bytes(raw)
    assert settings.check(path).problem == ""
    for _ in range(2):
        put_in(settings, path)
    assert settings.check(path, NEWEST).is_complete
    assert settings.put_in(path, NEWEST).is_none
    take_out(settings, path)
    assert files.content(path) == raw
    assert path.parent.exists() == (raw is not None)
    assert hook_record.hooked_files(home.bellboard) == {}


def test_mode_owner_and_link_are_kept(home: Home, settings: Settings) -> None:
    """A backup is no less private."""
    kept, path = home.root / "dotfiles/claude.json", settings.user_file()
    kept.parent.mkdir()
    kept.write_text(TEXT)
    kept.chmod(0o640)
    path.symlink_to("../dotfiles/claude.json")
    if os.geteuid() == 0:
        os.chown(kept, 12, 34)
    before = kept.stat()
    put_in(settings, path)
    assert path.is_symlink()
    after = kept.stat()
    facts = ("st_mode", "st_uid", "st_gid")
    assert [getattr(after, f) for f in facts] == [getattr(before, f) for f in facts]
    assert settings.check(path, NEWEST).is_complete
    (backup,) = backups(path)
    assert backup.read_text() == TEXT
    assert stat.S_IMODE(backup.stat().st_mode) == 0o640
    take_out(settings, path)
    assert path.is_symlink()
    assert kept.read_text() == TEXT


def test_the_last_three_backups_are_kept(home: Home, settings: Settings, file: Path) -> None:
    """Three per file; files with similar names are left alone."""
    beside = [file.with_name(f"{file.name}.bellboard-{name}") for name in ("mine", "20200101")]
    other = file.with_name("other.json.bellboard-20200101-000000")
    for path in (*beside, other):
        path.write_text("not ours")
    texts = []
    for n in range(5):
        file.write_text(json.dumps(OTHER | {"n": n}, indent=4))
        texts.append(file.read_text())
        settings.apply(settings.put_in(file, NEWEST))
        settings.apply(settings.take_out(file))
    kept = backups(file)
    assert 3 == len(kept)
    assert texts[-1] == kept[-2].read_text()  # the state before the last change
    assert all(path.read_text() == "not ours" for path in (*beside, other))


def test_a_dangling_link_is_restored(home: Home, settings: Settings) -> None:
    """The file is created where the link leads, and removed with the folders made for it."""
    path, kept = settings.user_file(), home.root / "dotfiles/claude/settings.json"
    path.symlink_to(kept)
    put_in(settings, path)
    assert kept.is_file()
    take_out(settings, path)
    assert path.is_symlink()
    assert not kept.parents[1].exists()


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        *UNSAFE.values(),
        (lambda path: path.write_bytes(b'{"a":\n"\xff"}'), "line 2: not UTF-8"),
        (lambda path: path.write_text('{\n"a": 1 // mine\n}'), "line 2: JSON does not allow"),
        (lambda path: path.write_text('{"hooks": {"Stop": {}}}'), "hooks.Stop is an object"),
    ],
    ids=[*UNSAFE, "Latin-1", "comment", "odd type"],
)
def test_an_unsafe_change_is_refused(
    home: Home, file: Path, spoil: Callable[[Path], Any], why: str
) -> None:
    """The error names the file and the reason, and nothing has changed."""
    spoil(file)
    looked = sorted(file.parent.iterdir())
    raw = file.read_bytes() if file.is_file() else None
    said = run(home, "hooks", "install", "--yes", code=1)
    assert str(file) in said
    assert why in said
    assert "nothing was written" in said or why == "cannot"
    assert sorted(file.parent.iterdir()) == looked
    assert (file.read_bytes() if file.is_file() else None) == raw


def test_a_file_that_changes_meanwhile_is_not_overwritten(settings: Settings, file: Path) -> None:
    """The CLI also writes it, when the user allows a tool permanently."""
    change = settings.put_in(file, NEWEST)
    file.write_text("{}")
    with pytest.raises(SettingsError, match="has changed since"):
        settings.apply(change)
    assert file.read_text() == "{}"
    assert [p for p in file.parent.iterdir() if p.name.startswith(files.PREFIX)] == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("agent", ["claude", "opencode"])  # a file of the user; one of our own
def test_wherever_it_dies_the_file_is_the_old_or_the_new_one(tmp_path: Path, agent: str) -> None:
    """The next install works, and uninstall restores it to the byte."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        script = Path(__file__).with_name("faulty_settings.py")
        run = [sys.executable, str(script), folder, agent]
        out = subprocess.run(run, stdout=subprocess.PIPE, check=True, text=True).stdout
    attempts = [json.loads(line) for line in out.splitlines()]
    for verb in ("put_in", "take_out"):
        mine = [attempt for attempt in attempts if attempt["verb"] == verb]
        found = [attempt["found"] for attempt in mine]
        assert len(found) > 40
        assert found == ["old"] * found.count("old") + ["new"] * found.count("new")
        assert found.count("old") > 20
        assert found.count("new") > 10
        well = {"backup": True, "put in": True, "taken out": True, "left": [], "recorded": []}
        for attempt in mine:
            assert {key: attempt[key] for key in well} == well


# The commands


def test_without_a_terminal_the_diff_is_shown_and_nothing_done(home: Home, file: Path) -> None:
    """And it says how to go ahead."""
    said = run(home, "hooks", "install", code=1)
    assert f"+++ {file}" in said
    assert said.count('+            "command": "[ -r') + said.count('"command": "[ -r') >= 12
    assert "--yes" in said
    assert file.read_text() == TEXT
    *diff, note = run(home, "hooks", "install", "--dry-run").splitlines()
    assert diff[-1].startswith(" ")
    assert note.startswith("no claude on PATH, so its version is unknown; left out TeammateIdle, ")
    assert file.read_text() == TEXT
    assert not hook_record.script(home.bellboard).exists()


def test_with_a_terminal_it_asks(home: Home, file: Path, tmux: Server) -> None:
    """Anything but yes means no, also CTRL-D."""
    pane = tmux.open(["sh"], session="shell", cwd=home.project, columns=100, lines=40)
    for answer, done in (("n", False), ("", False), ("y", True)):
        pane.type(f"clear; python3 -m bellboard hooks install; echo status $?{answer}")
        pane.press("Enter")
        shown = pane.shows(r"Write this to .*\? \[y/N\]")
        assert shown.startswith("--- ") and re.search(r"── \d+ more: Space ─", shown)
        pane.press("Space")
        pane.shows(r"\A(?!---)(.*\n)+Write this to .*\? \[y/N\]")
        pane.type(answer)
        pane.press("Enter" if answer else "C-d")
        said = pane.shows(rf"(?m)^status {0 if done else 1}{answer}$")
        assert done or "bellboard: nothing was changed" in said
        assert (file.read_text() != TEXT) == done


def test_the_commands_work_in_sequence(home: Home, file: Path) -> None:
    assert "settings.json: no hooks" in run(home, "hooks", "check", code=1)
    said = run(home, "hooks", "install", "--yes", "--cli", "2.1.119")
    assert "no claude on PATH" not in said
    assert f"written: {file}; backup: settings.json.bellboard-2" in said
    assert "already" in run(home, "hooks", "install", "--yes", "--cli", "2.1.119")
    assert "missing PostModelSwitch" in run(home, "hooks", "check", "--cli", "2.1.328", code=1)
    assert "already" in run(home, "hooks", "install", "--yes")  # of an unknown version
    assert "settings.json: 22 of 22 events" in run(home, "hooks", "check")
    run(home, "hooks", "install", "--yes", "--cli", "2.0.76")
    assert list(json.loads(file.read_text())["hooks"]) == [
        "Stop",
        *[e for e in CORE if e != "Stop"],
    ]
    run(home, "hooks", "uninstall", "--yes")
    assert file.read_text() == TEXT
    assert "no bellboard hooks" in run(home, "hooks", "uninstall", "--yes")
    run(home, "hooks", "check", code=1)


@pytest.mark.parametrize("place", ["--project", "--local", "--settings=odd 'place'/x.json"])
def test_other_settings_files_can_be_named(home: Home, place: str) -> None:
    """Of the folder, or any path."""
    run(home, "hooks", "install", "--yes", place)
    name = {"--project": ".claude/settings.json", "--local": ".claude/settings.local.json"}
    path = home.project / name.get(place, "odd 'place'/x.json")
    assert len(json.loads(path.read_text())["hooks"]) == 12
    run(home, "hooks", "check", place)
    assert str(path) in run(home, "uninstall", "--yes")
    assert list(home.project.iterdir()) == []


@pytest.mark.parametrize("version", [None, *LATER, NEWEST])
def test_what_is_printed_is_what_is_installed(
    home: Home, settings: Settings, version: tuple[int, ...] | None
) -> None:
    """Every event, with its timeout, also those that only answers need."""
    path = home.project / "settings.json"
    settings.apply(settings.put_in(path, version))
    printed = json.loads(settings.printed(version))
    assert printed == json.loads(path.read_text())
    assert tuple(printed["hooks"]) == events_of(version)


def test_the_plugin_has_all_that_every_version_knows() -> None:
    """And the same timeouts; one event more would disable it on an older CLI."""
    plugin = json.loads((ROOT / "hooks/hooks.json").read_text())["hooks"]
    handled = handlers(events_of(None), lambda event: "x")
    printed = {event: hook_group(handler) for event, handler in handled.items()}
    assert set(plugin) == set(printed)
    for event, (group,) in plugin.items():
        (theirs,), (ours,) = group.pop("hooks"), printed[event].pop("hooks")
        assert {**theirs, "command": "x"} == ours
        assert group == printed[event]


def test_the_printed_hooks_work_with_and_without_the_script(home: Home) -> None:
    """The CLI runs them like that."""
    odd = home.root / 'it\'s "my" $HOME'
    env = {**home.env, "BELLBOARD_HOME": str(odd)}
    hooks = json.loads(run(home, "hooks", "print", "--cli", "2.1.328", BELLBOARD_HOME=str(odd)))
    command = hooks["hooks"]["Stop"][0]["hooks"][0]["command"]

    def ring() -> tuple[int, bytes, int]:
        done = subprocess.run(
            ["sh", "-c", command], env=env, input=b"{}", capture_output=True, check=False
        )
        return done.returncode, done.stdout + done.stderr, len([*odd.glob("spool/new/*")])

    assert ring() == (0, b"", 1)
    (told,) = odd.glob("spool/new/*")
    assert b"event=Stop\0" in told.read_bytes()
    assert f"pid={os.getpid()}\0".encode() in told.read_bytes()
    hook_record.script(odd).unlink()
    assert ring() == (0, b"", 1)


def test_uninstall_removes_all_hooks_and_purge_the_state(home: Home, file: Path) -> None:
    """Other files with our hooks are included; nothing that is not ours is removed."""
    far = home.root / "far.json"
    run(home, "hooks", "install", "--yes")
    run(home, "hooks", "install", "--yes", "--settings", str(far))
    run(home, "list")
    (home.bellboard / "mine.txt").write_text("a user's")
    (home.bellboard / "opencode").mkdir()  # its plugin listens there
    neovim = home.root / "state/nvim"
    for name in ("bellboard/hooks-asked", "swap/mine.swp"):
        (neovim / name).parent.mkdir(parents=True, exist_ok=True)
        (neovim / name).touch()
    said = run(home, "uninstall", "--yes")
    assert file.read_text() == TEXT
    assert not far.exists()
    assert f"kept: {home.bellboard}; `bellboard uninstall --purge`" in said
    said = run(home, "uninstall", "--purge", "--yes")
    assert "\nkept: " in said
    assert said.endswith("\ndeleted; now remove the plugin\n")
    assert "which also contains mine.txt" in said
    assert list(home.bellboard.iterdir()) == [home.bellboard / "mine.txt"]
    assert [path.name for path in neovim.rglob("*")] == ["swap", "mine.swp"]
    assert backups(file) == []


def test_purge_changes_nothing_while_a_host_runs(home: Home, file: Path) -> None:
    """The host's Neovim would lose the hooks, and then hear that nothing can be deleted."""
    run(home, "hooks", "install", "--yes")
    installed_text = file.read_text()
    Hosts(str(home.bellboard / "hosts")).announce(os.getpid())
    said = run(home, "uninstall", "--purge", "--yes", code=1)
    assert f"still running ({os.getpid()})" in said
    assert "hooks" not in said
    assert file.read_text() == installed_text


def test_purge_works_without_a_state_folder(home: Home, file: Path) -> None:
    """Somebody has deleted it by hand; the rest is still there."""
    run(home, "hooks", "install", "--yes")
    shutil.rmtree(home.bellboard)
    neovim = home.root / "state/nvim/bellboard"
    neovim.mkdir(parents=True, exist_ok=True)
    (neovim / "answers").touch()
    assert backups(file)
    link = home.root / ".local/bin/bellboard"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to("/gone/.venv/bin/bellboard")  # as `bellboard path` makes it
    assert f"- {link}\n" in run(home, "uninstall", "--purge", "--yes")
    assert not link.is_symlink()
    assert (backups(file), neovim.exists(), home.bellboard.exists()) == ([], False, False)
    assert "nothing of bellboard is left" in run(home, "uninstall", "--purge", "--yes")


def test_purge_finds_what_every_neovim_remembers(home: Home) -> None:
    """Of any NVIM_APPNAME: empty files of ours, not what another program has put there."""
    state = home.root / "state"
    shutil.rmtree(state)
    kept = [
        state / name for name in ("a/bellboard/mine", "b/bellboard/answers/1", "c/swap/answers")
    ]
    gone = [state / name for name in ("a/bellboard/answers", "d/bellboard/hooks-asked")]
    for path in (*kept, *gone):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (filled := state / "e/bellboard/answers").parent.mkdir(parents=True)
    filled.write_text("what another program keeps")
    (empty := state / "f/bellboard").mkdir(parents=True)
    (far := home.root / "far/bellboard/answers").parent.mkdir(parents=True)
    far.touch()
    (state / "g").symlink_to(far.parents[1])
    (state / "h").mkdir()
    (state / "h/bellboard").symlink_to(far.parent)
    kept += [filled, *([theirs(state / "i/bellboard/answers")] if os.geteuid() == 0 else [])]
    said = run(home, "uninstall", "--purge", "--yes")
    assert f"- {gone[0]}\n- {gone[1].parent}\n" in said
    assert empty.exists() and far.exists()
    assert sorted(kept) == sorted(path for path in state.rglob("*") if path.is_file())
    assert "nothing of bellboard is left" in run(home, "uninstall", "--purge", "--yes")


def theirs(path: Path) -> Path:
    """Make an empty file of another user, in a folder of that user."""
    path.parent.mkdir(parents=True)
    path.touch()
    for place in (path, path.parent):
        os.chown(place, 65534, 65534)
    return path


def test_purge_goes_on_after_what_it_cannot_delete(home: Home) -> None:
    """The message names the whole path of the file."""
    run(home, "list")
    stuck = home.bellboard / "spool/tmp"
    (stuck / "x").touch()
    stuck.chmod(0o500)
    argv = [sys.executable, "-m", "bellboard", "uninstall", "--purge", "--yes"]
    if os.geteuid() == 0:  # modes do not stop root, only its capabilities let it pass
        argv[:0] = ["setpriv", "--bounding-set=-all"]
    done = subprocess.run(argv, env=home.env, cwd=home.project, capture_output=True, text=True)
    assert "now remove" not in done.stdout
    why = f"cannot delete {home.bellboard / 'spool'}: x: Permission denied; delete it by hand"
    assert (done.returncode, done.stderr) == (1, f"bellboard: {why}\n")
    assert [path.name for path in home.bellboard.iterdir()] == ["spool"]


def test_purge_knows_what_neovim_remembers() -> None:
    """Every name that the Lua gives to `remembered`."""
    names = set()
    for text in (path.read_text() for path in (ROOT / "lua").rglob("*.lua")):
        for given in re.findall(r"\bremembered\.(?:is|note|forget)\((.+?)\)", text):
            value = re.search(rf"^local {given} = (.+)$", text, re.MULTILINE)
            names.add((value[1] if value else given).strip("'"))
    assert names == REMEMBERED


def test_purge_says_what_is_left_in_tmux_conf(home: Home) -> None:
    """The file is the user's; a line there would set everything up again when tmux starts."""
    conf = home.root / "config/tmux/tmux.conf"
    conf.parent.mkdir()
    conf.write_text("set -g mouse on\n  # bellboard\nrun-shell -b ': bellboard; exec x tmux'\n")
    (home.root / ".tmux.conf").write_text("set -ga status-right ' #{@bellboard-status}'\n" * 2)
    left = [
        "kept: ~/.tmux.conf; to finish, remove its lines 1, 2 by hand",
        "kept: ~/config/tmux/tmux.conf; to finish, remove its line 3 by hand",
    ]
    run(home, "list")
    for _ in range(2):
        said = run(home, "uninstall", "--purge", "--yes")
        assert left == [line for line in said.splitlines() if "tmux.conf" in line]
        assert "nothing of bellboard is left" not in said


def test_purge_removes_a_link_to_the_state_folder(home: Home) -> None:
    """And the folder that it leads to."""
    place = home.root / "elsewhere"
    place.mkdir(mode=0o700)
    home.bellboard.symlink_to(place)
    run(home, "list")
    run(home, "uninstall", "--purge", "--yes")
    assert not place.exists()
    assert not home.bellboard.is_symlink()


def test_an_older_installation_is_replaced(home: Home, file: Path) -> None:
    """Lines that people pasted by hand name the script of a checkout."""
    old = f'"{ROOT}/hooks/emit" Stop "$PPID"'
    told = {**OTHER, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": old}]}]}}
    file.write_text(json.dumps(told))
    assert "from another installation: Stop" in run(home, "hooks", "check", code=1)
    run(home, "hooks", "install", "--yes")
    (group,) = json.loads(file.read_text())["hooks"]["Stop"]
    assert str(ROOT) not in group["hooks"][0]["command"]
    run(home, "hooks", "check")


def test_the_plugin_is_noticed(home: Home, file: Path) -> None:
    """Plugin and settings together do no harm; it is reported."""
    file.write_text(json.dumps({"enabledPlugins": {"bellboard@bellboard": True}}))
    assert "no hooks; plugin enabled" in run(home, "hooks", "check")
    assert "also enables the plugin" in run(home, "hooks", "install", "--yes")
    file.write_text(json.dumps({**json.loads(file.read_text()), "disableAllHooks": True}))
    assert "disabled by disableAllHooks" in run(home, "hooks", "check", code=1)
    for _ in range(2):  # also where nothing has to be written
        said = run(home, "hooks", "install", "--yes")
        assert "settings.json: its hooks do not run: disabled by disableAllHooks" in said


# Which version of the CLI


def test_the_version_is_found_from_the_installation(home: Home, tmp_path: Path) -> None:
    """By its own installer, by npm, else by asking the CLI."""
    lies = {"2.1.5": tmp_path / "share/claude/versions/2.1.5"}
    lies["2.1.6"] = tmp_path / "npm/node_modules/@anthropic-ai/claude-code/cli.js"
    lies["2.1.7"] = tmp_path / "bin/claude"
    for version, program in lies.items():
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho '{version} (Claude Code)'; exit 3\n")
        program.chmod(0o755)
    told = {"version": "2.1.6", "bin": {"claude": "cli.js"}}
    (lies["2.1.6"].parent / "package.json").write_text(json.dumps(told))
    for version, program in lies.items():
        link = home.bin / "claude"
        link.unlink(missing_ok=True)
        link.symlink_to(program)
        numbers = tuple(map(int, version.split(".")))
        assert cli_version(None, home.env) == numbers
        assert cli_version(str(program), {}) == numbers
    assert cli_version("2.1.328", {}) == NEWEST
    (home.bin / "claude").unlink()
    assert cli_version(None, home.env) is None
    assert "not a version" in run(home, "hooks", "print", "--cli", "1.2.x", code=1)


# The script, and a host that sees to it all


def test_a_wheel_contains_the_script(tmp_path: Path) -> None:
    """Inside the package."""
    package = tmp_path / "bellboard"
    shutil.copytree(ROOT / "rplugin/python3/bellboard", package)
    shutil.copytree(ROOT / "hooks", package / "hooks")
    code = "from bellboard.agents.installing import hook_record; print(hook_record.shipped())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(package / "hooks/emit")


def test_a_host_updates_the_script(home: Home, start: Callable[..., RecordedHost]) -> None:
    """So an update of the plugin needs no new installation of hooks."""
    home.bellboard.mkdir()
    hook_record.script(home.bellboard).write_text("an old one")
    start()
    shipped = hook_record.shipped().read_bytes()
    eventually(lambda: hook_record.script(home.bellboard).read_bytes() == shipped)
    eventually(lambda: os.access(hook_record.script(home.bellboard), os.X_OK))


def test_lost_hooks_are_reported_once(
    home: Home, settings: Settings, file: Path, start: Callable[..., RecordedHost]
) -> None:
    """By one editor, and in health until they are back or were removed with bellboard."""
    put_in(settings, file)
    editors = [start("one", server="x"), start("two", server="y")]
    server = start("three")
    text = file.read_text()
    file.write_text(TEXT)  # by a program that had read it before
    for host in (*editors, server):
        host.says("hooks gone from ~/claude/settings.json")
    eventually(lambda: sum("vanished" in h.health for h in editors) == 1, "one that reports it")
    assert "vanished" not in server.health
    file.write_text(text)
    for host in (*editors, server):
        eventually(lambda host=host: not host.note, "no more complaint")
    eventually(lambda: not any("vanished" in h.health for h in editors), "nothing to report")
    take_out(settings, file)
    assert file.read_text() == TEXT
    put_in(settings, project_file(home.project))  # hosts see this after the change before it
    project_file(home.project).unlink()
    for host in (*editors, server):
        host.says("hooks gone from ~/project/.claude/settings.json")
        host.says(f"hooks install --settings {project_file(home.project)}`")
        assert "~/claude" not in host.note


def test_a_check_that_finds_no_agent_says_how_to_name_one(home: Home) -> None:
    """`hooks install` says so, too."""
    shutil.rmtree(home.claude, ignore_errors=True)
    for verb in ("check", "install"):
        said = run(home, "hooks", verb, code=1)
        assert "found no agent on this machine; name one with --agent: claude, codex" in said
    (home.bin / "agy").write_text("#!/bin/sh\n")
    (home.bin / "agy").chmod(0o755)
    said = run(home, "hooks", "install", code=1)
    assert "Antigravity CLI: `bellboard hooks print --agent antigravity`" in said
