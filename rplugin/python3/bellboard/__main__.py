"""Run by path, as Neovim does: the stock pynvim host, serving this package alone.

Otherwise the command line: `python -m bellboard`, and the program that an installer makes.
"""

import gc
import os
import signal
import sys

OBJECTS = 20_000  # new objects before a collection: those of modules all stay

# Until a command runs, CTRL-C ends the process silently.  (In the background it is ignored.)
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

if sys.version_info < (3, 10):  # noqa: UP036 - of the user's, which cannot run the rest
    this = "{} is {}.{}".format(sys.executable, *sys.version_info)
    sys.exit(f"bellboard needs Python 3.10 or newer; {this}")


def serve_neovim() -> None:
    """Serve the Neovim on standard input until it exits."""
    package = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - no import of pathlib
    sys.path[0] = os.path.dirname(package)  # noqa: PTH120 - not the package: its modules are not top-level
    sys.argv[1:] = [package]
    import pynvim

    from bellboard import remote
    from bellboard.system.ending import attended

    remote.held = os.dup(0), os.dup(1)
    try:
        try:
            attended(pynvim.start_host, remote.end, held=remote.held[0])
        finally:
            remote.left()
    except (EOFError, KeyboardInterrupt):
        pass
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)  # no thread may delay :qa


def program() -> None:
    """Run the command line of this process, and end it."""
    if not __package__:
        here = os.path.abspath(__file__)  # noqa: PTH100
        sys.path[0] = os.path.dirname(os.path.dirname(here))  # noqa: PTH120
    gc.set_threshold(OBJECTS)
    from bellboard import cli

    cli.program()


if not __package__ and len(sys.argv) == 1:
    serve_neovim()
elif __name__ == "__main__":
    program()
