"""Hosts that mean something else in a cluster: this computer, and its private network."""

import re
from collections.abc import Iterator
from typing import Final

from mcpsrv.core.configuration.launch import Launch, Note

_COMPUTER: Final = re.compile(
    r"(?i)(?<![\w.-])(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]|host\.docker\.internal)(?![\w-])"
)
_PRIVATE: Final = re.compile(
    r"(?<![\d.])(?:10(?:\.\d{1,3}){3}|192\.168(?:\.\d{1,3}){2}|172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2})(?![\d.])"
)
_LOGIN: Final = re.compile(r"^mcp-remote(?:@|$)")


def told(launch: Launch) -> Launch:
    """The launch with a note on every host that the server will not find where it was."""
    texts = [(word.field, word.text) for word in launch.words]
    texts += [(f"{launch.field}.env.{name}", value.text) for name, value in launch.env.items()]
    notes = [note for where, text in texts for note in _notes(where, text)]
    return launch.but(*notes, *_login(launch))


def _notes(where: str, text: str) -> Iterator[Note]:
    if found := _COMPUTER.search(text):
        yield Note(
            where,
            f"{found[0]} is the pod itself in the cluster, not this computer: name a Service or another "
            f"host there, "
            "and let spec.network.egress reach it",
        )
    if found := _PRIVATE.search(text):
        yield Note(
            where,
            f"{found[0]} is a private address, and servers reach public ones only: set spec.network.egress "
            f"to All, or "
            "to Custom with that address in egressRules",
        )


def _login(launch: Launch) -> Iterator[Note]:
    """mcp-remote opens a browser to log in unless a header does that."""
    remote = next((word for word in launch.words if _LOGIN.match(word.text)), None)
    if remote and not any(word.text.startswith("--header") for word in launch.words):
        yield Note(
            remote.field,
            "logs in with a browser, which no pod has: give it a token with --header, or let clients use "
            "the URL "
            "themselves",
        )
