"""`spec` of an MCPServer: what the user asks for. Defaults and bounds stand here and nowhere else."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from mcp_operator.core.api import identity
from mcp_operator.core.api.cache import CACHE_RULES, Cache
from mcp_operator.core.api.conditions import (
    AuthType,
    EgressClass,
    SigningAlgorithm,
)
from mcp_operator.core.api.model import ATOMIC, SET, Model, Opaque, core, map_of, rules
from mcp_operator.core.api.remote import REMOTE_RULES, Remote
from mcp_operator.core.api.session import DAY, SESSION_RULES, Session
from mcp_operator.core.api.tools import Tools

MAX_VOLUMES = 64
MAX_ENV = 512
MAX_RETRIES = 10

_COMMAND_MISSING = (
    "spec.command is required without spec.image: write the command that starts the server, for example "
    '["npx", "-y", "@modelcontextprotocol/server-everything"] or ["uvx", "mcp-server-time"]'
)
_MOUNTS_KNOWN = (
    "!has(self.volumeMounts) || self.volumeMounts.all(m, "
    "has(self.volumes) && self.volumes.exists(v, v.name == m.name))"
)
_MOUNT_UNKNOWN = "spec.volumeMounts: a name is not that of a volume in spec.volumes: add it or correct it"
_REQUEST, _LIMIT = "string(self.requests[k])", "string(self.limits[k])"
# What is no quantity is told by its pattern.
_REQUESTS_FIT = (
    "!has(self.requests) || !has(self.limits) || ['cpu', 'memory', 'ephemeral-storage'].all(k,"
    " !(k in self.requests) || !(k in self.limits)"
    f" || !isQuantity({_REQUEST}) || !isQuantity({_LIMIT})"
    f" || quantity({_REQUEST}).compareTo(quantity({_LIMIT})) <= 0)"
)
_REQUEST_ABOVE = "spec.resources: a request is above its limit: lower the one or raise the other"
_RESERVED = ", ".join(identity.RESERVED_VOLUMES)


def _own_keys(what: str) -> tuple[str, str]:
    prefixes = (identity.OWN_PREFIX, identity.RECOMMENDED_PREFIX)
    rule = " && ".join(f"!k.startsWith('{prefix}')" for prefix in prefixes)
    return (
        f"self.all(k, {rule})",
        f"spec.podTemplate.metadata.{what}: the prefixes {' and '.join(prefixes)} are taken: use another",
    )


_TEXT = Field(max_length=4096)
Text = Annotated[str, _TEXT]
LabelValue = Annotated[str, Field(max_length=63)]
AnnotationValue = Annotated[str, Field(max_length=65_536)]


class PodMetadata(Model):
    """Labels and annotations of the pod."""

    labels: Annotated[
        dict[str, LabelValue], Field(max_length=64, json_schema_extra=rules(_own_keys("labels")))
    ] = Field(default_factory=dict)
    """More labels for the pod. Keys with the prefixes `mcp-session.dev/` and `app.kubernetes.io/` are the
    operator's. Default: none."""
    annotations: Annotated[
        dict[str, AnnotationValue], Field(max_length=64, json_schema_extra=rules(_own_keys("annotations")))
    ] = Field(default_factory=dict)
    """More annotations for the pod. Keys with the prefixes `mcp-session.dev/` and `app.kubernetes.io/` are
    the operator's. Default: none."""


class PodTemplate(Model):
    """What the pod gets beside what the fields of `spec` say."""

    metadata: PodMetadata = PodMetadata()
    """Labels and annotations that are added to the pod's own. Default: none."""


class Recovery(Model):
    """How a failed server is replaced. A broken connection to a healthy process costs no retry."""

    max_retries: Annotated[int, Field(ge=0, le=MAX_RETRIES)] = 3
    """Number of retries after a failure, so one attempt more than this in all; then the phase is Error.
    Default 3, from 0 to 10."""
    backoff_seconds: Annotated[
        tuple[Annotated[int, Field(ge=1, le=3600)], ...],
        Field(min_length=1, max_length=MAX_RETRIES, json_schema_extra=ATOMIC),
    ] = (2, 4, 8)
    """Seconds to wait before each retry, in order; the last one is used for all further retries. Default
    [2, 4, 8], each from 1 to 3600."""
    stable_seconds: Annotated[int, Field(ge=1, le=DAY)] = 600
    """Seconds of uninterrupted session after which the count of retries starts anew. Default 600, at most
    86400."""
    retry_after_error_seconds: Annotated[int, Field(ge=0, le=DAY)] = 300
    """Seconds between the slow attempts in phase Error; 0 switches them off. Default 300, at most 86400."""


