"""The fixtures are the rig's; see rig/fixtures.py; hosts have theirs."""

pytest_plugins = ("rig.fixtures", "hosting")
