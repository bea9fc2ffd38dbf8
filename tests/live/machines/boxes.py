"""A container: processes, terminals and ends are those of the container, not ours."""

from __future__ import annotations

from live.machines.breaks import is_stale, why
from live.machines.jumps import opens
from live.machines.place import becomes, contained, laptops


def container() -> None:
    """A CLI in it is shown, answered, and ends when it is stopped."""
    with contained() as box, laptops() as (laptop,):
        box.machine.bellboard("answers", "on")
        cli = box.start()
        laptop.follow(box)
        host = laptop.host()
        sid = box.id(cli)
        becomes(host, sid, "idle")
        cli.submit("play:perm please")
        becomes(host, sid, "blocked")
        row = host.sessions[sid]
        ours = [key for key in ("pid", "tty", "tmux", "pane", "cwd", "transcript") if row.get(key)]
        assert not ours, f"what is there must not be taken for ours: {ours}"
        assert row["far_pid"] == cli.pid, (row, cli.pid)
        reply = laptop.answer(sid)
        assert reply.get("outcome") == "taken", reply
        becomes(host, sid, "completed")
        print(f"   answered; its process there is {cli.pid}")
        box.machine.run("kill", "-9", str(cli.pid))
        becomes(host, sid, None)
        print("   killed: its row is gone")
        second = box.start("second")
        becomes(host, box.id(second), "idle")
        box.machine.place.crash()
        is_stale(host, box.id(second))
        print(f"   gone: {why(host, box.id(second))}")


def container_jump() -> None:
    """A jump opens a terminal in it that shows that pane, and leads back."""
    with contained() as box, laptops() as (laptop,):
        cli, decoy = box.start("wanted"), box.start("decoy")
        laptop.follow(box)
        host = laptop.host()
        for each in (cli, decoy):
            becomes(host, box.id(each), "idle")
        desk = laptop.tmux.open(["sh"], session="work", columns=120, lines=50)
        laptop.tmux.attach("work")
        opens(laptop, box, desk, box.id(cli), str(cli.pane.ask("#{pane_id}")))
