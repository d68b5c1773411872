"""`spec.remote`: a server that is reached by HTTP instead of being run."""

from typing import Annotated

from pydantic import ConfigDict, Field

from mcp_operator.core.api.conditions import RemoteTransport
from mcp_operator.core.api.model import Model, map_of, rules

# Names of hosts as DNS has them: labels of 1 to 63 characters. What the system's resolver makes of a name
# beyond ASCII is found out by the relay.
_HOST = r"(\[[^/?#@\s\[\]]+\]|[^/?#@\s:.\[\]]{1,63}(\.[^/?#@\s:.\[\]]{1,63})*\.?)"
URL = rf"^https?://{_HOST}(:[0-9]*)?([/?][^#\s]*)?$"
# The pattern alone would be told as it stands, which says nothing to people.
_URL_WANTED = (
    "spec.remote.url: write http:// or https://, host and path, as https://mcp.example.com/mcp, without "
    "user, password and fragment; a credential comes by headersFrom"
)
_HEADER = r"^[-!#$%&'*+.^_`|~0-9A-Za-z]+$"
# Written by the relay itself, or about one connection only (mcp_sidecar.core.target).
RESERVED_HEADERS = (
    "accept", "accept-encoding", "connection", "content-length", "content-type", "expect", "host",
    "keep-alive", "last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id", "te",
    "trailer", "transfer-encoding", "upgrade",
)  # fmt: skip
# What is about a process here, and so about nothing beside a remote server.
_PROCESS_FIELDS = (
    "image", "imagePullPolicy", "command", "args", "workingDir", "env", "envFrom", "resources", "volumes",
    "volumeMounts", "securityContext", "cache",
)  # fmt: skip
REMOTE_RULES = (
    *(
        (
            f"!has(self.remote) || !has(self.{name})",
            f"spec.{name} is about a server that is run here: remove it, or spec.remote",
        )
        for name in _PROCESS_FIELDS
    ),
    (
        "!has(self.remote) || self.network.egress != 'None'",
        "spec.network.egress None cuts the relay off from spec.remote.url: choose Internet, Custom or All",
    ),
    (
        "!has(self.remote) || !has(self.session.mode) || self.session.mode == 'Shared'",
        "spec.session.mode PerClient is about processes run here: choose Shared, or remove spec.remote",
    ),
)
_ONE_SOURCE = "has(self.secretKeyRef) != has(self.configMapKeyRef)"


class RemoteKeyRef(Model):
    """A key of a Secret or ConfigMap in the resource's own namespace."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the Secret or ConfigMap. Required."""
    key: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")]
    """Key in it. Required."""


class KeySource(Model):
    """Where a text comes from."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (_ONE_SOURCE, "spec.remote.caBundleFrom: set either secretKeyRef or configMapKeyRef")
        )
    )

    secret_key_ref: RemoteKeyRef | None = None
    """Key of a Secret. Default: none."""
    config_map_key_ref: RemoteKeyRef | None = None
    """Key of a ConfigMap. Default: none."""


class HeaderSource(Model):
    """A header that every request to the remote server gets."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                _ONE_SOURCE,
                "spec.remote.headersFrom: set either secretKeyRef or configMapKeyRef",
            ),
            (
                f"!(self.name.lowerAscii() in {list(RESERVED_HEADERS)})",
                "spec.remote.headersFrom: the relay writes this header itself: remove it",
            ),
        )
    )

    name: Annotated[str, Field(min_length=1, max_length=128, pattern=_HEADER)]
    """Name of the header, for example Authorization. Required."""
    prefix: Annotated[str, Field(max_length=64, pattern=r"^[ -~]*$")] = ""
    """Text before the value, for example `Bearer ` with its blank. Default: none."""
    secret_key_ref: RemoteKeyRef | None = None
    """Key of a Secret that holds the value. A changed value means a new pod. Default: none."""
    config_map_key_ref: RemoteKeyRef | None = None
    """Key of a ConfigMap that holds the value, for one that is no secret. Default: none."""


class Remote(Model):
    """A server that speaks MCP over HTTP somewhere else."""

    url: Annotated[
        str,
        Field(
            min_length=1,
            max_length=2048,
            pattern=URL,
            json_schema_extra=rules((f"self.matches(r'{URL}')", _URL_WANTED)),
        ),
    ]
    """Where its MCP endpoint is, with http:// or https://, without user, password and fragment. Example:
    `https://mcp.example.com/mcp`. A redirect is followed on the same scheme, host and port only. Required."""
    transport: RemoteTransport = RemoteTransport.AUTO
    """Auto: Streamable HTTP, and SSE (revision 2024-11-05) when that is answered with 400, 404 or 405.
    StreamableHTTP, SSE: only that. Default Auto."""
    headers_from: Annotated[
        tuple[HeaderSource, ...], Field(max_length=32, json_schema_extra=map_of("name"))
    ] = ()
    """Headers for every request, with values from Secrets and ConfigMaps: they stand in no pod's spec, and
    are sent to this server alone. Default: none."""
    ca_bundle_from: KeySource | None = None
    """PEM certificates of the CAs that may have signed the server's certificate, beside those that the
    relay's image trusts. A changed value means a new pod. Default: those of the image alone."""
