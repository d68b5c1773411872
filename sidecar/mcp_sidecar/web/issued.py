"""The entrance for tokens of an issuer, and what tells clients which issuer that is (RFC 9728, RFC 6750).

Imported only where tokens are JWTs.
"""

import re
from collections.abc import Callable, Mapping

from mcp_relay_api import paths
from mcp_sidecar.core import jsontext
from mcp_sidecar.core.claims import Rules, StrangerError, TokenError
from mcp_sidecar.core.httptext import Head, Reply
from mcp_sidecar.web.entrance import Serve, unauthorized
from mcp_sidecar.web.exchange import Exchange
from mcp_sidecar.web.keyring import Keyring
from mcp_sidecar.web.verifier import NoKeysError, Verifier

METADATA_PATH = b"/.well-known/oauth-protected-resource"
_PATHS = (METADATA_PATH, METADATA_PATH + paths.MCP_PATH.encode())
_NAME = re.compile(rb"[\w.:\[\]-]+", re.ASCII)
_MISSING = b'Bearer realm="mcp"%b'
_INVALID = b'Bearer realm="mcp", error="invalid_token", error_description="%b"%b'
_NO_KEYS = b'{"error":"The keys of the token issuer are not known, try again later"}'
_FORBIDDEN = b'{"error":"Forbidden: the holder of this token is not among those who may use this server"}'
_EXPIRED = "The token has expired"


class IssuedEntrance:
    """Lets in whom the issuer knows; each of them is somebody else to us."""

    def __init__(self, rules: Rules, keyring: Keyring, name: str, foreign: Callable[[Head], bool]) -> None:
        """`foreign` tells a request whose Host may not be repeated."""
        self._rules = rules
        self._keyring = keyring
        self._verifier = Verifier(rules, keyring)
        self._name = name
        self._foreign = foreign
        self._judged_with = keyring.digest
        self.public: Mapping[bytes, Serve] = dict.fromkeys(_PATHS, self._metadata)

    def admit(self, head: Head) -> Reply | None:
        """Let in who has a good token; everybody to the metadata, which has no secret."""
        if head.path in self.public:
            return None
        scheme, _, token = head.headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer":
            return self._challenge(head, "")
        try:
            found = self._verifier.identify(token.strip())
        except TokenError as error:
            return self._challenge(head, str(error))
        except StrangerError:
            return Reply(403, _FORBIDDEN)
        except NoKeysError:
            return Reply(503, _NO_KEYS, [(b"retry-after", b"1")])
        head.subject, head.expires = found.subject, found.expires
        return None

    def expired(self, head: Head) -> Reply:
        """The reply to a token that was good."""
        return self._challenge(head, _EXPIRED)

    def changed(self) -> bool:
        """Whether the issuer has other keys. That a token expires is seen by `head.expires`."""
        before, self._judged_with = self._judged_with, self._keyring.digest
        return before != self._judged_with

    def _challenge(self, head: Head, problem: str) -> Reply:
        where = b""
        if self._rules.resource or self._repeatable(head):
            where = b', resource_metadata="%b"' % self._place(head)
        text = _INVALID % (problem.encode(), where) if problem else _MISSING % where
        return unauthorized([(b"www-authenticate", text)])

    def _repeatable(self, head: Head) -> bool:
        """Whether Host may stand in a header of the reply: where every name is allowed, it may be no name."""
        return _NAME.fullmatch(head.headers.get(b"host", b"")) is not None and not self._foreign(head)

    def _resource(self, head: Head) -> bytes:
        """The URL by which clients know this server. Host was looked at before it is repeated."""
        if self._rules.resource:
            return self._rules.resource.encode()
        return b"http://%b%b" % (head.headers.get(b"host", b""), paths.MCP_PATH.encode())

    def _place(self, head: Head) -> bytes:
        """Where the metadata is: the well-known part stands before the resource's path (RFC 9728, 3.1)."""
        scheme, _, rest = self._resource(head).partition(b"://")
        authority, slash, path = rest.partition(b"/")
        return b"%b://%b%b%b%b" % (scheme, authority, METADATA_PATH, slash, path)

    def _metadata(self, exchange: Exchange) -> None:
        document = {
            "resource": self._resource(exchange.head).decode("latin-1"),
            "authorization_servers": [self._rules.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": self._name,
        }
        exchange.reply(Reply(200, jsontext.dumps(document), [(b"cache-control", b"no-store")]))
