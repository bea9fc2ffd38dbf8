"""Whether the terminal of a shell reads what programs report of themselves (OSC 7501)."""

from __future__ import annotations

import contextlib
import os
import re
import select
import termios
import time
from collections.abc import Mapping
from typing import Final

from ..core.program_status import sequence
from .full import set_quiet
from .terminal import COLORLESS

QUERY: Final = sequence("?")  # which a terminal that reads reports repeats
_NAME: Final = "\x1b[c"  # all terminals reply to this query, so nobody waits for a reply in vain
_REPLY: Final = re.compile(rb"\x1b\]7501;\?(?:\x1b\\|\x07)")
_NAMED: Final = re.compile(rb"\x1b\[\?[0-9;]*c")
_PATIENCE: Final = 2.0  # seconds: a reply that came later would be typed into the shell
#: Terminals in terminals: the outer one never gets the query.
_WITHIN: Final = ("TMUX", "STY")
_WITHOUT: Final = ("screen", "tmux", "linux", *COLORLESS)  # starts of TERM


def may_ask(environ: Mapping[str, str]) -> bool:
    """Return whether a terminal does not print the query, and is no tmux or screen."""
    term = environ.get("TERM", "").lower()
    return bool(term) and not term.startswith(_WITHOUT) and not any(map(environ.get, _WITHIN))


def reads(terminal: int, environ: Mapping[str, str]) -> bool:
    """Return whether the controlling terminal reads reports; takes as long as its reply."""
    if not may_ask(environ):
        return False
    in_front = os.tcgetpgrp(terminal) == os.getpgrp()
    before = termios.tcgetattr(terminal)
    try:
        if in_front:
            set_quiet(terminal)
        if not in_front or select.select([terminal], [], [], 0)[0]:
            # The reply, or what the user has typed ahead, would be lost.
            return bool(environ.get("NVIM"))
        os.write(terminal, f"{QUERY}{_NAME}".encode())
        return _is_answered(terminal)
    finally:
        if in_front:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _is_answered(terminal: int) -> bool:
    read, until = b"", time.monotonic() + _PATIENCE
    while not _NAMED.search(read):
        left = max(0.0, until - time.monotonic())
        if not select.select([terminal], [], [], left)[0]:
            break
        if not (data := os.read(terminal, 1)):  # what follows the reply is the user's
            break
        read += data
    return bool(_REPLY.search(read))
