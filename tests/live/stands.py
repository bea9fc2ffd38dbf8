"""The CLIs but Claude Code: how each starts on a fake model, its keys, and what its screen says."""

# ruff: noqa: RUF001  their prompts are odd characters

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rig.agents import codex as codex_cli
from rig.agents import opencode as opencode_cli
from rig.agents.model import Model
from rig.fetched import node, npm
from rig.fetched.cache import Missing
from rig.home import Home

Status = str | None  # None: the screen does not say
#: The prompt before the last one that was entered, on a screen.
PROMPTED: Final = r"(?m)^\s*[>›❯] (?=DO:)"
KIMI_CONFIG: Final = """
default_model = "fake"
telemetry = false

[providers.fake]
type = "openai"
base_url = "{url}"
api_key = "dummy"

[models.fake]
provider = "fake"
model = "fake-model"
max_context_size = 200000
capabilities = ["tool_use"]
"""
#: Where Copilot and Qwen take the next prompt: one that was never answered is put back there.
COMPOSER: Final = re.compile("(?m)^─+\n[>❯] .*\n─+$")


@dataclass(frozen=True)
class Settings:
    """What they depend on."""

    home: Home
    model: Model
    free: bool  # whether it asks for nothing

    def write(self, name: str, settings: Any) -> None:
        path = self.home.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(settings if isinstance(settings, str) else json.dumps(settings, indent=2))


@dataclass(frozen=True)
class Stand:
    """A CLI of an exact version."""

    key: str
    name: str
    package: str
    version: str
    program: str  # below node_modules; a script of node if it ends in .js or .mjs
    settings: Callable[[Settings], Mapping[str, str]]  # writes them; returns the environment
    ready: str  # what it shows once it takes a prompt
    status: Callable[[str], Status]  # of a screen
    node: tuple[int, ...] = ()  # the oldest one that runs the script
    loads: tuple[str, ...] = ()  # extensions of its package
    args: tuple[str, ...] = ()
    free: tuple[str, ...] = ()  # arguments with which it asks for nothing
    asking: str = "run"  # the step of a script that makes it ask
    welcome: Mapping[str, str] = field(default_factory=dict)  # what it asks first → a row
    allow: tuple[str, ...] = ("Enter",)
    always: tuple[str, ...] = ("2",)
    deny: tuple[str, ...] = ("3",)
    stop: tuple[str, ...] = ("Escape",)  # while it works
    clear: str = "/clear"
    leave: str = "/quit"
    resume: tuple[str, ...] = ("--continue",)
    spawn: str = "spawn DO+ {asks} ~ say Sub done; say Parent done"
    folder: str = ""  # its own, below the home
    variable: str = ""  # that names another one
    lacks: tuple[str, ...] = ()  # scenes that it cannot play
    agrees: float = 0.97  # the share of the time in which what is shown must be right

    def fetch(self) -> list[str]:
        """Return the start of its command line."""
        folder = npm.package(self.package, self.version)
        tree = folder.parents[self.package.count("/")]
        found = sorted(tree.glob(self.program))
        if not found:
            raise Missing(f"{self.name} {self.version} has no program here; remove {folder}")
        runs = [str(node.node(self.node))] if self.program.endswith((".js", ".mjs")) else []
        loads = [part for each in self.loads for part in ("-e", str(folder / each))]
        return [*runs, str(found[0]), *loads]


# ---------------------------------------------------------------- settings without a login


def codex_settings(given: Settings) -> Mapping[str, str]:
    config = codex_cli.config(given.home, given.model)
    given.write(".codex/config.toml", config)
    return {"FAKE_KEY": "dummy"}


def opencode_settings(given: Settings) -> Mapping[str, str]:
    may = "allow" if given.free else "ask"
    given.write("config/opencode/opencode.json", opencode_cli.config(given.model, may))
    return opencode_cli.OFF


