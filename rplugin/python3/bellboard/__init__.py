"""bellboard: which coding-agent session is working, done, or blocked on you.

Loaded by a pynvim host this is a remote plugin.  It exports RPC methods only, so it needs no
manifest and no :UpdateRemotePlugins.
"""

import sys

from .core.version import VERSION

__version__ = VERSION

if "pynvim" in sys.modules:  # the command line does without: it would start 0.1 s later
    from .remote import Bellboard

    __all__ = ["Bellboard"]
