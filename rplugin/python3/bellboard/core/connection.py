"""The ends of ssh connections, which tell where a terminal of another machine is shown here.

This file does no I/O and knows no clock.
"""

from __future__ import annotations

import ipaddress

from .untrusted import decimal


def end_of(connection: str) -> str:
    """Return the client's end of an SSH_CONNECTION as `ADDRESS PORT`, or ""."""
    words = connection.split()
    return end_at(words[0], words[1]) if len(words) == 4 else ""


def end_at(address: str, port: str) -> str:
    """Return `ADDRESS PORT` in the one form that both ends agree on, or ""."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    mapped = getattr(ip, "ipv4_mapped", None)
    number = decimal(port)
    return f"{mapped or ip} {number}" if number is not None and 0 < number < 1 << 16 else ""
