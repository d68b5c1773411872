"""Why somebody else's web server does not answer, in words that a status may show."""

import ssl
from typing import Final

import aiohttp

# By the first kind that fits, in words of our own: those of an error quote what the other side sent, and the
# addresses behind its name.
_KINDS: Final[tuple[tuple[tuple[type[Exception], ...], str], ...]] = (
    ((TimeoutError,), "it is too slow"),
    (
        (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError),
        "its certificate is not accepted",
    ),
    ((aiohttp.ClientSSLError, ssl.SSLError), "no TLS connection"),
    ((aiohttp.ClientConnectorDNSError,), "its name is not known"),
    ((aiohttp.ClientHttpProxyError,), "the proxy makes no connection"),
    ((aiohttp.InvalidURL,), "its URL is not valid"),
    ((aiohttp.ServerDisconnectedError,), "it ends the connection"),
    ((aiohttp.ClientConnectionError, OSError), "no connection"),
)
_NO_HTTP: Final = "what it sends is no HTTP"


def words(error: Exception) -> str:
    """What hindered a request, by the kind of the error alone."""
    return next((text for kinds, text in _KINDS if isinstance(error, kinds)), _NO_HTTP)
