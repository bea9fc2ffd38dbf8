"""A copy of what a session shows: its pane, its terminal in a Neovim, or the end of its transcript.

Showing its terminal itself would resize the agent's screen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..agents.registry import agent_of, is_known_agent
from ..core.colors import Painted, painted
from ..core.published import Published
from ..core.request import MOST_ROWS, WIDEST, Reply
from ..core.untrusted import list_of
from ..system import neovim
from ..system.failures import Declined
from ..system.tmux import Tmux, has_pane
from .answering import NOWHERE
from .jump import terminal_of

#: Run in a Neovim, which may have another version of this plugin.
SHOWN: Final = "return require('bellboard')._shown(...)"


def preview(p: Published) -> Reply:
    """Return what a session shows: `rows`, and where they have which of the `looks`. May block.

    Raise `Declined` with the reason if nothing shows it.
    """
    why = NOWHERE
    try:
        shown = of_terminal(p)
    except Declined as reason:
        shown, why = None, str(reason)
    if shown is None or not shown.rows:
        agent, path = p.get("agent", ""), p.get("transcript", "")
        is_read = path.startswith("/") and is_known_agent(agent)
        shown = _painted(agent_of(agent).conversation(path)) if is_read else None
    if shown is None or not shown.rows:
        raise Declined(why)
    return shown._asdict()


def of_terminal(p: Published) -> Painted | None:
    """Return the text of a session's terminal; None if it has none that can be read.

    Raise `Declined` with the reason if that cannot be read now.
    """
    why = ""
    if has_pane(p):
        tmux = Tmux(p["tmux"])
        if (own := tmux.own(p["pane"], terminal_of(p))) is not None:
            return _painted(tmux.painted(own.id))
        why = tmux.why
    if p.get("nvim") and p.get("tty"):
        rows = neovim.ask(p["nvim"], SHOWN, p["tty"])
        if not isinstance(rows, list):
            raise Declined("its Neovim no longer has its terminal")
        return _painted(row for row in list_of(rows) if isinstance(row, str))
    if why:
        raise Declined(why)
    return None


def _painted(rows: Iterable[str]) -> Painted:
    """Return the last rows; of empty ones in a row the first, and none at the end.

    An agent that fills its screen leaves most of that empty, above its prompt.
    """
    shown = painted(row[:WIDEST] for row in rows)
    texts = [row.rstrip() for row in shown.rows]
    kept = [n for n, text in enumerate(texts) if text or (n and texts[n - 1])]
    while kept and not texts[kept[-1]]:
        del kept[-1]
    new = {n: row for row, n in enumerate(kept[-MOST_ROWS:])}
    spans = [
        (new[n], at, min(end, len(texts[n].encode())), look)
        for n, at, end, look in shown.spans
        if n in new
    ]
    found = [texts[n] for n in new]
    return Painted(found, [span for span in spans if span[1] < span[2]], shown.looks)
