"""The rig's fixtures (see rig/fixtures.py), hosts, and the settings of Hypothesis."""

from __future__ import annotations

import os
import tempfile
import time

from rig import examples, home

pytest_plugins = (
    "rig.fixtures",
    "rig.collecting",
    "rig.host.hosting",
    "rig.host.desk",
    "rig.shell",
    "rig.machines.fleets",
    "tmux.room",
)

examples.load()
os.environ["TMPDIR"] = tempfile.tempdir = home.base()  # for tmp_path as well
os.environ["TZ"] = "UTC"  # times on screens and quiet hours are local
time.tzset()
