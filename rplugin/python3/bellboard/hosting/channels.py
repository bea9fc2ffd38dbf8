"""How each channel sends a notification: through a command, or through the focused editor.

Titles, questions and folders come from agents and may be hostile.  Commands get them as separate
arguments, never through a shell, and anything that could be read as an option, markup or an escape
sequence is neutralised first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..core import text, words
from ..core.notices import Notice
from ..core.published import Published
from ..system.mounts import MOUNTS, near

LONGEST_TEXT: Final = 200  # cells
VIAS: Final = ("notify-send", "osascript", "osc9", "osc777")
#: Terminals that show an OSC sequence as a notification, by the name they report.
OSC9: Final = frozenset({"iTerm.app", "WezTerm", "ghostty", "WarpTerminal"})
OSC777: Final = frozenset({"foot", "rxvt-unicode", "contour"})

#: Commands that can play a file, without its name; the first one installed is used.
PLAYERS: Final = (
    ("pw-play",),
    ("paplay",),
    ("afplay",),
    ("ffplay", "-nodisp", "-autoexit", "-loglevel", "quiet"),
    ("aplay", "-q"),
)
#: Sounds that most machines have, by our names; the first existing file is used.
_FREEDESKTOP: Final = "/usr/share/sounds/freedesktop/stereo"
_MACOS: Final = "/System/Library/Sounds"
SOUNDS: Final = {
    "ask": (f"{_FREEDESKTOP}/message-new-instant.oga", f"{_MACOS}/Ping.aiff"),
    "done": (f"{_FREEDESKTOP}/complete.oga", f"{_MACOS}/Glass.aiff"),
    "failed": (f"{_FREEDESKTOP}/dialog-error.oga", f"{_MACOS}/Basso.aiff"),
    "alarm": (f"{_FREEDESKTOP}/alarm-clock-elapsed.oga", f"{_MACOS}/Sosumi.aiff"),
    "urgent": (f"{_FREEDESKTOP}/phone-incoming-call.oga", f"{_MACOS}/Submarine.aiff"),
    "fanfare": (f"{_FREEDESKTOP}/service-login.oga", f"{_MACOS}/Hero.aiff"),
}
OF_STATUS: Final = {"blocked": "ask", "error": "failed", "completed": "done", "background": "done"}
OF_LABEL: Final = {
    "ONEOFF": {"completed": "alarm"},
    "HEAVY": {"completed": "urgent"},
    "IMPORTANT": {"completed": "fanfare", "blocked": "urgent"},
}

#: The text is passed in arguments: interpolating it would allow AppleScript injection.
APPLESCRIPT: Final = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)
_HEADLINES: Final = {
    "blocked": "needs you",
    "error": "has an error",
    "completed": "has completed",
    "background": "has completed; background shells are still running",
}
NAME_ROOM: Final = 40  # cells of a title for the project, and for the branch or title


class Wording(NamedTuple):
    """The title and text of a notification."""

    title: str
    text: str


def wording(notice: Notice, p: Published) -> Wording:
    """Return the words of a notification: plain text, one line each."""
    word, detail = words.doing(p)
    if notice.status == "blocked" and word != "blocked":
        detail = f"{word}: {detail}" if detail else word
    name = text.cut(words.project(p), NAME_ROOM)
    which = text.cut(words.which(p), NAME_ROOM)
    told = [which if which != name else "", words.plain(p.get("agent")) if p.get("mixed") else ""]
    notes = ", ".join(filter(None, told))
    called = f"{name} ({notes})" if notes else name
    said = detail if detail not in ("", notice.status) else words.title(p)
    return Wording(f"{called} {_HEADLINES[notice.status]}", text.cut(said, LONGEST_TEXT))


class Channels:
    """The channels of this host, by its configuration and the programs installed."""

    def __init__(self, settings: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        path = environ.get("PATH", os.defpath)
        self.command = _words(settings.get("command"))
        self.player = _words(settings.get("player")) or next(
            ([*p] for p in PLAYERS if near(p[0], path)), []
        )
        desktop = settings.get("desktop")
        self.desktop = str(desktop) if desktop in VIAS else _best_via(environ, path)
        self._sounds = _texts(settings.get("sounds"))
        labels = settings.get("labels")
        self._of_label = {k: dict(v) for k, v in OF_LABEL.items()}
        for name, wish in labels.items() if isinstance(labels, Mapping) else ():
            own = _texts(wish.get("sounds")) if isinstance(wish, Mapping) else {}
            self._of_label.setdefault(str(name), {}).update(own)

    def able(self, front: bool) -> frozenset[str]:
        """Return the available channels; `front`: the editor of this host has the focus."""
        there = {
            "float": front,
            "notify": front,
            "bell": front,
            "desktop": front if self.desktop.startswith("osc") else bool(self.desktop),
            "sound": bool(self.player),
            "command": bool(self.command),
        }
        return frozenset(channel for channel, is_there in there.items() if is_there)

    def program_of(self, channel: str) -> str:
        """Return the program of a channel, or "" if the editor handles it."""
        if channel == "desktop" and not self.desktop.startswith("osc"):
            return self.desktop
        words = {"sound": self.player, "command": self.command}.get(channel)
        return words[0] if words else ""

    def command_of(self, notice: Notice, p: Published) -> list[str]:
        """Return the command to run, or [] if the editor handles it or there is nothing to play."""
        title, text = wording(notice, p)
        if notice.channel == "desktop" and self.desktop == "notify-send":
            urgency = "critical" if notice.status == "blocked" else "normal"
            options = ["--app-name=bellboard", f"--urgency={urgency}"]
            return ["notify-send", *options, "--", title, _markup(text)]
        if notice.channel == "desktop" and self.desktop == "osascript":
            script = [word for line in APPLESCRIPT for word in ("-e", line)]
            return ["osascript", *script, "--", title, text]
        if notice.channel == "sound":
            file = self.sound(notice.status, str(p.get("label", "")))
            return [*self.player, file] if file else []
        if notice.channel == "command":
            project = words.project(p)
            return [*self.command, title, text, notice.status, notice.session_id, project]
        return []

    def line_of(self, notice: Notice, p: Published) -> dict[str, Any]:
        """Return a notification for the editor to show, beep, or write to the terminal."""
        title, text = wording(notice, p)
        line = {
            "id": notice.id,
            "channel": notice.channel,
            "session_id": notice.session_id,
            "status": notice.status,
            "title": title,
            "text": text,
        }
        if notice.channel == "desktop":
            line["sequence"] = _osc(self.desktop, title, text)
        return line

    def sound(self, status: str, label: str) -> str:
        """Return the file to play, or "" if it does not exist."""
        name = self._of_label.get(label, {}).get(status) or self._sounds.get(status)
        name = name or OF_STATUS[status]
        files = SOUNDS.get(name) or (_own(name),)
        return next((f for f in files if f.startswith("/") and _is_there(f)), "")


def _words(value: object) -> list[str]:
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        return []
    found = [str(word) for word in value]
    return [_own(found[0]), *found[1:]] if found else []


def _own(path: str) -> str:
    return os.path.expanduser(path)  # noqa: PTH111 - does not raise for an unknown user


def _is_there(path: str) -> bool:
    """Return whether a file is there; the player finds out where looking may hang."""
    return MOUNTS.hanging(path) is not None or os.path.isfile(path)  # noqa: PTH113


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {str(k): v for k, v in value.items() if isinstance(v, str)}


def _best_via(environ: Mapping[str, str], path: str) -> str:
    """Choose the desktop if there is one, or a terminal that can notify its desktop."""
    if sys.platform == "darwin" and near("osascript", path):
        return "osascript"
    desktop = any(
        environ.get(k) for k in ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS")
    )
    if desktop and not environ.get("SSH_CONNECTION") and near("notify-send", path):
        return "notify-send"
    terminal = environ.get("TERM_PROGRAM") or environ.get("LC_TERMINAL") or ""
    if terminal in OSC9 or terminal == "iTerm2":
        return "osc9"
    if terminal in OSC777 or environ.get("TERM", "").startswith(("foot", "rxvt-unicode")):
        return "osc777"
    return ""


def _markup(text: str) -> str:
    """Escape markup, which the desktop standard allows in the body but not in the title."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _osc(via: str, title: str, text: str) -> str:
    """Return an escape sequence; the text starts with our name because `9;4;` means progress."""
    if via == "osc9":
        return f"\x1b]9;bellboard: {title}{': ' if text else ''}{text}\x07"
    return f"\x1b]777;notify;{title.replace(';', ',')};{text.replace(';', ',')}\x07"
