"""The systemd user unit that keeps a background process running on a machine without Neovim."""

from __future__ import annotations

import os
import shutil
import sys

from ..system.shipped import program

TEXT = """\
# Save this as ~/.config/systemd/user/bellboard.service; then:
#   systemctl --user enable --now bellboard
#   loginctl enable-linger       (keeps it running while you are not logged in)
[Unit]
Description=Shows which coding-agent sessions are working, done, or blocked on you
After=network-online.target

[Service]
ExecStart={command}
{settings}Restart=always
RestartSec=5
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""
CONTROL = {number: f"\\x{number:02x}" for number in (*range(1, 32), 127)}
#: Variables that decide where the state folder, settings, programs and tmux servers are: systemd
#: knows none that a shell's start-up files set.  Each CLI may have another.
KEPT = (
    *("BELLBOARD_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    *("PATH", "TMUX_TMPDIR", "GH_CONFIG_DIR"),
)


def kept() -> list[str]:
    """Return the variables that a unit sets as they are here."""
    from ..agents.clis import clis

    return [*KEPT, *(cli.variable for cli in clis() if cli.variable)]


def unit(argv: list[str]) -> str:
    """Return a unit that runs this command, without `--unit`."""
    words = [w for w in argv if w != "--unit"]
    given = (f"{key}={os.environ[key]}" for key in kept() if os.environ.get(key))
    settings = "".join(f"Environment={_quoted(setting)}\n" for setting in given)
    command = " ".join(_quoted(w.replace("$", "$$")) for w in [*_program(), *words])
    return TEXT.format(command=command, settings=settings)


def _program() -> list[str]:
    found = shutil.which(sys.argv[0])
    if found and os.path.basename(found) == "bellboard":  # noqa: PTH119
        return [os.path.abspath(found)]  # noqa: PTH100
    return program()


def _quoted(word: str) -> str:
    """Return a word as systemd reads it; a line ends at more than a newline there."""
    plain = word.replace("%", "%%")
    if plain.isprintable() and plain and not set(plain) & set(" '\"\\;"):
        return plain
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped.translate(CONTROL)}"'