class SecretKeyRef(Model):
    """A key of a Secret in the resource's own namespace."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the Secret. Required."""
    key: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")] = "token"
    """Key in the Secret whose value is the token. Default `token`."""


class Bearer(Model):
    """Where the bearer token comes from."""

    secret_ref: SecretKeyRef
    """Secret that holds the token, or up to 8, one a line, all of them valid. A changed value is followed
    without a new pod, as soon as the node renews mounted Secrets (a minute or two). Required."""


# Without user, query and fragment; no character that would have to be escaped where the URL is shown.
_HTTPS = r"^https://[^\s/?#@\"\\]+(/[^\s?#\"\\]*)?$"
_HTTP = r"^https?://[^\s/?#@\"\\]+(/[^\s?#\"\\]*)?$"
_URL_LENGTH = 512


class Jwt(Model):
    """Which tokens are good. The signature, `iss`, `aud`, `exp`, `nbf` and `iat` are always verified."""

    issuer: Annotated[str, Field(min_length=1, max_length=_URL_LENGTH, pattern=_HTTPS)]
    """URL of the issuer, to the letter as its tokens have it in `iss`. That of this very cluster, for tokens
    of service accounts, is known by itself. Required."""
    audiences: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=_URL_LENGTH)], ...],
        Field(min_length=1, max_length=16, json_schema_extra=SET),
    ]
    """For whom a token must be: one of these must be in its `aud`. Name one that no other server takes, such
    as the server's own URL, since who has a token for several can be imitated by each of them. Required."""
    jwks_uri: Annotated[str, Field(min_length=1, max_length=_URL_LENGTH, pattern=_HTTPS)] | None = None
    """URL of the issuer's keys, a JWK Set. The operator fetches it, every 5 minutes and, at most twice a
    minute, when a token names a key that is not in it. Default: what the issuer says of itself at
    `/.well-known/openid-configuration` (OpenID Connect Discovery) or else
    `/.well-known/oauth-authorization-server` (RFC 8414)."""
    algorithms: Annotated[tuple[SigningAlgorithm, ...], Field(max_length=10, json_schema_extra=SET)] = ()
    """With what a token may be signed; `none` and shared secrets (HS256) never are. Default, and with an
    empty list: all of these."""
    clock_skew_seconds: Annotated[int, Field(ge=0, le=300)] = 30
    """Seconds by which the issuer's clock may differ. Default 30, at most 300."""
    subject_claim: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[-_.:/a-zA-Z0-9]+$")] = "sub"
    """Claim that says whose a token is; a token without it is refused. A session belongs to the one who
    opened it. Default `sub`."""
    subjects: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=512)], ...],
        Field(max_length=256, json_schema_extra=SET),
    ] = ()
    """Names, or globs with `*`, `?` and `[ab]`, of those who may use the server, as the claim has them:
    `system:serviceaccount:NAMESPACE:*` for all service accounts of a namespace. Others get 403. Default, and
    with an empty list: all whom the issuer gives a token for the audience."""
    resource: Annotated[str, Field(min_length=1, max_length=_URL_LENGTH, pattern=_HTTP)] | None = None
    """URL by which clients call the server, where that is not `http://`, their Host and `/mcp`, as behind an
    ingress with TLS; told to them with the issuer (RFC 9728). Default: the one by which they ask."""


