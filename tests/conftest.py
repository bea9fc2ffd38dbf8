"""The rig's fixtures (see rig/fixtures.py), hosts, and the settings of Hypothesis."""

from __future__ import annotations

import os
import tempfile
import time

from hypothesis import HealthCheck, settings

from rig import home

pytest_plugins = ("rig.fixtures", "rig.collecting", "hosting", "desk", "shell")

#: A multiple of the usual number of examples; `BELLBOARD_EXAMPLES=50` is a long run.
MANY = int(os.environ.get("BELLBOARD_EXAMPLES", "1"))
settings.register_profile(
    "bellboard",
    deadline=None,
    derandomize=MANY == 1,  # the usual run is repeatable, a long one tries new examples
    max_examples=100 * MANY,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("bellboard")

os.environ["TMPDIR"] = tempfile.tempdir = home.base()  # for tmp_path as well
os.environ["TZ"] = "UTC"  # times on screens and quiet hours are local
time.tzset()
