"""The `hooks` commands: they install, check, print and remove the hooks of every CLI."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bellboard.agents.agent import MOMENTS, Agent, ability_mark
from bellboard.agents.claude.hooks import KINDS
from bellboard.agents.claude.installer import Settings, handlers
from bellboard.agents.claude.versions import CORE, LATER, cli_version, events_of
from bellboard.agents.documented import Documented
from bellboard.agents.installing import hook_record
from bellboard.agents.installing.installer import Installer, backups
from bellboard.agents.installing.settings_file import hook_group
from bellboard.agents.registry import CHATS, agent_of, all_agents, installable, measured
from bellboard.cli import main
from bellboard.system.files import plugin
from rig import ROOT
from rig.home import Home
from rig.host.settings_files import looked
from rig.shell import run
from rig.tmux import Server
from rig.waiting import PATIENCE

MANUAL = ROOT / "doc/bellboard-agents.txt"
OWN = [cli for cli in installable() if cli.hooks and cli.hooks.own]
KEYS = ", ".join(cli.key for cli in installable())
NEWEST = (2, 1, 328)
TEXT = '{\n    "model": "opus",\n    "hooks": {\n        "Stop": []\n    }\n}\n'


def installer(home: Home, agent: str) -> Installer:
    return agent_of(agent).installer(home.bellboard, home.env)


@pytest.fixture
def file(home: Home) -> Path:
    """Write a user's settings."""
    path = home.claude / "settings.json"
    path.write_text(TEXT)
    return path


# ---------------------------------------------------------------- asked for, and refused

#: A command, and why it fails.
REFUSED = {
    "hooks install --yes --agent gpt": f'unknown agent "gpt"; choose one of {KEYS}',
    "hooks install gpt --yes": f'unknown agent "gpt"; choose one of {KEYS}',
    "hooks check codx": 'unknown agent "codx"; did you mean codex?',
    "hooks print agentic": 'unknown agent "agentic"; choose one of claude, codex',
    "hooks uninstall --project codex": "leave out --project",
    "hooks install --yes --agent goose": "`bellboard hooks print --agent goose` prints them",
    "hooks install --yes --agent codex --project": "leave out --project",
    "hooks install --yes --all --settings x": "name it with --agent, without --all",
    "hooks uninstall --yes --all --settings x": "name it with --agent, without --all",
    "hooks check --all --settings x": "name it with --agent, without --all",
    "hooks print --agent agentic": 'unknown agent "agentic"; choose one of claude, codex',
    "hooks print --cli 1.2.x": "not a version",
    "hooks install": "no terminal to ask for confirmation; use --yes",
}


@pytest.mark.parametrize("command", REFUSED)
def test_a_command_that_cannot_be_meant_is_refused(home: Home, file: Path, command: str) -> None:
    before = looked(home.root)
    assert REFUSED[command] in run(home, *command.split(), code=1)
    assert looked(home.root) == before


def test_without_an_agent_on_this_machine_one_has_to_be_named(home: Home) -> None:
    home.claude.rmdir()
    for verb in ("check", "install"):
        said = run(home, "hooks", verb, code=1)
        assert f"found no agent on this machine; name one with --agent: {KEYS}" in said
    (home.bin / "agy").write_text("#!/bin/sh\n")
    (home.bin / "agy").chmod(0o755)
    said = run(home, "hooks", "install", code=1)
    assert "for Antigravity CLI, `bellboard hooks print --agent antigravity`" in said


@pytest.mark.parametrize("user_home", ["", "near"])
def test_nothing_goes_into_the_current_folder(home: Home, user_home: str) -> None:
    """Where a relative path, or none, says that an agent keeps its settings: that is refused."""
    near = {"HOME": user_home, "CODEX_HOME": "near", "GEMINI_CLI_HOME": "near", "QWEN_HOME": "near"}
    near |= {"XDG_CONFIG_HOME": "near", "CLAUDE_CONFIG_DIR": "", "PI_CODING_AGENT_DIR": "near"}
    there = home.project / "near"
    for name in (".codex", ".claude", ".gemini", "opencode"):
        (there / name).mkdir(parents=True)
    (there / "hooks.json").write_text("{}")
    before = looked(home.project)
    for cli in installable():
        said = run(home, "hooks", "install", "--yes", "--agent", cli.key, code=1, **near)
        assert f"it is not known where {cli.name} keeps its settings" in said
        assert not cli.is_used({**near, "PATH": ""})
    said = run(home, "hooks", "check", "--all", code=1, **near)
    assert said.count("it is not known where") == len(installable())
    assert looked(home.project) == before
    assert not Path("/.claude").exists() and not Path("/.config/opencode").exists()


# ---------------------------------------------------------------- shown, and asked


def test_without_a_terminal_the_diff_is_shown_and_nothing_done(home: Home, file: Path) -> None:
    said = run(home, "hooks", "install", code=1)
    assert f"+++ {file}" in said
    assert said.count('"command": "[ -r') >= 12
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


