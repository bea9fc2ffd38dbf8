"""The real Claude Code CLI, interactive, in a home of its own, connected to the fake API."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig.agents.api import Api
from rig.fetched import claude_code
from rig.home import Home
from rig.machines.loopback import Watch
from rig.terminal import Terminal
from rig.tmux import Pane, Server
from rig.waiting import GLANCE, PATIENCE, eventually

KEY = "loopback-only-and-no-real-key-0123456789"
RECORD = Path(__file__).with_name("record")
ELICIT = Path(__file__).with_name("elicit.py")
PROMPT = "(?m)^\\s*[\u276f>]\\s"  # the arrow before the input, by version
TRUST = "hasTrustDialogAccepted"  # of a folder, which counts for those in it
DIALOG = r"Esc to (cancel|exit)|\u276f 1\. "
QUIET = {
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    # In 2.1.328 the one above does not cover this: it asks downloads.claude.ai and github.com.
    "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
}
# A session lives for seconds: optimized code and collected garbage would never pay off, but took a
# fifth of its CPU. The newer CLIs run in Bun.
BRIEF = {
    "BUN_JSC_useDFGJIT": "0",
    "BUN_JSC_numberOfGCMarkers": "1",
    "BUN_GC_TIMER_DISABLE": "1",
}
# Hook events by the version that brought them: an older CLI skips a settings file that names one.
EVENTS: dict[str, str] = {
    "2.0.76": "PreToolUse PostToolUse PostToolUseFailure Notification UserPromptSubmit "
    "SessionStart SessionEnd Stop SubagentStart SubagentStop PreCompact PermissionRequest",
    "2.1.33": "TeammateIdle TaskCompleted",
    "2.1.49": "ConfigChange",
    "2.1.50": "WorktreeRemove",
    "2.1.69": "InstructionsLoaded",
    "2.1.76": "PostCompact Elicitation ElicitationResult",
    "2.1.78": "StopFailure",
    "2.1.83": "CwdChanged",
    "2.1.84": "TaskCreated",
    "2.1.88": "PermissionDenied",
    "2.1.119": "UserPromptExpansion PostToolBatch",
    "2.1.251": "PreModelSwitch PostModelSwitch",
    "2.1.332": "PreSkillShellCommand",
}


@dataclass(frozen=True)
class Launch:
    """How to start the CLI: in a tmux pane, a :terminal or a subprocess."""

    argv: list[str]
    env: dict[str, str]
    cwd: Path
    version: str
    recorded: Path
    config: Path

    @property
    def command(self) -> list[str]:
        """Return argv that clears the environment, except for variables of the terminal."""
        keep = ("TMUX", "TMUX_PANE", "NVIM")
        passed = "".join(f'${{{name}+{name}="${name}"}} ' for name in keep)
        given = [f"{key}={value}" for key, value in self.env.items()]
        return ["sh", "-c", f'exec env -i {passed}"$@"', "sh", *given, *self.argv]


def prepare(
    home: Home,
    api: Api,
    watch: Watch,
    *,
    version: str = claude_code.VERSION,
    args: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    trusted: bool = True,
) -> Launch:
    """Write a config that skips onboarding and records every hook; return how to start the CLI.

    With `trusted`, the config trusts `cwd`. `settings` are merged into the recorder's own. Call
    this again for another session in the same home.
    """
    program = claude_code.executable(version)
    cwd = cwd or home.project
    recorded = home.root / "recorded"
    recorded.mkdir(exist_ok=True)
    _accept(home.claude / ".claude.json", version, cwd, trusted)
    path = home.claude / "settings.json"
    if settings is not None or not path.exists():
        merged = _merge(_recording(version, recorded), settings or {})
        path.write_text(json.dumps(merged, indent=1))
    # Unknown to earlier versions, and needed to see every dialog.
    manual = "manual" if claude_code.numbers(version) >= (2, 1, 197) else "default"
    mode = () if "--permission-mode" in args else ("--permission-mode", manual)
    given = {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": KEY, **QUIET, **BRIEF, **watch.env}
    terminal = {"TERM": "tmux-256color"}
    return Launch(
        argv=[str(program), *mode, *args],
        env={**home.env, **terminal, **given, **(env or {})},
        cwd=cwd,
        version=version,
        recorded=recorded,
        config=home.claude,
    )


def elicitation(home: Home) -> tuple[str, ...]:
    """Return arguments that add the MCP server of scenarios `elicit`, `order` and `mcpslow`."""
    server = {"command": str(home.bin / "python3"), "args": [str(ELICIT)]}
    path = home.root / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"rig": server}}))
    return (
        "--mcp-config",
        str(path),
        "--strict-mcp-config",
        "--allowedTools",
        "mcp__rig__ask,mcp__rig__order,mcp__rig__wait",
    )


def _accept(path: Path, version: str, cwd: Path, trusted: bool) -> None:
    """Store what a user accepts once: the theme, the key, the trust in a folder."""
    known = json.loads(path.read_text()) if path.exists() else {}
    state = known | {"hasCompletedOnboarding": True, "lastOnboardingVersion": version}
    state |= {"theme": "dark", "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []}}
    projects = known.get("projects", {})
    if not (trusted and any(projects.get(str(f), {}).get(TRUST) for f in (cwd, *cwd.parents))):
        accepted = {TRUST: trusted, "hasCompletedProjectOnboarding": True}
        state["projects"] = {**projects, str(cwd): accepted}
    if state != known:  # a CLI that runs writes it as well
        path.write_text(json.dumps(state))


def _recording(version: str, folder: Path) -> dict[str, Any]:
    """Return settings that record each known event, and allow the commands of the scenarios."""
    has = claude_code.numbers(version)
    known = [
        event
        for since, events in EVENTS.items()
        if claude_code.numbers(since) <= has
        for event in events.split()
    ]
    hook = {"type": "command", "command": f'{RECORD} {folder} "$PPID"', "timeout": 10}
    return {
        "hooks": {event: [{"hooks": [hook]}] for event in known},
        "permissions": {"allow": ["Bash(python3:*)"]},
    }


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge tables, join lists, replace anything else."""
    merged = dict(base)
    for key, value in over.items():
        mine = merged.get(key)
        if isinstance(mine, dict) and isinstance(value, dict):
            merged[key] = _merge(mine, value)
        elif isinstance(mine, list) and isinstance(value, list):
            merged[key] = [*mine, *value]
        else:
            merged[key] = value
    return merged


