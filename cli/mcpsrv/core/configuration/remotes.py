"""An entry that names a URL: an MCPServer whose relay is the client of that server."""

import re
from collections.abc import Callable
from typing import Any, Final

from mcp_operator.core.api.remote import RESERVED_HEADERS, URL
from mcp_operator.core.rules.remote import inside
from mcpsrv.core.configuration import names, secrecy
from mcpsrv.core.configuration.entry import Entry
from mcpsrv.core.configuration.launch import Level, Note, UnsupportedError
from mcpsrv.core.configuration.placeholders import Value

Json = dict[str, Any]
Resolve = Callable[[str, str], Value]
_HERE: Final = ("://localhost", "://127.", "://[::1]", "://0.0.0.0")


def translated(entry: Entry, name: str, resolve: Resolve) -> tuple[Json, dict[str, str], tuple[Note, ...]]:
    """Spec, values for the Secret by header, and what there is to tell.

    Every header's value goes to the Secret: most are there to prove who asks, and none has to be read.

    Raises:
        UnsupportedError: the server cannot be reached from a cluster, or not without showing a secret.

    """
    url = resolve(entry.url, f"{entry.field}.url")
    _check(entry, url)
    notes = [*_left_out(entry), *_ignored(entry)]
    headers = {
        header: resolve(text, f"{entry.field}.headers.{header}").text.strip()
        for header, text in entry.headers.items()
        if text and header.lower() not in RESERVED_HEADERS
    }
    remote: Json = {"url": url.text}
    if entry.transport == "sse":
        remote["transport"] = "SSE"
    if headers:
        keys, secret = names.keys(headers), names.secret(name)
        remote["headersFrom"] = [
            {"name": header, "secretKeyRef": {"name": secret, "key": keys[header]}} for header in headers
        ]
    spec: Json = {"remote": remote}
    if inside(url.text):
        spec["network"] = {"egress": "All"}
        told = "is an address of a private network: the pod may open connections to everywhere"
        notes.append(Note(f"{entry.field}.url", f"{told}; spec.network.egressRules can narrow that"))
    return spec, headers, tuple(notes)


def _check(entry: Entry, url: Value) -> None:
    where = f"{entry.field}.url"
    if not re.fullmatch(URL, url.text):
        raise UnsupportedError(where, "is no http:// or https:// URL without user and fragment: correct it")
    if any(place in url.text for place in _HERE):
        raise UnsupportedError(
            where, "is a server on this computer, which no cluster reaches: give it a name, or run it there"
        )
    if url.secret or secrecy.reason("url", url.text):
        raise UnsupportedError(
            where, "holds a secret, which would stand in the manifest: send it by a header, if the server can"
        )


def _left_out(entry: Entry) -> list[Note]:
    found = []
    for header, text in entry.headers.items():
        field = f"{entry.field}.headers.{header}"
        if not text:
            found.append(Note(field, "is empty and is left out: give it a value if the server needs it"))
        elif header.lower() in RESERVED_HEADERS:
            found.append(Note(field, "is left out: the relay writes this header itself", Level.INFO))
    return found


def _ignored(entry: Entry) -> list[Note]:
    given = {"command": entry.command, "args": entry.args, "env": entry.env, "cwd": entry.cwd}
    told = "is left out: the server runs elsewhere"
    return [Note(f"{entry.field}.{name}", told) for name, value in given.items() if value]
