"""Ports for what a test starts, or starts again: nobody else is given one meanwhile."""

import collections
import socket

# Far more than one test uses.
KEPT = 64
_kept: collections.deque[socket.socket] = collections.deque()


def free_port() -> int:
    """A port of this machine that a server of the test may listen on, with SO_REUSEADDR, now and later.

    It stays bound here: one that is given back at once is soon somebody else's, another worker's or the next
    that the same test asks for. Until somebody listens on it, connections are refused.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    _kept.append(holder)
    if len(_kept) > KEPT:
        _kept.popleft().close()
    port = holder.getsockname()[1]
    assert isinstance(port, int)
    return port