def spoken(screen: str) -> str:
    """Return the status on a screen in the session file's words, for CLIs without one."""
    if re.search(DIALOG, screen):
        return "waiting"
    works = re.search(r"(?m)esc to interrupt|^\S \w+… ", screen)  # the hint comes and goes
    return "busy" if works else "idle"


@dataclass
class Agent:
    """A running CLI; `pane` is its terminal."""

    launch: Launch
    pane: Pane | Terminal
    pid: int = field(init=False)

    def __post_init__(self) -> None:
        self.pid = self.pane.pid

    @classmethod
    def start(
        cls, launch: Launch, server: Server, session: str, watch: Watch, columns: int = 110
    ) -> Agent:
        """Start it in a new tmux session, and wait until it takes a prompt."""
        size = {"columns": columns, "lines": 45}
        pane = server.open(launch.command, session=session, cwd=launch.cwd, **size)
        agent = cls(launch, pane)
        watch.follow(agent.pid)
        agent.ready()
        return agent

    def ready(self) -> None:
        """Wait until a prompt can be typed."""
        self.happens("SessionStart")
        # The hook comes before the prompt can be typed into; the hint below it is drawn last.
        self.pane.shows(PROMPT)

    def events(self, name: str = "", **fields: Any) -> list[dict[str, Any]]:
        """Return the hook payloads so far, oldest first, with that name and those fields."""
        files = self.launch.recorded.glob(f"{self.pid}.*.json")
        ordered = sorted(files, key=lambda path: path.stat().st_mtime_ns)
        payloads = [json.loads(path.read_text()) for path in ordered]
        return [
            payload
            for payload in payloads
            if name in ("", payload["hook_event_name"])
            and all(payload.get(key) == value for key, value in fields.items())
        ]

    def happens(self, name: str, times: int = 1, within: float = PATIENCE, **fields: Any) -> Any:
        """Wait for a hook event; return its payload (the last one of `times`)."""

        def look() -> Any:
            found = self.events(name, **fields)
            seen = [payload["hook_event_name"] for payload in self.events()]
            assert len(found) >= times, (
                f"no {name} {fields} {times} times in {seen}:\n{self.text()}"
            )
            return found[times - 1]

        return eventually(look, within=within, pause=GLANCE)

    def registry(self) -> dict[str, Any]:
        """Return the session file; empty if there is none."""
        try:
            text = (self.launch.config / "sessions" / f"{self.pid}.json").read_text()
            return dict(json.loads(text))
        except (FileNotFoundError, json.JSONDecodeError):  # written in place
            return {}

    def becomes(self, status: str, within: float = PATIENCE) -> dict[str, Any]:
        """Wait for that status in the session file."""

        def look() -> dict[str, Any]:
            found = self.registry()
            assert found.get("status") == status, f"{found} is not {status}:\n{self.text()}"
            return found

        return eventually(look, within=within)

    def text(self) -> str:
        """Return what the terminal shows."""
        return self.pane.text()

    def shows(self, pattern: str, within: float = PATIENCE) -> str:
        """Wait until the terminal matches."""
        return self.pane.shows(pattern, within)

    def submit(self, prompt: str) -> None:
        """Type a prompt, wait until it is shown, press Enter."""
        self.pane.type(prompt)
        self.shows(re.escape(prompt[-40:]))
        self.press("Enter")

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names."""
        self.pane.press(*keys)

    def answer(self, *keys: str, dialog: str = DIALOG) -> None:
        """Press keys in a dialog until it is gone: one that has just opened ignores them.

        The pause is long, because repeated keys could reach the next dialog.
        """
        self.shows(dialog)

        def gone() -> bool:
            self.press(*keys)
            try:
                return eventually(lambda: not re.search(dialog, self.text()), within=3)
            except AssertionError:
                return False

        eventually(gone, f"the end of the dialog {dialog!r}")

    def exit(self) -> None:
        """Exit as a user does, who looks at the input and at the menu of commands next to it.

        Before the menu opens, older CLIs take the command for a prompt.  On a busy machine, they
        put an interrupted prompt back into the input seconds later.
        """

        def ends() -> bool:
            self.press("C-u")
            self.pane.type("/exit")
            try:
                self.shows(r"(?m)^\s*[\u276f>]\s/exit\s*$", 5)
                self.shows(r"/exit {3,}\S", 5)
                self.press("Enter")
                return eventually(lambda: self.pane.dead, within=10)
            except AssertionError:
                return self.pane.dead

        eventually(ends, "the end of the CLI")
