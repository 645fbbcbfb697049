"""The socket that all processes share, closed so that nobody stands between its two sides.

The system completes connections by itself and lets them wait; those that wait when the last process closes the socket
are reset, after their clients have been told that they are connected and have sent a request.
"""

from __future__ import annotations

import ctypes
import socket
import struct
import sys
from contextlib import suppress

__all__ = ["deafen"]

_SO_ATTACH_FILTER = 26
_REFUSE_ALL = struct.pack("HBBI", 0x06, 0, 0, 0)  # one instruction of a packet filter: return 0, keep nothing


def deafen(listening: socket.socket) -> None:
    """From now on no connection is made: a client's system asks again a second later, and is refused if we are gone.

    Whoever is connected stays so. Linux alone has such a filter: elsewhere this does nothing.
    """
    if sys.platform != "linux":
        return
    code = ctypes.create_string_buffer(_REFUSE_ALL)
    with suppress(OSError):
        program = struct.pack("HL", 1, ctypes.addressof(code))  # instructions, and where they lie
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
