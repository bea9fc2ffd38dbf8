"""Lines of a trace, as the tests of what is compared write them: one session, `s`."""

from __future__ import annotations

from typing import Any, Final

from live.report import Line

PID: Final = 41


def hook(t: float, name: str, pid: int = PID, **facts: Any) -> Line:
    """Return a hook of a Claude Code."""
    payload = {"hook_event_name": name, "session_id": "s", "cwd": "/p", **facts}
    origin = {"agent": "claude", "pid": pid, "tty": f"/dev/pts/{pid}"}
    return {"t": t, "hook": payload, "origin": origin}


def file(t: float, status: str, pid: int = PID, waits: str = "") -> Line:
    """Return what its session file says."""
    record = {"pid": pid, "sessionId": "s", "cwd": "/p", "procStart": "5", "status": status}
    record |= {"version": "2.1.330", "statusUpdatedAt": 1000 * t}
    record |= {"waitingFor": waits} if waits else {}
    return {"t": t, "registry": {"pid": pid, "record": record}}


def entry(t: float, entry: Line) -> Line:
    """Return an entry of its transcript."""
    return {"t": t, "transcript": {"session_id": "s", "entry": entry}}


def report(t: float, body: str, pid: int = PID) -> Line:
    """Return what it reports to its terminal."""
    return {"t": t, "osc7501": {"pid": pid, "body": f"state={body}:app=claude-code"}}


def gone(t: float, pid: int = PID) -> Line:
    """Return the end of its process."""
    return {"t": t, "process": {"pid": pid, "alive": False}}


def tick(t: float) -> Line:
    """Return the end of a trace."""
    return {"t": t, "tick": {}}