def gemini_settings(given: Settings) -> Mapping[str, str]:
    config = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False, "retryFetchErrors": False, "maxAttempts": 2},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "ui": {"hideTips": True, "hideBanner": True},
        "model": {"name": "gemini-2.5-flash"},
    }
    given.write(".gemini/settings.json", config)
    base = given.model.url.removesuffix("/v1")
    return {
        "GEMINI_API_KEY": "dummy",
        "GOOGLE_GEMINI_BASE_URL": base,
        "GEMINI_TELEMETRY_ENABLED": "false",
        "NO_BROWSER": "1",
    }


def copilot_settings(given: Settings) -> Mapping[str, str]:
    config = {
        "banner": "never",
        "trusted_folders": [str(given.home.project)],
        "auto_update": False,
    }
    given.write(".copilot/config.json", config)
    return {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": given.model.url,
        "COPILOT_PROVIDER_API_KEY": "dummy",
        "COPILOT_MODEL": "fake-model",
        "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "100000",
        "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "8000",
        "COPILOT_AUTO_UPDATE": "false",
    }


def qwen_settings(given: Settings) -> Mapping[str, str]:
    config = {
        "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "model": {"name": "fake-model"},
    }
    given.write(".qwen/settings.json", config)
    return {
        "OPENAI_API_KEY": "dummy",
        "OPENAI_BASE_URL": given.model.url,
        "OPENAI_MODEL": "fake-model",
    }


def pi_settings(given: Settings) -> Mapping[str, str]:
    fake = {"baseUrl": given.model.url, "api": "openai-completions", "apiKey": "dummy"}
    models = {"providers": {"fake": {**fake, "models": [{"id": "fake-model"}]}}}
    given.write(".pi/agent/models.json", models)
    chosen: dict[str, Any] = {
        "defaultProvider": "fake",
        "defaultModel": "fake-model",
        "quietStartup": True,
    }
    chosen["retry"] = {"baseDelayMs": 1000}
    given.write(".pi/agent/settings.json", chosen)
    return {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}


def kimi_settings(given: Settings) -> Mapping[str, str]:
    given.write(".kimi-code/config.toml", KIMI_CONFIG.format(url=given.model.url))
    given.write(".kimi-code/tui.toml", "[upgrade]\nauto_install = false\n")
    folder = str(given.home.project)
    trusted = f"wd_project_{hashlib.sha256(folder.encode()).hexdigest()[:12]}"
    given.write(f".kimi-code/workspace-trust/{trusted}", {"root": folder, "trustedAt": 1})
    return {"KIMI_CODE_NO_AUTO_UPDATE": "1"}


# ---------------------------------------------------------------- statuses of a screen


def _after_prompt(screen: str) -> str | None:
    """Return what follows the last prompt; None if none was entered."""
    parts = re.split(PROMPTED, screen)
    return parts[-1] if len(parts) > 1 else None


def _codex(screen: str) -> Status:
    text = screen.lower()
    asks = "would you like to|press enter to confirm or esc|enter to submit|tab to add notes"
    if re.search(asks, text):
        return "blocked"
    if re.search(r"\besc to interrupt\b|starting mcp|reconnecting", text):
        return "working"
    inputs = [m.start() for m in re.finditer("(?m)^› ", screen)]
    said = _after_prompt(screen[: inputs[-1]] if inputs else screen)
    if said is None:
        return "idle"
    if "■" in said:
        return "idle" if "interrupted" in said.lower() else "error"
    return "completed" if re.search("worked for|compacted", said.lower()) else "working"


