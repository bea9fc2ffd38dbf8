"""The settings that let a CLI run without a login, on a fake model of this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import rig.codex
from rig.home import Home
from rig.model import Model
from rig.opencode import OFF

KNOWN: Final = {"name": "Fake", "tool_call": True, "limit": {"context": 200000, "output": 8000}}


@dataclass(frozen=True)
class Settings:
    """What they depend on."""

    home: Home
    model: Model
    free: bool  # whether it asks for nothing

    def write(self, path: Path, settings: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(settings if isinstance(settings, str) else json.dumps(settings, indent=2))


def codex(given: Settings) -> Mapping[str, str]:
    config = rig.codex.config(given.home, given.model)
    given.write(given.home.root / ".codex/config.toml", config)
    return {"FAKE_KEY": "dummy"}


def opencode(given: Settings) -> Mapping[str, str]:
    options = {"baseURL": given.model.url, "apiKey": "dummy"}
    fake = {"npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": options}
    may = "allow" if given.free else "ask"
    config = {
        "autoupdate": False,
        "share": "disabled",
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "permission": {"bash": may, "edit": may},
        "provider": {"fake": {**fake, "models": {"fake-model": KNOWN}}},
    }
    given.write(given.home.root / "config/opencode/opencode.json", config)
    return OFF


def gemini(given: Settings) -> Mapping[str, str]:
    config = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False, "retryFetchErrors": False, "maxAttempts": 2},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "ui": {"hideTips": True, "hideBanner": True},
        "model": {"name": "gemini-2.5-flash"},
    }
    given.write(given.home.root / ".gemini/settings.json", config)
    base = given.model.url.removesuffix("/v1")
    return {
        "GEMINI_API_KEY": "dummy",
        "GOOGLE_GEMINI_BASE_URL": base,
        "GEMINI_TELEMETRY_ENABLED": "false",
        "NO_BROWSER": "1",
    }


def copilot(given: Settings) -> Mapping[str, str]:
    config = {
        "banner": "never",
        "trusted_folders": [str(given.home.project)],
        "auto_update": False,
    }
    given.write(given.home.root / ".copilot/config.json", config)
    return {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": given.model.url,
        "COPILOT_PROVIDER_API_KEY": "dummy",
        "COPILOT_MODEL": "fake-model",
        "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "100000",
        "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "8000",
        "COPILOT_AUTO_UPDATE": "false",
    }


def qwen(given: Settings) -> Mapping[str, str]:
    config = {
        "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "model": {"name": "fake-model"},
    }
    given.write(given.home.root / ".qwen/settings.json", config)
    return {
        "OPENAI_API_KEY": "dummy",
        "OPENAI_BASE_URL": given.model.url,
        "OPENAI_MODEL": "fake-model",
    }


def pi(given: Settings) -> Mapping[str, str]:
    fake = {"baseUrl": given.model.url, "api": "openai-completions", "apiKey": "dummy"}
    agent = given.home.root / ".pi/agent"
    given.write(
        agent / "models.json", {"providers": {"fake": {**fake, "models": [{"id": "fake-model"}]}}}
    )
    chosen = {
        "defaultProvider": "fake",
        "defaultModel": "fake-model",
        "quietStartup": True,
        "retry": {"baseDelayMs": 1000},
    }
    given.write(agent / "settings.json", chosen)
    return {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}
