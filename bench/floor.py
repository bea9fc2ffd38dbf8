"""Do the minimum that updates a statusline when a file arrives: the baseline of `latency.py`.

It is a pynvim host that Neovim started, like ours, with bare inotify on one directory and one
asynchronous exec_lua per file: no reading, no folding, no database.
"""

import ctypes
import os
import sys

import pynvim


@pynvim.plugin
class Floor:
    def __init__(self, nvim):
        self.nvim = nvim

    @pynvim.rpc_export("watch")
    def watch(self, directory):
        libc = ctypes.CDLL(None)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        libc.inotify_add_watch(self.fd, os.fsencode(directory), 0x80)  # IN_MOVED_TO
        self.nvim.loop.add_reader(self.fd, self.arrived)

    def arrived(self):
        os.read(self.fd, 1 << 16)
        self.nvim.exec_lua("_G.floor_push()", async_=True)


if __name__ == "__main__":
    sys.argv[1:] = [os.path.abspath(__file__)]
    try:
        pynvim.start_host()
    except EOFError:
        os._exit(0)
