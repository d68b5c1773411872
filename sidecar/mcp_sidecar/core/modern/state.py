"""`requestState`: names a call that waits for its client, in a text that cannot be forged.

Bound by its signature to the server, to the subject, and to the request it belongs to; it expires. Text:
base64url of version(1) expires(8) key(12), a dot, base64url of HMAC-SHA256.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

KEY_BYTES = 12
RETRY_PARAMS = ("inputResponses", "requestState")
_VERSION = 1
_LENGTH = 1 + 8 + KEY_BYTES
_MAX_TEXT = 128
_PURPOSE = b"requestState\0"


def binding(method: str, params: Mapping[str, Any]) -> bytes:
    """What tells a request from every other one, its repetition with answers excepted."""
    told = {key: value for key, value in params.items() if key not in (*RETRY_PARAMS, "_meta")}
    return hashlib.sha256(json.dumps([method, told], sort_keys=True).encode()).digest()


class States:
    """Makes and checks the texts of one server."""

    def __init__(self, key: bytes, server_uid: str) -> None:
        self._key = key
        self._context = _PURPOSE + server_uid.encode() + b"\0"

    def sign(self, key: bytes, expires_ms: int, subject: str, bound: bytes) -> str:
        """The text for the call with this key, until `expires_ms` since the Unix epoch.

        `bound` is what `binding` gives for the request.
        """
        payload = bytes((_VERSION,)) + expires_ms.to_bytes(8, "big") + key
        return _join(payload, self._mac(payload, subject, bound))

    def verify(self, text: object, now_ms: int, subject: str, bound: bytes) -> bytes | None:
        """The key in a genuine text that is still valid for this request; None for every other text."""
        if not isinstance(text, str) or len(text) > _MAX_TEXT:
            return None
        first, _, second = text.partition(".")
        try:
            payload, mac = _decode(first), _decode(second)
        except (binascii.Error, ValueError):
            return None
        genuine = hmac.compare_digest(mac, self._mac(payload, subject, bound))
        if not genuine or text != _join(payload, mac) or len(payload) != _LENGTH:
            return None
        fresh = payload[0] == _VERSION and int.from_bytes(payload[1:9], "big") > now_ms
        return payload[9:] if fresh else None

    def _mac(self, payload: bytes, subject: str, bound: bytes) -> bytes:
        text = self._context + subject.encode() + b"\0" + bound + payload
        return hmac.digest(self._key, text, hashlib.sha256)


def _join(payload: bytes, mac: bytes) -> str:
    return f"{_encode(payload)}.{_encode(mac)}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
