"""Why a NATS server cannot be used, in words, and what to do about it."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import ssl
import sys
from importlib.util import find_spec
from typing import Final

from ..core import words
from ..system.failures import described
from .member import Joined

NATS: Final = "nats-py[nkeys]>=2.9"  # the extra `fleet` of pyproject.toml
HUNG_UP: Final = (ConnectionResetError, BrokenPipeError)


def without_nats() -> str:
    """Return how to install what a fleet needs for this Python; one that uv made has no pip."""
    python = shlex.quote(sys.executable)
    has_pip = find_spec("pip") is not None
    how = f"{python} -m pip install" if has_pip else f"uv pip install --python {python}"
    return f"nats-py is missing; install it: {how} {shlex.quote(NATS)}"


def reason(e: BaseException, joined: Joined) -> str:
    """Return why the connection failed, and what to do."""
    url, creds = joined.url, joined.creds
    text = str(e)
    low = text.lower()
    if "authorization" in low or "authentication" in low or "revoked" in low:
        file = f"the credentials in {creds}" if creds else "us without credentials (--creds)"
        why = "they were revoked or belong to another server"
        return f"{url} refuses {file}: {why}; ask whoever set up the fleet, then join again"
    if isinstance(e, ssl.SSLCertVerificationError):
        if "not valid for" in e.verify_message:
            return f"{url}: {words.plain(e.verify_message)}; use a name or an address that is in it"
        ca = "is --ca FILE right?" if joined.ca else "give it with --ca FILE"
        return f"{url}: its certificate is not trusted: {words.plain(e.verify_message)}; {ca}"
    if isinstance(e, ssl.SSLError):
        said = words.plain(e.reason or text).replace("_", " ").lower()
        return f"{url}: TLS failed: {said}; does the server use TLS on this port?"
    if isinstance(e, FileNotFoundError) and joined.ca:
        return f"{joined.ca} cannot be read; give the certificate with --ca FILE"
    if isinstance(e, asyncio.TimeoutError) or "timeout" in low:
        return f"{url} does not respond; is the network up?"
    if isinstance(e, socket.gaierror):
        return f"{url} cannot be reached: {described(e)}; check its name"
    if isinstance(e, OSError) and e.errno and not isinstance(e, HUNG_UP):
        return f"{url} cannot be reached: {os.strerror(e.errno)}; {_advice(e, joined)}"
    if "stale" in low or "eof" in low or isinstance(e, HUNG_UP):
        return f"{url} went away; {_advice(e, joined)}"
    return f"{url}: {words.plain(text) or 'the connection failed'}"


def _advice(e: BaseException, joined: Joined) -> str:
    """Return what to do if the server cannot be used: one that wants credentials hangs up."""
    if not (isinstance(e, HUNG_UP) or "eof" in str(e).lower()):
        return "is the server running?"
    if creds := joined.creds:
        return f"is the server running, and are the credentials in {creds} still valid?"
    return "does it ask for credentials? --creds FILE"