class Auth(Model):
    """Who may use the server."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.bearer) || (has(self.type) && self.type == 'Bearer')",
                "spec.auth.bearer only works with type Bearer: set spec.auth.type to Bearer or remove bearer",
            ),
            (
                "!has(self.jwt) || (has(self.type) && self.type == 'JWT')",
                "spec.auth.jwt only works with type JWT: set spec.auth.type to JWT or remove jwt",
            ),
            (
                "has(self.jwt) || !(has(self.type) && self.type == 'JWT')",
                "spec.auth.type JWT needs spec.auth.jwt with issuer and audiences: whose tokens, for whom",
            ),
        )
    )

    type: AuthType = AuthType.BEARER
    """Bearer: every request must carry the token. JWT: every request must carry a token of the issuer that
    `jwt` names. None: everyone who reaches the Service is served. Default Bearer."""
    bearer: Bearer | None = None
    """Token of your own, with type Bearer; the Secret named like the Service then holds none. Default: the
    operator makes a random token, key `token` of the Secret named like the Service."""
    jwt: Jwt | None = None
    """Whose tokens are good, with type JWT. Required then."""


class Network(Model):
    """Who may reach the pod, and whom it may reach."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "(has(self.egress) && self.egress == 'Custom') == has(self.egressRules)",
                "spec.network.egressRules belongs to egress Custom: set both or neither",
            )
        )
    )

    egress: EgressClass = EgressClass.INTERNET
    """Internet: the cluster's DNS and public addresses, no private, link-local or metadata address. None:
    nowhere, DNS included. All: everywhere. Custom: where `egressRules` says. Default Internet."""
    egress_rules: (
        Annotated[tuple[Opaque, ...], core("NetworkPolicyEgressRule", **ATOMIC, maxItems=64)] | None
    ) = None
    """With Custom: where the pod may open connections to, DNS too. Required then."""
    ingress_from: Annotated[tuple[Opaque, ...], core("NetworkPolicyPeer", **ATOMIC, maxItems=64)] | None = (
        None
    )
    """Pods, namespaces and addresses that may reach the clients' port; the operator and the pod's own node
    always may. An empty list: nobody else. Default: all pods of the same namespace."""


