"""What the relay is told of a remote server. Values from Secrets come by files, never in words."""

import json
from typing import Any, Final

from mcp_operator.core.api.remote import HeaderSource, KeySource, Remote
from mcp_operator.core.api.spec import Recovery

Json = dict[str, Any]
CA_FILE: Final = "remote-ca.crt"


def told(remote: Remote, recovery: Recovery) -> str:
    """The relay's setting, as JSON."""
    headers = [
        {"name": header.name, "prefix": header.prefix, "file": _file(index)}
        for index, header in enumerate(remote.headers_from)
    ]
    return json.dumps(
        {
            "url": remote.url,
            "transport": remote.transport.value,
            "headers": headers,
            "caFile": CA_FILE if remote.ca_bundle_from else "",
            "backoffSeconds": list(recovery.backoff_seconds),
            "retryAfterErrorSeconds": recovery.retry_after_error_seconds,
        }
    )


def sources(remote: Remote) -> list[Json]:
    """Sources of a projected volume with the files that the setting names."""
    found = [_source(header, _file(index)) for index, header in enumerate(remote.headers_from)]
    return found + ([_source(remote.ca_bundle_from, CA_FILE)] if remote.ca_bundle_from else [])


def _source(named: HeaderSource | KeySource, path: str) -> Json:
    kind, reference = (
        ("secret", named.secret_key_ref) if named.secret_key_ref else ("configMap", named.config_map_key_ref)
    )
    if reference is None:  # which the API server does not let in
        return {kind: {"name": "", "items": []}}
    return {kind: {"name": reference.name, "items": [{"key": reference.key, "path": path}]}}


def _file(index: int) -> str:
    return f"remote-header-{index}"
