"""bellboard: which coding-agent session is working, done, or blocked on you.

When a pynvim host loads this package, it is a remote plugin.  It exports only RPC methods, so it
needs no manifest and no :UpdateRemotePlugins.
"""

import sys

from .core.version import VERSION

__version__ = VERSION

if "pynvim" in sys.modules:  # the command line does not need it, and would start 0.1 s later
    from .remote import Bellboard

    __all__ = ["Bellboard"]