class MCPServerSpec(Model):
    """What to run, and how."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (_MOUNTS_KNOWN, _MOUNT_UNKNOWN),
            *CACHE_RULES,
            *REMOTE_RULES,
            *SESSION_RULES,
        )
    )

    image: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """Image that holds the server. Default: the operator's runtime image, with npx (Node.js) and uvx
    (Python)."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When to pull the image: Always, IfNotPresent or Never. Default: IfNotPresent, Always for the tag
    `latest`."""
    image_pull_secrets: Annotated[
        tuple[Opaque, ...],
        core("LocalObjectReference", **map_of("name"), maxItems=32, of_items={"required": ["name"]}),
    ] = ()
    """Secrets in the same namespace with which the images are pulled. Default: none."""
    command: Annotated[tuple[Text, ...], Field(max_length=256, json_schema_extra=ATOMIC)] = ()
    """Program that speaks MCP on stdin and stdout, with arguments; not run in a shell. Example: ["uvx",
    "mcp-server-time"]. Default: what the image starts, which the operator asks its registry for when it makes
    the pod; so it is required without `image`."""
    remote: Remote | None = None
    """A server that runs somewhere else and speaks MCP over HTTP, instead of one that is run here: the pod
    holds the relay alone, which keeps one session with it and shares it. Sessions, tools, access and network
    work as for other servers. Default: a server is run here."""
    args: Annotated[tuple[Text, ...], Field(max_length=1024, json_schema_extra=ATOMIC)] = ()
    """Arguments after those in `command`, or instead of the image's own. `$(NAME)` is replaced by the
    environment variable. Default: none."""
    working_dir: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """Directory in which the command starts. Default: the image's."""
    env: Annotated[
        tuple[Opaque, ...],
        core(
            "EnvVar",
            **map_of("name"),
            maxItems=MAX_ENV,
            of_items=rules(
                (
                    "!has(self.valueFrom) || !has(self.value) || self.value == ''",
                    "spec.env: an entry has either value or valueFrom: remove one of them",
                ),
                (
                    "self.name != '' && !self.name.contains('=')",
                    "spec.env: a name is empty or has a '=': write what follows that as value",
                ),
            ),
        ),
    ] = ()
    """Environment variables of the server. HOME, TMPDIR and the caches of npm, uv and pip are set to
    writable folders unless named here. Default: none."""
    env_from: Annotated[tuple[Opaque, ...], core("EnvFromSource", **ATOMIC, maxItems=64)] = ()
    """Secrets and ConfigMaps whose keys become environment variables; `env` wins. Default: none."""
    resources: (
        Annotated[Opaque, core("ResourceRequirements", **rules((_REQUESTS_FIT, _REQUEST_ABOVE)))] | None
    ) = None
    """CPU, memory and ephemeral storage of the server's container. What is not named gets a default: requests
    100m CPU, 128Mi memory, 64Mi ephemeral-storage; limits 1 CPU, 512Mi memory, 1Gi ephemeral-storage. The
    relay beside it gets requests 50m CPU, 64Mi memory, 16Mi ephemeral-storage and limits 1 CPU, 256Mi memory,
    64Mi ephemeral-storage, unless the chart's value `relay.resources` says otherwise."""
    volumes: Annotated[
        tuple[Opaque, ...],
        core(
            "Volume",
            **map_of("name"),
            maxItems=MAX_VOLUMES,
            of_items=rules(
                (
                    f"!(self.name in {list(identity.RESERVED_VOLUMES)})",
                    f"spec.volumes: the names {_RESERVED} are taken by the operator: choose another name",
                )
            ),
        ),
    ] = ()
    """More volumes for the pod. The names bridge, state, secrets, home, tmp and package-cache are
    taken. Default: none."""
    volume_mounts: Annotated[
        tuple[Opaque, ...],
        core(
            "VolumeMount",
            **map_of("mountPath"),
            maxItems=MAX_VOLUMES,
            of_items=rules(
                (
                    "!self.mountPath.matches('^/*bridge(/.*)?$')",
                    "spec.volumeMounts: /bridge belongs to the operator: mount the volume elsewhere",
                ),
            ),
        ),
    ] = ()
    """Where the volumes stand in the server's container; /bridge is taken. Default: none beside a writable
    home and /tmp."""
    cache: Cache | None = None
    """A volume, mounted at /cache, on which npm, uv, pip and what follows XDG_CACHE_HOME keep what they
    downloaded: the next start downloads only what is not there. npm then looks for no newer version of a
    package that is. Servers that share one can change each other's programs. Default: none, each pod
    downloads anew."""
    service_account_name: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """ServiceAccount of the pod; its token is not mounted. Default: the namespace's `default`."""
    runtime_class_name: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """RuntimeClass of the pod, for example gvisor. Default: the cluster's default runtime."""
    node_selector: Annotated[dict[str, LabelValue], Field(max_length=64)] = Field(default_factory=dict)
    """Labels that the node must have. Default: any node."""
    tolerations: Annotated[tuple[Opaque, ...], core("Toleration", **ATOMIC, maxItems=64)] = ()
    """Taints of nodes that the pod tolerates. Default: none."""
    affinity: Annotated[Opaque, core("Affinity")] | None = None
    """Preferred and required neighbours and nodes of the pod. Default: none."""
    topology_spread_constraints: Annotated[
        tuple[Opaque, ...],
        core("TopologySpreadConstraint", **map_of("topologyKey", "whenUnsatisfiable"), maxItems=16),
    ] = ()
    """How pods that a selector matches are spread over zones or nodes. Default: none."""
    priority_class_name: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """PriorityClass of the pod. Default: the cluster's default priority."""
    pod_security_context: Annotated[Opaque, core("PodSecurityContext")] | None = None
    """Security settings of the whole pod; what is not named stays as the operator sets it. Default: passes
    Pod Security "restricted"."""
    security_context: Annotated[Opaque, core("SecurityContext")] | None = None
    """Security settings of the server's container; what is not named stays as the operator sets it.
    Default: passes Pod Security "restricted", read-only root file system."""
    pod_template: PodTemplate = PodTemplate()
    """Labels and annotations for the pod. Default: none."""
    suspend: bool = False
    """True: no pod runs and the phase is Suspended; Service and Secret stay. Default false."""
    session: Session = Session()
    """Limits of the MCP session and of its clients."""
    recovery: Recovery = Recovery()
    """How a failed server is replaced."""
    auth: Auth = Auth()
    """Who may use the server. Default: who has the bearer token."""
    tools: Tools = Tools()
    """Which tools clients may see and call, also by a name that no list showed, and as what. Default: all, as
    the server has them."""
    network: Network = Network()
    """Who may reach the pod, and whom it may reach: a NetworkPolicy, which holds only where the cluster's
    network plugin enforces it. A change needs no new pod. Default: from its namespace, to public
    addresses."""


# On the whole object, so that the message also comes when `spec` itself is missing.
ROOT_RULES = (
    {
        "rule": "has(self.spec) && (has(self.spec.remote) "
        "|| (has(self.spec.command) && size(self.spec.command) > 0 "
        "? size(self.spec.command[0]) > 0 : has(self.spec.image)))",
        "message": _COMMAND_MISSING,
        "fieldPath": ".spec.command",
        "reason": "FieldValueRequired",
    },
)
