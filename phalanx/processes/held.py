"""Keeping connections from breaking, also when this process is killed.

A thread of the runtime that sends on a connection which breaks just then is forgotten by Gloo: it
waits for half an hour. So connections do not break before those at their ends have heard what has
become of the others. The kernel holds what is on its way through a socket that nobody reads; the
other end of that is kept by a process that does nothing else, until a while after this one ended.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess

# It runs as nobody's child, and reads from a pipe that this process alone can write: a word when
# this process ends in peace, and the end of the pipe when it is killed.
_KEEP = "exec 3<&0; (read word <&3 || sleep 5) &"


class Holder:
    """Holds connections of this process as long as it lives, and five seconds more."""

    def __init__(self) -> None:
        self._way, kept = socket.socketpair(socket.AF_UNIX)
        heard, self._word = os.pipe()
        try:
            subprocess.run(
                ["/bin/sh", "-c", _KEEP], stdin=heard, stdout=kept.fileno(),
                stderr=subprocess.DEVNULL, start_new_session=True, check=False,
            )  # fmt: skip
        except OSError:
            pass  # without a shell nothing is held
        finally:
            kept.close()
            os.close(heard)

    def hold(self, connection: socket.socket) -> None:
        """Hold it from now on, whoever closes it."""
        with contextlib.suppress(OSError):  # nobody keeps the other end
            socket.send_fds(self._way, [b"."], [connection.fileno()])

    def let_go(self) -> None:
        """Hold nothing any more."""
        with contextlib.suppress(OSError):
            os.write(self._word, b"\n")
        os.close(self._word)
        self._way.close()
