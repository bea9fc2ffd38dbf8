"""A host that writes everything it publishes into a file: recording_host.py HOME OUT HOW.

HOW is JSON: schema, network, stuck and rescan (seconds), watch (a backend), on (commands), options,
server, config;
clock, a file that says by how many seconds the clock of this process is ahead; and measured, to
include in each message how long the event loop was ever blocked while this process had the
processor, counted by a thread in hundredths of a second, which takes some itself. Each message
includes when it was published.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from bellboard.hosting import connection, host
from bellboard.storage import database
from bellboard.storage.store import Store
from bellboard.system.watch import Watch

BUMP = "CREATE TABLE novelties (id INTEGER PRIMARY KEY)"


def main() -> None:
    home, out, how = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    if ahead := how.get("clock"):
        real = time.time
        time.time = lambda: real() + float(Path(ahead).read_text())
    connection.STUCK = how.get("stuck", connection.STUCK)  # type: ignore[misc]
    host.RESCAN = how.get("rescan", host.RESCAN)  # type: ignore[misc]
    host.Watch = partial(Watch, how=how.get("watch"))  # type: ignore[assignment,misc]

    steps = {**database.MIGRATIONS, database.SCHEMA + 1: BUMP}
    connection.Store = partial(  # type: ignore[assignment,misc]
        Store,
        network=how.get("network"),
        schema=how.get("schema", database.SCHEMA),
        migrations=steps,
    )
    gap = beats = 0

    def push(message: dict[str, Any]) -> None:
        with out.open("a") as file:
            more = {"gap": gap / 100} if how.get("measured") else {}
            file.write(json.dumps({**message, **more, "at": time.time()}, default=repr) + "\n")

    def beat() -> None:
        nonlocal beats
        while True:
            time.sleep(0.01)
            beats += 1

    async def pulse() -> None:
        nonlocal gap
        while True:
            before = beats
            await asyncio.sleep(0.01)
            gap = max(gap, beats - before)

    async def live() -> None:
        config = {"callbacks": how.get("on", {}), "options": how.get("options")}
        config["pull_requests"] = how.get("pull_requests")
        if "server" in how:
            config["server"] = how["server"]
        config |= how.get("config", {})
        told = host.Host(home, push, config)
        if how.get("measured"):
            threading.Thread(target=beat, name="beat", daemon=True).start()
            pulses = asyncio.create_task(pulse())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.stop)
        await told.run()
        if how.get("measured"):
            pulses.cancel()

    asyncio.run(live())


if __name__ == "__main__":
    main()
