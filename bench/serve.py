"""Run `bellboard serve` with a given watch backend: inotify or watchfiles."""

import asyncio
import os
import sys
from pathlib import Path

from bellboard.hosting.host import Host
from bellboard.system.watch import Watch

how = sys.argv[1]


class Served(Host):
    def _watch(self):
        return Watch(self._woken, how, reach=self.reach)


asyncio.run(Served(Path(os.environ["BELLBOARD_HOME"]), lambda message: None).run())