#: Commands in sequence, with the exit code and a part of the output.
SEQUENCE = [
    ("check", 1, "settings.json: no hooks"),
    ("install --yes --cli 2.1.119", 0, "; backup: settings.json.bellboard-2"),
    ("install --yes --cli 2.1.119", 0, "already"),
    ("check --cli 2.1.328", 1, "missing PostModelSwitch"),
    ("install --yes", 0, "already"),  # of an unknown version
    ("check", 0, "settings.json: 22 of 22 events"),
    ("install --yes --cli 2.0.76", 0, "written: "),
    ("check --cli 2.0.76", 0, f"settings.json: {len(CORE)} of {len(CORE)} events"),
    ("uninstall --yes", 0, "written: "),
    ("uninstall --yes", 0, "no bellboard hooks"),
    ("check", 1, "settings.json: no hooks"),
]


def test_the_commands_work_in_sequence(home: Home, file: Path) -> None:
    for command, code, part in SEQUENCE:
        assert part in run(home, "hooks", *command.split(), code=code), command
    assert file.read_text() == TEXT


@pytest.mark.parametrize("place", ["--project", "--local", "--settings=odd 'place'/x.json"])
def test_another_settings_file_can_be_named(home: Home, place: str) -> None:
    """A file of the folder, or any path."""
    run(home, "hooks", "install", "--yes", place)
    name = {"--project": ".claude/settings.json", "--local": ".claude/settings.local.json"}
    path = home.project / name.get(place, "odd 'place'/x.json")
    assert len(json.loads(path.read_text())["hooks"]) == 12
    run(home, "hooks", "check", place)
    assert str(path) in run(home, "uninstall", "--yes")
    assert list(home.project.iterdir()) == []


def test_the_name_of_a_project_does_not_reach_the_terminal(home: Home) -> None:
    """The name is printed with each file that is written or kept."""
    folder = home.project / "\x9b2J\u202egnp"
    (folder / ".claude").mkdir(parents=True)
    (folder / ".claude/settings.json").write_text("{}")
    for command in ("hooks install --yes --settings {}", "uninstall --yes"):
        said = run(home, *command.format(folder / ".claude/settings.json").split())
        assert "gnp/.claude/settings.json" in said
        assert all(line.isprintable() for line in said.splitlines())


# ---------------------------------------------------------------- printed


@pytest.mark.parametrize("version", [None, *LATER, NEWEST])
def test_the_printed_hooks_are_those_that_are_installed(
    home: Home, version: tuple[int, ...] | None
) -> None:
    """Events and timeouts are the same, also those that only answers need."""
    work, path = installer(home, "claude"), home.project / "settings.json"
    work.apply(work.put_in(path, version))
    printed = json.loads(work.printed(version))
    assert printed == json.loads(path.read_text())
    assert tuple(printed["hooks"]) == events_of(version)


def test_the_plugin_has_all_that_every_version_knows() -> None:
    """The timeouts are the same; one event more would disable the plugin on an older CLI."""
    plugin = json.loads((ROOT / "hooks/hooks.json").read_text())["hooks"]
    handled = handlers(events_of(None), lambda event: "x")
    printed = {event: hook_group(handler) for event, handler in handled.items()}
    assert len(plugin) == 12
    assert set(plugin) == set(printed) <= set(KINDS)
    for event, (group,) in plugin.items():
        (theirs,), (ours,) = group.pop("hooks"), printed[event].pop("hooks")
        assert f"set -- {event} " in theirs["command"]
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


@pytest.mark.parametrize("cli", OWN, ids=lambda cli: cli.key)
def test_a_file_that_was_put_there_by_hand_is_taken_over(home: Home, cli: Agent) -> None:
    """A file as `hooks print` prints it is kept like any other from then on."""
    work = installer(home, cli.key)
    path = work.user_file()
    path.parent.mkdir(parents=True)
    path.write_text(run(home, "hooks", "print", "--agent", cli.key))
    assert work.check(path).is_whole
    work.apply(work.put_in(path))
    assert hook_record.hooked_files(home.bellboard)[str(path)].agent == cli.key
    path.write_text(path.read_text().replace("}\n", "} \n", 1))
    assert "from another version" in work.check(path).summary()
    edited = path.read_text()
    work.apply(work.take_out(path))
    assert not path.exists()
    assert [copy.read_text() for copy in backups(path)] == [edited]


@pytest.mark.parametrize("locale", ["C", "en_US.ISO-8859-1"])
def test_a_plugin_is_the_same_in_every_locale(home: Home, locale: str) -> None:
    """The text is UTF-8 in any terminal: Python warns where it would ask the locale."""
    names = ["opencode.js", "pi.js", "amp.js"]
    code = (
        "import sys; from bellboard.system.files import plugin\n"
        f"sys.stdout.buffer.write(''.join(plugin('', name) for name in {names}).encode())"
    )
    plain = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-W", "error", "-c", code],
        env=home.env | plain,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == "".join(plugin("", name) for name in names)


# ---------------------------------------------------------------- for which agents


