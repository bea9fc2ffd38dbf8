"""Hooks that are in place and do not run, or not as they should: each reason is noticed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest

from bellboard.agents.installing.installer import Installer
from bellboard.agents.registry import agent_of
from rig import ROOT
from rig.home import Home
from rig.shell import run

reads_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 reads no TOML")


def installer(home: Home, agent: str) -> Installer:
    return agent_of(agent).installer(home.bellboard, home.env)


#: A CLI, its settings, and why no hook in them runs; the reason may be among comments.
OBSTACLES = [
    ("claude", '{"disableAllHooks": true}', "disabled by disableAllHooks"),
    ("qwen", '// mine\n{"disableAllHooks": true /* for now */}', "disabled by disableAllHooks"),
    ("gemini", '{"hooksConfig": {"enabled": false}}', "disabled by hooksConfig.enabled"),
    ("gemini", '{"hooksConfig": {"disabled": ["bellboard"]}}', "disabled by hooksConfig.disabled"),
]


@pytest.mark.parametrize(("agent", "settings", "why"), OBSTACLES)
def test_hooks_that_do_not_run_are_noticed(home: Home, agent: str, settings: str, why: str) -> None:
    """Install says so, also where nothing has to be written, and so does check."""
    path = installer(home, agent).user_file()
    path.parent.mkdir(exist_ok=True)
    path.write_text(settings)
    for _ in range(2):
        said = run(home, "hooks", "install", "--yes", "--agent", agent)
        assert f"{path.name}: its hooks do not run: " in said and why in said
    assert why in run(home, "hooks", "check", "--agent", agent, code=1)


def test_a_setting_of_another_form_is_no_obstacle(home: Home) -> None:
    path = installer(home, "gemini").user_file()
    path.parent.mkdir()
    path.write_text('{"hooksConfig": []}')
    run(home, "hooks", "install", "--yes", "--agent", "gemini")
    assert "7 of 7 events\n" in run(home, "hooks", "check", "--agent", "gemini")


def test_hooks_that_were_switched_off_one_by_one_in_gemini_are_noticed(home: Home) -> None:
    """Gemini's /hooks writes a list: of names, and of commands that have none."""
    work = installer(home, "gemini")
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


# ---------------------------------------------------------------- Codex

TRUST = '[hooks.state."{home}/.codex/hooks.json:{event}:0:0"]\ntrusted_hash = "sha256:{digest}"\n'
#: Event → its name there, and the hash that Codex 0.169 itself wrote for our handler.
TRUSTED = {
    "Stop": ("stop", "c99f2c9e63f5ba890bfd2e0f104daf1f2b12c9dbb8a6ca7d4175e8ad08aa9e3f"),
    "SessionEnd": (
        "session_end",
        "35a5b2fa30334163739af35fad95c5f3e8f1ec9582dd6de841f7cd48c0afe3d4",
    ),
}
#: Codex's configuration, with its notes of both hooks or of one, and the obstacle that is noticed.
CONFIGURATIONS = [
    ("", "2 of 2 hooks not trusted yet"),
    ("{stop}", "1 of 2 hooks not trusted yet"),
    ("# mine\n{stop}{session_end}", ""),
    ("{stop}{session_end}enabled = false\n", "1 of 2 hooks disabled in Codex's /hooks"),
    (
        "[features]\ncodex_hooks = true\nhooks = false\n{stop}{session_end}",
        "switched off in config.toml: [features] hooks",
    ),
    (
        "[features]\nx = 1\ncodex_hooks = false\n{stop}{session_end}",
        "switched off in config.toml: [features] codex_hooks",
    ),
    ("[features]\nhooks = true\ncodex_hooks = false\n{stop}{session_end}", ""),
    ("[[", ""),  # Codex does not start with it
    ("hooks = 1", "2 of 2 hooks not trusted yet"),
    ("[hooks]\nstate = []", "2 of 2 hooks not trusted yet"),
    ("\0", ""),
    ("a = " + "[" * 9999, ""),
]


@pytest.fixture
def in_codex(home: Home) -> Callable[[str], str]:
    """Install two hooks for Codex; return its obstacles with a configuration."""
    home.env["BELLBOARD_HOME"] = str(home.root / ".local/state/bellboard")
    work = agent_of("codex").installer(home.root / ".local/state/bellboard", home.env)
    path = work.user_file()
    work.apply(work.put_in(path))
    hooks = json.loads(path.read_text())["hooks"]
    path.write_text(json.dumps({"hooks": {event: hooks[event] for event in TRUSTED}}))
    notes = {e: TRUST.format(home=home.root, event=e, digest=d) for e, d in TRUSTED.values()}

    def said(text: str) -> str:
        path.with_name("config.toml").write_text(text.format(**notes))
        return "; ".join(work.check(path).obstacles)

    return said


@reads_toml
@pytest.mark.parametrize(("text", "obstacle"), CONFIGURATIONS)
def test_trust_of_codex_is_known(in_codex: Callable[[str], str], text: str, obstacle: str) -> None:
    said = in_codex(text)
    assert said.startswith(obstacle) and bool(said) == bool(obstacle)


@reads_toml
def test_a_changed_handler_is_new_to_codex(home: Home, in_codex: Callable[[str], str]) -> None:
    """Codex asks again."""
    path = home.root / ".codex/hooks.json"
    path.write_text(path.read_text().replace('"timeout": 3', '"timeout": 2'))
    assert "1 of 2 hooks not trusted yet" in in_codex("{stop}{session_end}")


@reads_toml
def test_a_warning_of_codex_at_each_start_is_noticed(home: Home) -> None:
    """Codex runs the hooks of both files, so that is no failure."""
    work = installer(home, "codex")
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


# ---------------------------------------------------------------- other faults


def test_an_older_installation_is_replaced(home: Home) -> None:
    """Lines that people pasted by hand name the script of a checkout."""
    file = home.claude / "settings.json"
    old = {"type": "command", "command": f'"{ROOT}/hooks/emit" Stop "$PPID"'}
    file.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [old]}]}}))
    assert "from another installation: Stop" in run(home, "hooks", "check", code=1)
    run(home, "hooks", "install", "--yes")
    (group,) = json.loads(file.read_text())["hooks"]["Stop"]
    assert str(ROOT) not in group["hooks"][0]["command"]
    run(home, "hooks", "check")


def test_a_plugin_with_the_same_hooks_is_noticed(home: Home) -> None:
    """Plugin and settings together do no harm."""
    plugins = {"bellboard@bellboard": True, "another@bellboard": False}
    (home.claude / "settings.json").write_text(json.dumps({"enabledPlugins": plugins}))
    assert "no hooks; plugin enabled" in run(home, "hooks", "check")
    assert "also enables the plugin" in run(home, "hooks", "install", "--yes")


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
    path = installer(home, "codex").user_file()
    path.write_text(path.read_text().replace('"timeout": 3', '"timeout": 30'))
    said = " ".join(run(home, "doctor", code=1).split())
    assert "with limits set by an older version: SessionEnd, Interrupt" in said
