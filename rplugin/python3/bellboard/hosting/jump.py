"""Jump to a session: to its tmux pane, the Neovim or the window of kitty that it runs in.

All jumps from an editor, a shell, a key of tmux or another machine go this way.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from ..core.connection import end_of
from ..core.published import Published
from ..core.request import Given, Reply
from ..core.text import line
from ..core.untrusted import object_of, text_of
from ..system import gate, kitty, neovim, ssh
from ..system.failures import Declined, described
from ..system.files import real
from ..system.tmux import UNSEEN, Tmux, has_pane, socket_in

#: Run in a Neovim, which may have another version of this plugin.
ARRIVE: Final = "return require('bellboard')._arrive(...)"
NO_TERMINAL: Final = "xterm-256color"  # instead of one that this machine does not know
#: What is known of where a session runs, if it cannot be reached, each with a word before it.
KNOWN: Final = {"terminal_program": "", "tty": "", "pid": "pid ", "nvim": "nvim ", "ssh": "ssh "}


class Asker(NamedTuple):
    """Who wants to see a session: a tmux client, or whoever sees a pane, or a Neovim."""

    client: str = ""  # its name
    tmux: str = ""  # the server of the pane
    pane: str = ""
    nvim: str = ""  # an editor that shows its own terminals itself


NOBODY: Final = Asker()


def asker_of(given: Given, environ: Mapping[str, str]) -> Asker:
    """Return who asks: an editor says it itself, a command is where its environment says."""
    if isinstance(named := given.get("from"), Mapping):
        return Asker(*(text_of(object_of(named), key) for key in Asker._fields))
    client = given.get("client")
    client = client if isinstance(client, str) else ""
    return Asker(client, socket_in(environ), environ.get("TMUX_PANE", ""))


def show(p: Published, asker: Asker) -> Reply:
    """Show a session where it runs; raise `Declined` with the reason if that fails.

    The reply has `tty`, the terminal that shows it now, if the asker may show that itself; `where`,
    in words, if it is shown in another terminal than the asker's; `attach`, the tmux session that
    no terminal shows, and `command`, which attaches one.  May block.
    """
    missed = ""
    if has_pane(p):
        try:
            return to_pane(p, asker)
        except Declined as why:
            missed = str(why)
    if p.get("nvim"):
        return _to_neovim(p, asker)
    if missed:
        raise lost(p, missed)
    if p.get("kitty"):
        try:
            kitty.show(p["kitty"], p["tty"])
        except Declined as why:
            raise lost(p, str(why)) from None
        return {}
    raise lost(p, "its terminal is out of reach")


def to_pane(p: Mapping[str, Any], asker: Asker) -> Reply:
    """Show a pane; with a terminal, only if it is still the one of that terminal."""
    tmux = Tmux(p["tmux"])
    is_ours = bool(asker.tmux) and real(asker.tmux) == real(tmux.socket)
    at = asker.pane if is_ours else ""
    landing = tmux.jump(p["pane"], terminal_of(p), asker.client, at)
    if landing is None:
        raise Declined(tmux.why)
    if landing.client is None:
        attach = gate.tmux(tmux.socket, "attach-session", "-t", landing.pane.session)
        return {"attach": landing.pane.session_name, "command": attach}
    if asker.client or landing.client.pane == at:
        return {"tty": landing.client.tty}
    where = f"shown in tmux {landing.pane.name} of the other terminal"
    return {"tty": landing.client.tty, "where": where}


def terminal_of(p: Mapping[str, Any]) -> str:
    """Return the terminal that the pane of a session has; "" if any counts.

    An agent in a Neovim, of which that is not known, has only inherited the pane that it names.
    """
    return str(p.get("tty") or ("?" if p.get("nvim") else ""))


def _to_neovim(p: Published, asker: Asker) -> Reply:
    """Have the Neovim around a session show it; if that is in a tmux pane, show that, too."""
    address, missed, there = p["nvim"], "", {}
    if address == asker.nvim:
        return {"tty": p.get("tty", ""), "ours": True}
    try:
        there = arrive(p, asker)
    except Declined as why:
        missed = str(why)
    inherited = {"tmux": p.get("tmux"), "pane": p.get("pane")}
    place = {key: text_of(there, key) for key in inherited} if there else inherited
    reply: Reply = {"where": f"shown in the Neovim at {line(address)}"}
    if has_pane(place):
        try:
            reply = to_pane(place, asker)
        except Declined as why:
            missed = missed or str(why)
    if missed:
        raise lost(p, missed)
    return reply


def arrive(p: Published, asker: Asker = NOBODY) -> dict[str, Any]:
    """Have a Neovim show a session; return where that Neovim is. Raise `Declined` if it does not.

    It remembers where the jump began, to go back there.
    """
    began = {"tmux": asker.tmux, "pane": asker.pane} if asker.tmux and asker.pane else {}
    there = neovim.ask(p["nvim"], ARRIVE, p.get("tty", ""), began, p["session_id"])
    if not isinstance(there, dict) or there.get("shown") is not True:
        raise Declined("its Neovim no longer has its terminal")
    return there


def lost(p: Published, why: str) -> Declined:
    """Return why a session is not shown, with all that is known of where it runs."""
    known = ", ".join(f"{word}{p[key]}" for key, word in KNOWN.items() if p.get(key))
    return Declined(f"{why}: {known or p['session_id']}")


def unseen(p: Published) -> str:
    """Return advice about a pane that no terminal shows, for a command."""
    attach = f"bellboard goto {shlex.quote(p['session_id'])} --attach"
    return f"{UNSEEN}; to see it in this terminal: {attach}"


def attach(p: Published) -> list[str]:
    """Select the pane of a session; return the command that attaches this terminal to it.

    A Neovim around the session shows its terminal buffer, also if it cannot be attached to.
    """
    nvim = p.get("nvim")
    if nvim:
        arrive(p)
    if has_pane(p):
        tmux = Tmux(p["tmux"])
        try:
            if command := tmux.attaching(p["pane"]):
                return command
        except OSError as error:
            raise Declined(f"cannot attach to {tmux.socket}: {described(error)}") from None
        raise Declined(tmux.why)
    if nvim:
        raise Declined(
            f"its Neovim shows it, but is in no tmux pane to attach to; to use that Neovim here: "
            f"nvim --server {shlex.quote(nvim)} --remote-ui"
        )
    where = p.get("tty") or (f"process {p['pid']}" if p.get("pid") else "no terminal")
    raise Declined(
        f"it runs on {where}, in no tmux pane to attach to; "
        f"`bellboard answer {p['session_id']}` answers it from here"
    )


def arrive_over_ssh(p: Published, ends: Collection[str]) -> str:
    """Show a session in the terminal behind one of these ssh connections.

    Return that connection; "" if none of them shows its terminal: then nothing has changed.
    """
    nvim = p.get("nvim")
    if not has_pane(p):
        end = end_of(p.get("ssh") or "")
        if end and end in ends and nvim:
            arrive(p)
        return end if end in ends else ""
    tmux = Tmux(p["tmux"])
    for client in tmux.clients() or ():
        end = ssh.ends_of(client.pid)
        if end and end in ends:
            if nvim:
                arrive(p)
            if tmux.jump(p["pane"], client=client.name) is None:
                raise Declined(tmux.why)
            return end
    return ""


def is_here(p: Published, environ: Mapping[str, str]) -> bool:
    """Return whether the terminal that we run in shows the session's tmux server."""
    ours = socket_in(environ)
    return bool(ours) and ours == p.get("tmux")


def terminal_type(environ: Mapping[str, str]) -> str:
    """Return a terminal type that this machine knows: tmux refuses any other."""
    import curses

    named = environ.get("TERM", "")
    try:
        curses.setupterm(named, 1)
    except (curses.error, ValueError):
        return NO_TERMINAL
    return named
