"""The hooks of every CLI: into its own file, beside those of others, and out again."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bellboard.agents.agent import MOMENTS, Agent, ability_mark
from bellboard.agents.claude.installer import Settings
from bellboard.agents.documented import Documented
from bellboard.agents.installing import hook_record
from bellboard.agents.installing.guard import check_file
from bellboard.agents.installing.installer import Installer, SettingsError, backups
from bellboard.agents.registry import CHATS, agent_of, all_agents, installable
from bellboard.cli import main
from bellboard.system import files
from bellboard.system.files import plugin
from hosting import RecordedHost, start
from rig.home import Home
from rig.waiting import PATIENCE
from settings_files import UNSAFE
from shell import run

pytestmark = pytest.mark.files

__all__ = ["start"]
SHARED = [cli for cli in installable() if cli.hooks and not cli.hooks.own]
OWN = [cli for cli in installable() if cli.hooks and cli.hooks.own]
MANUAL = Path(__file__).resolve().parents[1] / "doc/bellboard-agents.txt"
THEIRS = {"Stop": [{"matcher": "*", "hooks": [{"type": "command", "command": "say done"}]}]}
LISTS = [
    "{}",
    json.dumps({"hooks": THEIRS}),
    json.dumps({"a": [1, 2], "hooks": {"SessionStart": [], **THEIRS}, "b": None}, indent="\t"),
]
NOTED = [
    '// mine\n{\n  "model": "x", // the fast one\n  /* more */ "hooks": {\n    // none\n  }\n}\n',
    '{\n  "hooks": {\n    "Stop": [\n      // a note\n      {"hooks": []} // another\n'
    "    ] /* a third */\n  } // the last\n}",
    '{"url": "https://x/*no comment*/", /* one */ "hooks": {"Stop": [] /* here */}}',
    "// nothing yet",
    "{\r\n  // nothing yet\r\n}\r\n",
]


def installer(home: Home, cli: Agent) -> Installer:
    return cli.installer(home.bellboard, home.env)


def goes_in_and_out(work: Installer, text: str | None) -> None:
    """Install twice, check, and remove."""
    path = work.user_file()
    folder = next(parent for parent in path.parents if parent.exists())

    def looked() -> list[Path]:
        return sorted(p for p in folder.rglob("*") if work.home not in (p, *p.parents))

    before = looked()
    if text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    for _ in range(2):
        work.apply(work.put_in(path))
    assert work.check(path).is_whole
    assert work.put_in(path).is_none
    work.apply(work.take_out(path))
    assert files.content(path) == (None if text is None else text.encode())
    assert hook_record.hooked_files(work.home) == {}
    if text is None:
        assert looked() == before


@pytest.mark.parametrize("cli", installable(), ids=lambda cli: cli.key)
def test_a_missing_file_is_made_and_removed_with_its_folders(home: Home, cli: Agent) -> None:
    """No trace is left."""
    goes_in_and_out(installer(home, cli), None)


@pytest.mark.parametrize("text", ["", "\n", *LISTS])
@pytest.mark.parametrize("cli", SHARED, ids=lambda cli: cli.key)
def test_hooks_go_beside_those_of_others(home: Home, cli: Agent, text: str) -> None:
    """And every byte of theirs is restored."""
    goes_in_and_out(installer(home, cli), text)


@pytest.mark.parametrize("text", NOTED)
@pytest.mark.parametrize("cli", SHARED, ids=lambda cli: cli.key)
def test_comments_stay_where_the_cli_allows_them(home: Home, cli: Agent, text: str) -> None:
    """Elsewhere the file is refused, with the line."""
    work = installer(home, cli)
    path = work.user_file()
    if work.hooks.comments:
        goes_in_and_out(work, text)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    with pytest.raises(SettingsError, match=r"line [124]:"):
        work.put_in(path)


@pytest.mark.parametrize(
    "text",
    [
        *("{}", "x", "[1]", '{"hooks": {}}', json.dumps({"hooks": THEIRS})),
        *(json.dumps({"hooks": {"a": odd}}) for odd in (["x"], [None], [[]], {"b": 1}, 1)),
    ],
)
@pytest.mark.parametrize("cli", OWN, ids=lambda cli: cli.key)
def test_a_file_of_somebody_else_is_left_alone(home: Home, cli: Agent, text: str) -> None:
    """Where ours would be: it is neither replaced nor removed."""
    work = installer(home, cli)
    path = work.user_file()
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(SettingsError, match="not a file of bellboard"):
        work.put_in(path)
    assert work.take_out(path).is_none
    assert "not a file of bellboard" in work.check(path).summary()


def test_only_hooks_that_exist_are_printed(home: Home) -> None:
    """Chats in Neovim report by themselves."""
    said = run(home, "hooks", "print", "--agent", "agentic", code=1)
    assert "cursor" in said and "agentic," not in said


@pytest.mark.parametrize("cli", OWN, ids=lambda cli: cli.key)
def test_a_file_that_was_put_there_by_hand_is_taken_over(home: Home, cli: Agent) -> None:
    """A file as `hooks print` prints it is kept like any other from then on."""
    work = installer(home, cli)
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


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        *UNSAFE.values(),
        (lambda path: path.write_bytes(b"\xff\xfe{}"), "not UTF-8"),
        (lambda path: path.write_text("{" * 500), "line 1|not a file of bellboard"),
        (lambda path: path.write_text('{"hooks": 1, "hooks": {}}'), "duplicate|not a file of"),
        (lambda path: path.write_bytes(b"\0" * 100), "line 1|not a file of bellboard"),
        (lambda path: os.truncate(path, 1 << 30), "cannot read|too large|not"),
    ],
    ids=[*UNSAFE, "UTF-16", "deep", "twice", "NUL", "huge"],
)
@pytest.mark.parametrize("cli", installable(), ids=lambda cli: cli.key)
def test_what_is_in_doubt_is_refused(
    home: Home, cli: Agent, spoil: Callable[[Path], Any], why: str
) -> None:
    """By name, and nothing is written."""
    path = installer(home, cli).user_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}" if not (cli.hooks and cli.hooks.own) else "")
    spoil(path)
    looked = sorted(path.parent.iterdir())
    said = run(home, "hooks", "install", "--yes", "--agent", cli.key, code=1)
    assert str(path) in said
    assert re.search(why, said), said
    assert sorted(path.parent.iterdir()) == looked


@pytest.mark.parametrize("cli", installable(), ids=lambda cli: cli.key)
def test_a_change_meanwhile_is_not_overwritten(home: Home, cli: Agent) -> None:
    """No file of either change is left behind."""
    work = installer(home, cli)
    path = work.user_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    change = work.put_in(path)
    path.write_text("{}")
    with pytest.raises(SettingsError, match="has changed since"):
        work.apply(change)
    assert path.read_text() == "{}"
    assert [*path.parent.glob(f"{files.PREFIX}*")] == []


@pytest.mark.parametrize("cli", installable(), ids=lambda cli: cli.key)
def test_hooks_that_stay_because_of_a_change_meanwhile_are_still_guarded(
    home: Home, cli: Agent
) -> None:
    """The hooks are in the settings, so their loss would be reported."""
    work = installer(home, cli)
    path = work.user_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    work.apply(work.put_in(path))
    before = hook_record.hooked_files(work.home)[str(path)].events
    assert before
    change = work.take_out(path)
    path.write_text(path.read_text() + "\n")
    with pytest.raises(SettingsError, match="has changed since"):
        work.apply(change)
    assert hook_record.hooked_files(work.home)[str(path)].events == before


@pytest.mark.parametrize("was_there", [True, False])
def test_hooks_that_stay_because_a_write_fails_are_still_guarded(
    home: Home, was_there: bool
) -> None:
    """The state is as before the try: here the name of the backup is too long."""
    work = installer(home, agent_of("claude"))
    path = home.root / ("s" * 240)
    if was_there:
        work.apply(work.put_in(path))
        path.write_text(path.read_text().replace("{", '{"mine": 1,', 1))
        change = work.take_out(path)
    else:
        path.write_text("{}")
        change = work.put_in(path)
    before = hook_record.hooked_files(work.home)
    with pytest.raises(OSError, match="too long"):
        work.apply(change)
    assert hook_record.hooked_files(work.home) == before
    assert bool(before) == was_there


def test_a_simultaneous_uninstall_does_not_fail(home: Home) -> None:
    """The record may be gone before the file is written."""
    work = installer(home, agent_of("claude"))
    path = work.user_file()
    path.write_text("{}")
    change = work.put_in(path)
    written = work._write

    def slow(change: Any) -> Path | None:
        with hook_record.changing(work.home) as files:
            files.clear()
        return written(change)

    work._write = slow  # type: ignore[method-assign]
    work.apply(change)
    assert hook_record.hooked_files(work.home)[str(path)].events


def test_an_install_at_the_same_moment_stays_recorded(home: Home) -> None:
    """A refused process takes back only its own note: uninstall restores the bytes."""
    one, other = installer(home, agent_of("claude")), installer(home, agent_of("claude"))
    path = one.user_file()
    path.write_text('{\n  "hooks": {}\n}\n')
    before = path.read_bytes()
    mine, theirs = one.put_in(path), other.put_in(path)
    written = one._write

    def slow(change: Any) -> Path | None:
        other.apply(theirs)
        return written(change)

    one._write = slow  # type: ignore[method-assign]
    with pytest.raises(SettingsError, match="has changed since"):
        one.apply(mine)
    assert hook_record.hooked_files(one.home)[str(path)].events
    other.apply(other.take_out(path))
    assert path.read_bytes() == before


def test_only_what_a_killed_process_left_is_removed(home: Home) -> None:
    """Another process may be writing a file beside it."""
    folder = home.project
    names = [f"{files.PREFIX}{pid}" for pid in (os.getppid(), os.getpid(), 4194305, "x")]
    for name in names:
        (folder / name).touch()
    assert files.replace(folder / "settings.json", b"{}", None)
    assert [path.name for path in folder.glob(f"{files.PREFIX}*")] == names[:1]


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


def test_hooks_of_an_agent_that_is_not_known_are_not_lost(home: Home) -> None:
    """A newer bellboard recorded them; this one cannot look for them."""
    path = home.project / "hooks.json"
    path.write_text("{}")
    hooked = hook_record.HookedFile(events=["Stop"], agent="unheard")
    assert check_file(home.bellboard, home.env, str(path), hooked, None).gone is None


# What Codex trusts

STATE = '[hooks.state."{home}/.codex/hooks.json:{event}:0:0"]\ntrusted_hash = "sha256:{digest}"\n'
#: Event → its name there, and the hash that Codex itself wrote for our handler.
TRUSTED = {
    "Stop": ("stop", "c99f2c9e63f5ba890bfd2e0f104daf1f2b12c9dbb8a6ca7d4175e8ad08aa9e3f"),
    "SessionEnd": (
        "session_end",
        "35a5b2fa30334163739af35fad95c5f3e8f1ec9582dd6de841f7cd48c0afe3d4",
    ),
}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 reads no TOML")
def test_what_codex_trusts_is_known_by_its_hash(home: Home) -> None:
    """The hash is as Codex 0.169 noted it; a changed handler is new to Codex, which asks again."""
    home.env["BELLBOARD_HOME"] = str(home.root / ".local/state/bellboard")
    work = agent_of("codex").installer(home.root / ".local/state/bellboard", home.env)
    path = work.user_file()
    work.apply(work.put_in(path))
    hooks = json.loads(path.read_text())["hooks"]
    path.write_text(json.dumps({"hooks": {event: hooks[event] for event in TRUSTED}}))
    config = path.with_name("config.toml")

    def said() -> str:
        return "; ".join(work.check(path).obstacles)

    assert "2 of 2 hooks not trusted yet" in said()
    notes = [STATE.format(home=home.root, event=e, digest=d) for e, d in TRUSTED.values()]
    config.write_text(notes[0])
    assert "1 of 2 hooks not trusted yet" in said()
    config.write_text("# mine\n" + "".join(notes))
    assert said() == ""
    config.write_text("".join(notes) + "enabled = false\n")
    assert said() == "1 of 2 hooks disabled in Codex's /hooks"
    for name, before in (("hooks", "codex_hooks = true"), ("codex_hooks", "x = 1")):
        config.write_text(f"[features]\n{before}\n{name} = false\n" + "".join(notes))
        assert said() == f"switched off in config.toml: [features] {name}"
    config.write_text("[features]\nhooks = true\ncodex_hooks = false\n" + "".join(notes))
    assert said() == ""
    path.write_text(path.read_text().replace('"timeout": 3', '"timeout": 2'))
    config.write_text("".join(notes))
    assert "1 of 2 hooks not trusted yet" in said()
    for junk in ("[[", "hooks = 1", "[hooks]\nstate = []", "\0", "a = " + "[" * 9999):
        config.write_text(junk)
        assert not said() or "2 of 2 hooks not trusted yet" in said()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 reads no TOML")
def test_what_codex_warns_of_at_each_start_is_noticed(home: Home) -> None:
    """Hooks in both of its files: it runs them, so that is no failure."""
    work = installer(home, agent_of("codex"))
    config = work.user_file().with_name("config.toml")
    config.parent.mkdir()
    config.write_text('[hooks.state."x:stop:0:0"]\ntrusted_hash = "y"\n')
    warns = "Codex warns at each start that config.toml has hooks too: move those into this file"
    assert warns not in run(home, "hooks", "install", "--yes", "--agent", "codex")
    config.write_text('[[hooks.Stop]]\nhooks = [{type = "command", command = "say done"}]\n')
    said = run(home, "hooks", "install", "--yes", "--agent", "codex")
    assert f"~/.codex/hooks.json: {warns}" in said
    assert warns in run(home, "hooks", "check", "--agent", "codex", code=1)
    state = work.check(work.user_file())
    assert warns in state.remarks and warns not in state.obstacles


@pytest.mark.parametrize(
    ("agent", "setting", "name"),
    [
        ("qwen", '"disableAllHooks": true', "disableAllHooks"),
        ("gemini", '"hooksConfig": {"enabled": false}', "hooksConfig.enabled"),
    ],
)
def test_hooks_that_are_switched_off_are_noticed(
    home: Home, agent: str, setting: str, name: str
) -> None:
    """The switch may be among comments."""
    work = installer(home, agent_of(agent))
    path = work.user_file()
    path.parent.mkdir()
    path.write_text(f"// mine\n{{{setting} /* for now */}}")
    work.apply(work.put_in(path))
    assert work.check(path).is_whole
    assert work.check(path).obstacles == (f"disabled by {name}",)


def test_hooks_that_were_switched_off_in_gemini_are_noticed(home: Home) -> None:
    """With its /hooks, which writes a list: of names, and of commands that have none."""
    work = installer(home, agent_of("gemini"))
    path = work.user_file()
    work.apply(work.put_in(path))
    settings = json.loads(path.read_text())
    handlers = [group["hooks"][0] for [group] in settings["hooks"].values()]
    every = len(handlers)
    settings["hooks"]["enabled"] = True  # where older versions had it

    def said(*disabled: str) -> tuple[str, ...]:
        path.write_text(json.dumps({**settings, "hooksConfig": {"disabled": disabled}}))
        return work.check(path).obstacles

    assert said("another", handlers[0]["command"]) == ()
    assert said("bellboard") == (f"{every} of {every} hooks disabled by hooksConfig.disabled",)
    del handlers[0]["name"]
    assert said(handlers[0]["command"]) == (f"1 of {every} hooks disabled by hooksConfig.disabled",)


# The commands


def test_it_installs_for_the_agents_on_this_machine(home: Home) -> None:
    """Agents with a program on PATH or a settings folder are named."""
    (home.root / ".codex").mkdir()
    program = home.bin / "opencode"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    said = run(home, "hooks", "install", "--yes")
    there = [cli for cli in installable() if installer(home, cli).user_file().exists()]
    assert [cli.key for cli in there] == ["claude", "codex", "opencode"]
    for cli in there:
        assert f"{cli.name}: ~/" in said
        assert f"written: {installer(home, cli).user_file()}" in said
    assert "Codex asks to review" in said
    said = run(home, "hooks", "check", code=1)
    assert "12 of 12 events; 12 of 12 hooks not trusted yet: Codex asks" in said
    run(home, "hooks", "check", "--agent", "opencode")
    told = json.loads(run(home, "hooks", "check", "--json"))
    assert {agent["agent"]: agent["hooks"] for agent in told["agents"]} == {
        "claude": True,
        "codex": True,
        "opencode": True,
    }
    (home.root / ".codex/hooks.json").write_text("{")
    said = run(home, "hooks", "uninstall", "--yes", code=1)
    assert "bellboard: Codex: " in said
    assert not installer(home, agent_of("opencode")).user_file().exists()
    assert not installer(home, agent_of("claude")).user_file().exists()
    assert "hooks.json: line 1: unexpected end of file" in run(home, "hooks", "check", code=1)


@pytest.mark.parametrize("user_home", ["", "near"])
def test_nothing_goes_into_the_current_folder(home: Home, user_home: str) -> None:
    """Where a relative path, or none, says that an agent keeps its settings: that is refused."""
    near = {"HOME": user_home, "CODEX_HOME": "near", "GEMINI_CLI_HOME": "near", "QWEN_HOME": "near"}
    near |= {"XDG_CONFIG_HOME": "near", "CLAUDE_CONFIG_DIR": "", "PI_CODING_AGENT_DIR": "near"}
    there = home.project / "near"
    for name in (".codex", ".claude", ".gemini", "opencode"):
        (there / name).mkdir(parents=True)
    (there / "hooks.json").write_text("{}")
    before = sorted(home.project.rglob("*"))
    for cli in installable():
        said = run(home, "hooks", "install", "--yes", "--agent", cli.key, code=1, **near)
        assert f"it is not known where {cli.name} keeps its settings" in said
        assert not cli.is_used({**near, "PATH": ""})
    said = run(home, "hooks", "check", "--all", code=1, **near)
    assert said.count("it is not known where") == len(installable())
    assert sorted(home.project.rglob("*")) == before
    assert not Path("/.claude").exists() and not Path("/.config/opencode").exists()


@pytest.mark.parametrize("odd", ["\\u0000", "\\ud800", "/" * 9000])
def test_a_command_of_somebody_else_may_be_anything(home: Home, odd: str) -> None:
    """Such as in the settings of a repository: our hooks still go in and out."""
    (home.root / ".codex").mkdir()
    handler = f'{{"type": "command", "command": "/x{odd}y Stop $PPID"}}'
    text = f'{{"hooks": {{"Stop": [{{"hooks": [{handler}]}}]}}}}'
    for name in (".claude/settings.json", ".claude/settings.local.json"):
        path = home.project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    run(home, "hooks", "install", "--yes")
    run(home, "hooks", "install", "--yes", "--project")
    assert "no hooks" in run(home, "hooks", "check", "--local", code=1)
    run(home, "uninstall", "--yes")
    assert path.with_name("settings.json").read_text() == text
    assert hook_record.hooked_files(home.bellboard) == {}


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


def test_one_agent_can_be_named(home: Home) -> None:
    """The agent need not be on this machine; an unknown name is refused with the known ones."""
    said = run(home, "hooks", "install", "--yes", "--agent", "gpt", code=1)
    names = ", ".join(cli.key for cli in installable())
    assert f'unknown agent "gpt"; choose one of {names}' in said
    said = run(home, "hooks", "install", "--yes", "--agent", "goose", code=1)
    assert "`bellboard hooks print --agent goose` prints them for you to add" in said
    run(home, "hooks", "install", "--yes", "--agent", "codex")
    assert not installer(home, agent_of("claude")).user_file().exists()
    said = run(home, "hooks", "install", "--yes", "--agent", "codex", "--project", code=1)
    assert "leave out --project" in said
    other = home.root / "other.json"
    for verb in ("install --yes", "uninstall --yes", "check"):
        wrong = ("hooks", *verb.split(), "--all", "--settings", str(other))
        assert "name it with --agent, without --all" in run(home, *wrong, code=1)
    assert not other.exists()
    run(home, "hooks", "install", "--yes", "--agent", "codex", "--settings", str(other))
    assert " codex;" in other.read_text()
    run(home, "uninstall", "--yes")
    assert not other.exists()
    assert not (home.root / ".codex").exists()


def test_every_cli_says_where_its_hooks_go_and_what_it_reports() -> None:
    """Where that was measured: each hook, and how each moment is known."""
    page = " ".join(MANUAL.read_text().split())
    names = [cli.name for cli in all_agents()]
    for cli in all_agents():
        assert names.count(cli.name) == 1, f"{cli.key}: give it a `name` of its own"
        is_chat, is_documented = cli.key in CHATS, isinstance(cli, Documented)
        assert bool(cli.program) != is_chat, f"{cli.key}: `program` is its name on PATH"
        assert bool(cli.hooks) != is_documented, (
            f"{cli.key}: `hooks` says where its hooks go; one that was never seen is `Documented`"
        )
        assert bool(cli.abilities) != is_documented, (
            f"{cli.key}: `abilities` says what was measured; if nothing was, it is `Documented`"
        )
        assert bool(cli.place) == (is_documented and not is_chat), (
            f"{cli.key}: `place` says where the hooks of a `Documented` CLI go"
        )
        assert not cli.place or f"`{cli.key}` (`{cli.place}`)" in page, (
            f"{cli.key}: say in doc/bellboard-agents.txt, where its hooks go"
        )
    for cli in installable():
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
        assert sees_more == (type(cli).observing is not Agent.observing), (
            f"{cli.key}: its `abilities` name {sources}; what is not a hook needs `observing`"
        )


def test_doctor_says_what_the_agents_here_report_and_whether_their_hooks_run(home: Home) -> None:
    """Each ability has its source; hooks that do not run are a problem."""
    said = run(home, "doctor")
    assert "Codex" not in said
    (home.root / ".codex").mkdir()
    said = " ".join(run(home, "doctor").split())
    assert "Codex: hooks not installed: its sessions show, but not always what they do" in said
    assert "hooks install --agent codex" in said
    assert "Codex: asks a question: observed (hooks)" in said
    run(home, "hooks", "install", "--yes", "--agent", "codex")
    work = installer(home, agent_of("codex"))
    path = work.user_file()
    path.write_text(path.read_text().replace('"timeout": 3', '"timeout": 30'))
    said = " ".join(run(home, "doctor", code=1).split())
    assert "with limits set by an older version: SessionEnd, Interrupt" in said


def test_lost_hooks_of_any_cli_are_reported(home: Home, start: Callable[..., RecordedHost]) -> None:
    """By the file that they are gone from."""
    run(home, "hooks", "install", "--yes", "--all")
    host = start("one", server="x")
    paths = [installer(home, cli).user_file() for cli in installable()]
    for path in paths:
        path.unlink()
    for path in paths:
        host.says(f"hooks gone from ~/{path.relative_to(home.root)}")


def test_a_plugin_of_another_version_is_noticed(
    home: Home, start: Callable[..., RecordedHost]
) -> None:
    """After an update: by the host, by `hooks check` and by the doctor, until it is installed."""
    run(home, "hooks", "install", "--yes", "--agent", "opencode")
    plugin = installer(home, agent_of("opencode")).user_file()
    plugin.write_text(plugin.read_text() + "// as another version wrote it\n")
    host = start("one", server="x")
    host.says(f"~/{plugin.relative_to(home.root)} is from another version")
    said = run(home, "hooks", "check", "--agent", "opencode", code=1)
    assert "installed; from another version" in said
    assert "from another version" in run(home, "doctor", code=1)
    run(home, "hooks", "install", "--yes", "--agent", "opencode")
    run(home, "hooks", "check", "--agent", "opencode")