def _opencode(screen: str) -> Status:
    text = screen.lower()
    asks = "permission required|allow once|reject permission|type your own answer|enter confirm"
    if re.search(asks, text):
        return "blocked"
    if re.search(r"esc (again to )?interrupt|\[retrying", text):  # a long reason hides the keys
        return "working"
    ended = list(re.finditer(r"▣ .*· [\d.]+m?s", screen))
    failed = [m.end() for m in re.finditer(r"fake error \d+\s*(?=┃?\s*$)", screen, re.M)]
    if failed and not (ended and ended[-1].start() > failed[-1]):
        return "error"
    lines = re.findall("▣ .*", screen)
    if not lines:
        return None  # it shows no session: before the first one, and after /new
    return "completed" if re.search(r"· [\d.]+m?s|· \d+m", lines[-1]) else "idle"


def _gemini(screen: str) -> Status:
    text = screen.lower()
    asks = "allow once|allow execution|apply this change|action required|answer questions"
    if re.search(asks + "|enter to select|waiting for user confirmation", text):
        return "blocked"
    if "esc to cancel" in text:
        return "working"
    said = _after_prompt(screen)
    if said is None:
        return "idle"
    if re.search(r"✕|\[api error|error:", said, re.I):
        return "error"
    if "cancelled" in said.lower():
        return "idle"
    return "completed" if re.search("[✦✓]", said) else None


def _copilot(screen: str) -> Status:
    text = screen.lower()
    if re.search("↑/↓ to navigate|↑/↓ select|enter to (select|submit|confirm)", text):
        return "blocked"
    if re.search("esc esc interrupt|working (·|esc)|esc again|cancelling", text):
        return "working"
    after = _after_prompt(COMPOSER.sub("────", screen))
    if after is None:
        return "idle"
    said = re.findall(r"(?m)^ *([●✗✕⊘!◌○$/] .*)", after.split("────")[0])
    if not said:
        return None
    if re.search("operation cancelled|aborted", " ".join(said[-2:]), re.I):
        return "idle"
    failed = "execution failed|fake error|failed to get response|[✗✕]"
    return "error" if re.search(failed, said[-1], re.I) and said[-1][0] != "$" else "completed"


def _qwen(screen: str) -> Status:
    text = screen.lower()
    asks = "allow execution|apply this change|allow once|waiting for user confirmation"
    if re.search(asks + "|enter to select|type something", text):
        return "blocked"
    if "esc to cancel" in text:
        return "working"
    after = _after_prompt(COMPOSER.sub("────", screen))
    if after is None:
        return "idle"
    said = after.split("────")[0]
    if re.search(r"✕|api error", said, re.I):
        return "error"
    if "request cancelled" in said.lower() or re.search(r"\n *- [^\n]*\s*\Z", said):
        return "idle"  # with a tool last that has not run
    return "completed" if re.search("[✦✓●◆]", said) else None


def _pi(screen: str) -> Status:
    if re.search("enter (to )?select", screen, re.I):
        return "blocked"
    if re.search(r"(?m)^── \S+ (Working|Retrying|.*[Cc]ompacting)", screen):
        return "working"
    parts = re.split(r"(?m)^\s*DO:.*$", screen)
    if len(parts) < 2:
        return "idle"
    said = re.split(r"\n\s*\n", parts[-1].split("────")[0].rstrip())[-1]  # after failed attempts
    if re.search("Error:|fake error", said):
        return "error"
    return "idle" if "aborted" in said.lower() else "completed" if said.strip() else None


def _kimi(screen: str) -> Status:
    asks = r"↵ confirm\b|↑↓ select"
    if re.search(asks, screen):
        return "blocked"
    if re.search(r"(?m)^ +[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏🌑🌒🌓🌔🌕🌖🌗🌘] ", screen):
        return "working"
    said = re.split(r"(?m)^ ✨ ", screen)[1:]
    if not said:
        return "idle"
    if "Interrupted by user" in said[-1]:
        return "idle"
    return "error" if re.search(r"(?m)^   Error: ", said[-1]) else "completed"


