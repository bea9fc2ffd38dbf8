"""The rig's fixtures (see rig/fixtures.py), hosts, and the settings of Hypothesis."""

from __future__ import annotations

import os
import tempfile
import time

import examples
from rig import home

pytest_plugins = (
    "rig.fixtures",
    "rig.collecting",
    "hosting",
    "desk",
    "shell",
    "fleets",
    "tmux_room",
)

examples.load()
os.environ["TMPDIR"] = tempfile.tempdir = home.base()  # for tmp_path as well
os.environ["TZ"] = "UTC"  # times on screens and quiet hours are local
time.tzset()
