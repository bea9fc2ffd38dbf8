"""The attacked host: like `bellboard serve`, but it writes what it pushes to a file.

host.py HOME OUT CONFIG. It rescans every two seconds instead of every thirty, so that a rescan
happens during each case.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

from bellboard.hosting import host

assert host.RESCAN
host.RESCAN = 2.0  # type: ignore[misc]


def main() -> None:
    home, out, config = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])

    def push(message: dict[str, Any]) -> None:
        with out.open("a") as file:
            file.write(json.dumps(message, default=repr) + "\n")

    async def live() -> None:
        running = host.Host(home, push, config)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.stop)
        await running.run()

    asyncio.run(live())


if __name__ == "__main__":
    main()