CODEX: Final = Stand(
    key="codex",
    name="Codex",
    package="@openai/codex",
    version="0.171.0",
    program="@openai/codex-*/vendor/*/bin/codex",
    settings=codex_settings,
    ready="Ask Codex",
    status=_codex,
    args=("--no-daemon", "--enable", "default_mode_request_user_input"),
    free=("--no-daemon", "--dangerously-bypass-approvals-and-sandbox"),
    asking="esc",
    welcome={"Hooks need review": "2"},
    allow=("y",),
    always=("p",),
    resume=("resume", "--last", "--no-daemon"),
    spawn="spawn DO+ {asks} ~ say Sub done; wait 15; say Parent done",
    folder=".codex",
    variable="CODEX_HOME",
    agrees=0.99,
)
OPENCODE: Final = Stand(
    key="opencode",
    name="OpenCode",
    package="opencode-ai",
    version="1.18.33",
    program="opencode-*/bin/opencode",
    settings=opencode_settings,
    ready="Ask anything|▣ ",  # or the end of what it has resumed
    status=_opencode,
    always=("Right", "Enter", "Enter"),
    deny=("Right", "Right", "Enter", "Enter"),
    stop=("Escape", "Escape"),
    clear="/new",
    leave="/exit",
    resume=("-c",),
    agrees=0.99,
)
GEMINI: Final = Stand(
    key="gemini",
    name="Gemini CLI",
    package="@google/gemini-cli",
    version="0.61.0",
    program="@google/gemini-cli/bundle/gemini.js",
    settings=gemini_settings,
    ready="Type your message",
    status=_gemini,
    free=("--approval-mode=yolo",),
    resume=("--resume", "latest"),
    lacks=("subagent",),
)
COPILOT: Final = Stand(
    key="copilot",
    name="GitHub Copilot CLI",
    package="@github/copilot",
    version="1.0.102",
    program="@github/copilot/npm-loader.js",
    settings=copilot_settings,
    ready="Interactive|/ commands",
    status=_copilot,
    free=("--allow-all-tools",),
    deny=("3", "x", "Enter"),  # it wants to be told what to do instead
    stop=("Escape", "Escape"),
    leave="/exit",
)
QWEN: Final = Stand(
    key="qwen",
    name="Qwen Code",
    package="@qwen-code/qwen-code",
    version="0.24.4",
    program="@qwen-code/qwen-code/cli-entry.js",
    settings=qwen_settings,
    ready="Type your message",
    status=_qwen,
    args=("--approval-mode=default",),
    free=("--approval-mode=yolo",),
    deny=("Escape",),
)
PI: Final = Stand(
    key="pi",
    name="Pi",
    package="@earendil-works/pi-coding-agent",
    version="1.6.0",
    program="@earendil-works/pi-coding-agent/dist/bundle/cli.js",
    node=(22, 19),
    settings=pi_settings,
    ready="fake-model",
    status=_pi,
    loads=tuple(f"examples/extensions/{name}.ts" for name in ("permission-gate", "question")),
    asking="run : rm -rf |",  # which the extension then asks about
    deny=("Down", "Enter"),
    clear="/new",
    leave="/quit",
    folder=".pi/agent",
    variable="PI_CODING_AGENT_DIR",
    lacks=("always", "question", "subagent"),  # its question is a dialog of its own
)
KIMI: Final = Stand(
    key="kimi",
    name="Kimi Code",
    package="@moonshot-ai/kimi-code",
    version="2.1.0",
    program="@moonshot-ai/kimi-code/dist/main.mjs",
    node=(22, 19),
    settings=kimi_settings,
    ready=r"│ > ",
    status=_kimi,
    free=("--yolo",),
    clear="/new",
    leave="/exit",
)
STANDS: Final = {stand.key: stand for stand in (CODEX, OPENCODE, COPILOT, QWEN, GEMINI, PI, KIMI)}
#: Those that report their status to their terminal (OSC 7501), as far as it hears them.
SPEAKING: Final = {"codex": CODEX, "pi": replace(PI, lacks=("always", "subagent"))}