def test_hooks_are_installed_for_the_agents_on_this_machine(home: Home) -> None:
    """Agents with a program on PATH or a settings folder are named."""
    (home.root / ".codex").mkdir()
    program = home.bin / "opencode"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    said = run(home, "hooks", "install", "--yes")
    files = {cli: installer(home, cli.key).user_file() for cli in installable()}
    there = [cli for cli in installable() if files[cli].exists()]
    assert [cli.key for cli in there] == ["claude", "codex", "opencode"]
    for cli in there:
        assert f"{cli.name}: ~/" in said
        assert f"written: {files[cli]}" in said
    assert "Codex asks to review" in said
    assert "every Neovim shows it: `:ClaudeSessions board`\n" in said
    (home.bin / "bellboard").symlink_to(program)  # where it is on PATH, as after `path`
    assert "every Neovim shows it: `bellboard list`\n" in run(home, "hooks", "install", "--yes")
    said = run(home, "hooks", "check", code=1)
    assert "12 of 12 events; 12 of 12 hooks not trusted yet: Codex asks" in said
    run(home, "hooks", "check", "--agent", "opencode")
    told = json.loads(run(home, "hooks", "check", "--json"))
    assert [agent["agent"] for agent in told["agents"] if agent["hooks"]] == [c.key for c in there]
    (home.root / ".codex/hooks.json").write_text("{")
    said = run(home, "hooks", "uninstall", "--yes", code=1)
    assert "bellboard: Codex: " in said
    assert not files[agent_of("opencode")].exists()
    assert not files[agent_of("claude")].exists()
    assert "hooks.json: line 1: unexpected end of file" in run(home, "hooks", "check", code=1)


def test_one_agent_can_be_named(home: Home) -> None:
    """The agent need not be on this machine."""
    before, other = looked(home.root), home.root / "other.json"
    run(home, "hooks", "install", "--yes", "--agent", "codex")
    assert not installer(home, "claude").user_file().exists()
    run(home, "hooks", "install", "--yes", "--agent", "codex", "--settings", str(other))
    assert " codex;" in other.read_text()
    run(home, "uninstall", "--yes")
    assert looked(home.root) == before


@pytest.mark.parametrize("command", ["uninstall", "hooks uninstall"])
def test_one_file_never_keeps_the_hooks_in_the_others(
    home: Home, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failure of any kind is named."""

    def broken(work: Settings, path: Path) -> Any:
        raise RuntimeError("broken")

    (home.root / ".codex").mkdir()
    run(home, "hooks", "install", "--yes")
    for name, value in home.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home.project)
    monkeypatch.setattr(Settings, "take_out", broken)
    assert main([*command.split(), "--yes"]) == 1
    assert "bellboard: Claude Code: internal error: broken (test_inst" in capsys.readouterr().err
    left = [hooked.agent for hooked in hook_record.hooked_files(home.bellboard).values()]
    assert left == ["claude"]


def test_the_version_is_found_from_the_installation(home: Home, tmp_path: Path) -> None:
    """The path of Claude's own installer or of npm tells it; otherwise the CLI is asked."""
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


def test_every_cli_says_where_its_hooks_go_and_what_it_reports() -> None:
    """Where that was measured: each hook, and how each moment is known."""
    page = " ".join(MANUAL.read_text().split())
    names = [cli.name for cli in all_agents()]
    for cli in all_agents():
        assert names.count(cli.name) == 1, f"{cli.key}: give it a `name` of its own"
        is_chat, is_documented = cli.key in CHATS, isinstance(cli, Documented)
        assert bool(cli.program) != is_chat, f"{cli.key}: `program` is its name on PATH"
        assert is_chat or bool(cli.hooks) != bool(cli.place), (
            f"{cli.key}: `hooks` or `place` says where its hooks go"
        )
        assert not (is_documented and cli.hooks), (
            f"{cli.key}: nothing is installed for one that was never seen"
        )
        assert bool(cli.abilities) != is_documented, (
            f"{cli.key}: `abilities` says what was measured; if nothing was, it is `Documented`"
        )
        assert not cli.place or f"`{cli.key}` (`{cli.place}`)" in page, (
            f"{cli.key}: say in doc/bellboard-agents.txt, where its hooks go"
        )
    for cli in measured():
        assert [*cli.abilities] == [*MOMENTS], (
            f"{cli.key}: `abilities` has each of MOMENTS (agents/agent.py), in their order"
        )
        for moment in ("working", "completed"):
            assert ability_mark(moment, cli.abilities[moment]) == "observed", (
                f"{cli.key}: without hooks that report `{moment}`, it cannot be installed for"
            )
        sources = ", ".join(ability.source for ability in cli.abilities.values())
        sees_more = bool(
            {"file", "files", "log", "title", "transcript"} & set(re.findall(r"\w+", sources))
        )
        assert not sees_more or type(cli).observing is not Agent.observing, (
            f"{cli.key}: its `abilities` name {sources}; what is not a hook needs `observing`"
        )
