"""The command that ends the process of a session: stop."""

from __future__ import annotations

from .adding import Args, Commands, add, add_session
from .goto import named
from .home import Problem


def add_to(commands: Commands) -> None:
    text = "stop the process of a session, after verifying that it is the right one"
    add_session(add(commands, "stop", stop, text))


def stop(args: Args) -> None:
    from .runner import carry_out

    p = named(args.session)
    pid = p.get("pid") or p.get("far_pid")
    if not pid:
        raise Problem(f"{p['session_id']}: its process is unknown; stop it in its terminal")
    print(f"{p['session_id']}: {carry_out('stop', p, pid=pid)['text']}")
