"""The API server's word on the CRD: every rule is provoked, usual pod settings pass, explain reads well."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from clusterkit import kube as k
from clusterkit import node
from clusterkit.servers import Servers
from crdgen import crd
from mcp_operator.core.api import (
    ConditionStatus,
    ConditionType,
    ErrorPhase,
    MCPServerStatus,
    Phase,
    RecoveryAction,
)
from mcp_operator.core.api.status import (
    Address,
    Condition,
    RecoveryStatus,
    ServerError,
    ServerInfo,
    SessionStatus,
    Tool,
)

Spec = dict[str, Any]

COMMAND: Spec = {"command": ["uvx", "mcp-server-time"]}
DATA: Spec = {"volumes": [{"name": "data", "emptyDir": {}}]}

REMOTE: Spec = {"url": "https://mcp.example.com/mcp"}
KEY: Spec = {"name": "s", "key": "k"}
# Fields about a process of the cluster, each with a value that is fine for one.
PROCESS: Spec = {
    "image": "example.test/server:1",
    "imagePullPolicy": "Always",
    "command": ["x"],
    "args": ["x"],
    "workingDir": "/x",
    "env": [{"name": "A", "value": "x"}],
    "envFrom": [{"secretRef": {"name": "s"}}],
    "resources": {"limits": {"memory": "1Gi"}},
    "volumes": [{"name": "data", "emptyDir": {}}],
    "volumeMounts": [{"name": "data", "mountPath": "/x"}],
    "securityContext": {"runAsUser": 5},
    "cache": {"claimName": "a"},
}
DATA_OF: Spec = {"volumeMounts": DATA}

# What is wrong, and words of the answer. Together they provoke every rule of the definition.
REFUSED: dict[str, tuple[Spec, str]] = {
    "no command": ({"command": []}, "spec.command is required"),
    "both value and reference": (
        {"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
        "spec.env: an entry has either value or valueFrom",
    ),
    "a value in the name": ({"env": [{"name": "A=B"}]}, "spec.env: a name is empty or has a '='"),
    "memory request above its limit": (
        {"resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "512Mi"}}},
        "spec.resources: a request is above its limit",
    ),
    "CPU request above its limit": (
        {"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}},
        "spec.resources: a request is above its limit",
    ),
    "reserved volume": ({"volumes": [{"name": "home", "emptyDir": {}}]}, "spec.volumes: the names bridge"),
    "two caches": ({"cache": {"claimName": "a", "volumeName": "b"}}, "spec.cache needs either"),
    "cache of an unknown volume": (
        DATA | {"cache": {"volumeName": "other"}},
        "spec.cache.volumeName is not the name of a volume",
    ),
    "mount on the cache": (
        DATA | {"cache": {"claimName": "a"}, "volumeMounts": [{"name": "data", "mountPath": "/cache/x"}]},
        "spec.volumeMounts: with spec.cache /cache is taken",
    ),
    "mount on the bridge": (
        DATA | {"volumeMounts": [{"name": "data", "mountPath": "//bridge"}]},
        "spec.volumeMounts: /bridge belongs",
    ),
    "mount of an unknown volume": (
        {"volumeMounts": [{"name": "secrets", "mountPath": "/x"}]},
        "spec.volumeMounts: a name is not that of a volume",
    ),
    "label of the operator": (
        {"podTemplate": {"metadata": {"labels": {"app.kubernetes.io/name": "x"}}}},
        "spec.podTemplate.metadata.labels: the prefixes",
    ),
    "annotation of the operator": (
        {"podTemplate": {"metadata": {"annotations": {"mcp-session.dev/epoch": "9"}}}},
        "spec.podTemplate.metadata.annotations: the prefixes",
    ),
    "token without bearer": (
        {"auth": {"type": "None", "bearer": {"secretRef": {"name": "x"}}}},
        "spec.auth.bearer only works with type Bearer",
    ),
    "issuer without JWT": (
        {"auth": {"jwt": {"issuer": "https://issuer.example.com", "audiences": ["mcp"]}}},
        "spec.auth.jwt only works with type JWT",
    ),
    "JWT without issuer": ({"auth": {"type": "JWT"}}, "spec.auth.type JWT needs spec.auth.jwt"),
    "a shared secret as algorithm": (
        {
            "auth": {
                "type": "JWT",
                "jwt": {"issuer": "https://i.example", "audiences": ["a"], "algorithms": ["HS256"]},
            }
        },
        "spec.auth.jwt.algorithms[0]: Unsupported value",
    ),
    "issuer without TLS": (
        {"auth": {"type": "JWT", "jwt": {"issuer": "http://i.example", "audiences": ["a"]}}},
        "spec.auth.jwt.issuer",
    ),
    "unknown field": ({"comand": ["x"]}, 'unknown field "spec.comand"'),
    "unknown nested field": (
        {"volumes": [{"name": "x", "emptyDir": {"foo": 1}}]},
        'unknown field "spec.volumes[0].emptyDir.foo"',
    ),
    **{
        f"{field} of a remote server": (
            {"remote": REMOTE, "command": None, **DATA_OF.get(field, {}), field: value},
            f"spec.{field} is about a server that is run here",
        )
        for field, value in PROCESS.items()
    },
    "remote server cut off": (
        {"remote": REMOTE, "command": None, "network": {"egress": "None"}},
        "spec.network.egress None cuts the relay off",
    ),
    "remote server without a scheme": (
        {"remote": {"url": "x.example/mcp"}, "command": None},
        "spec.remote.url: write http:// or https://, host and path",
    ),
    "processes of a remote server": (
        {"remote": REMOTE, "command": None, "session": {"mode": "PerClient"}},
        "spec.session.mode PerClient is about processes run here",
    ),
    "header from nowhere": (
        {"remote": REMOTE | {"headersFrom": [{"name": "X-Key"}]}, "command": None},
        "spec.remote.headersFrom: set either",
    ),
    "header of the relay": (
        {"remote": REMOTE | {"headersFrom": [{"name": "Host", "secretKeyRef": KEY}]}, "command": None},
        "spec.remote.headersFrom: the relay writes this header itself",
    ),
    "authority from nowhere": (
        {"remote": REMOTE | {"caBundleFrom": {}}, "command": None},
        "spec.remote.caBundleFrom: set either",
    ),
    "processes in shared mode": (
        {"session": {"maxProcesses": 2}},
        "spec.session.maxProcesses belongs to mode PerClient",
    ),
    "limit of processes in shared mode": (
        {"session": {"processMemoryLimit": "64Mi"}},
        "spec.session.processMemoryLimit belongs to mode PerClient",
    ),
    "limit of a process in thousandths": (
        {"session": {"mode": "PerClient", "processMemoryLimit": "128m"}},
        "spec.session.processMemoryLimit is below 1Mi",
    ),
    "limit of a process above the default of the container": (
        {"session": {"mode": "PerClient", "processMemoryLimit": "513Mi"}},
        "spec.session.processMemoryLimit is above spec.resources.limits.memory",
    ),
    "limit of a process above the container's": (
        {
            "session": {"mode": "PerClient", "processMemoryLimit": 300_000_000},
            "resources": {"limits": {"memory": "256Mi"}},
        },
        "spec.session.processMemoryLimit is above spec.resources.limits.memory",
    ),
    "limit of a process that is no quantity": (
        {"session": {"mode": "PerClient", "processMemoryLimit": "lots"}},
        "spec.session.processMemoryLimit",
    ),
    "clients in mode PerClient": (
        {"session": {"mode": "PerClient", "maxClients": 2}},
        "spec.session.maxClients belongs to mode Shared",
    ),
    "sessions that outlive their process": (
        {"session": {"mode": "PerClient", "onServerRestart": "Resume"}},
        "spec.session.onServerRestart: with PerClient a session ends",
    ),
    "burst without a rate": (
        {"session": {"limits": {"burst": 2}}},
        "spec.session.limits.burst needs callsPerMinute",
    ),
    "two tools of one name": (
        {"tools": {"overrides": [{"name": "a", "rename": "c"}, {"name": "b", "rename": "c"}]}},
        "spec.tools.overrides: two entries give the same name",
    ),
    "override of nothing": (
        {"tools": {"overrides": [{"name": "a"}]}},
        "spec.tools.overrides: an entry changes nothing",
    ),
    "custom network without rules": (
        {"network": {"egress": "Custom"}},
        "spec.network.egressRules belongs to egress Custom",
    ),
    "wrong word": ({"imagePullPolicy": "Sometimes"}, "spec.imagePullPolicy"),
    "too many items": ({"recovery": {"backoffSeconds": [1] * 11}}, "spec.recovery.backoffSeconds: Too many"),
    "out of bounds": ({"recovery": {"maxRetries": 11}}, "spec.recovery.maxRetries"),
    "no quantity": ({"resources": {"limits": {"memory": "lots"}}}, "spec.resources.limits.memory"),
    "one name twice": ({"env": [{"name": "A"}, {"name": "A"}]}, "spec.env[1]: Duplicate value"),
}

FULL: Spec = {
    "image": "example.test/server@sha256:" + "0" * 64,
    "imagePullSecrets": [{"name": "registry"}],
    "args": ["--verbose"],
    "workingDir": "/app",
    "env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}}],
    "envFrom": [{"prefix": "X_", "configMapRef": {"name": "c"}}],
    "resources": {"requests": {"cpu": 1}, "limits": {"memory": "128Mi", "ephemeral-storage": "1Gi"}},
    "volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "d"}},
        {"name": "both", "projected": {"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "c"}}]}},
    ],
    "volumeMounts": [{"name": "data", "mountPath": "/bridges", "subPath": "x"}],
    "runtimeClassName": "gvisor",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"operator": "Exists"}, {"key": "a", "effect": "NoExecute", "tolerationSeconds": 5}],
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {}}},
                }
            ]
        }
    },
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "podSecurityContext": {"fsGroup": 1, "seccompProfile": {"type": "RuntimeDefault"}},
    "securityContext": {"runAsUser": 5, "capabilities": {"drop": ["ALL"]}},
    "podTemplate": {"metadata": {"labels": {"team": "x"}, "annotations": {"example.test/a": "b"}}},
    "suspend": True,
}


def _try(spec: Spec | None) -> tuple[bool, str]:
    """What the API server says to this spec, without keeping it: accepted or not, and its words."""
    manifest: Spec = {
        "apiVersion": "mcp-session.dev/v1alpha1",
        "kind": "MCPServer",
        "metadata": {"name": "x"},
    }
    manifest |= {} if spec is None else {"spec": spec}
    done = node.kubectl(
        "-n",
        "default",
        "create",
        "--dry-run=server",
        "--validate=strict",
        "-o",
        "json",
        "-f",
        "-",
        text_in=json.dumps(manifest),
        check=False,
    )
    return done.returncode == 0, done.stdout + done.stderr


def _rules(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from (rule["message"] for rule in schema.get("x-kubernetes-validations", ()))
        schema = list(schema.values())
    for value in schema if isinstance(schema, list) else ():
        yield from _rules(value)


@pytest.mark.parametrize(("wrong", "words"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_spec_is_refused_with_field_and_cure(cluster: str, wrong: Spec, words: str) -> None:
    accepted, answer = _try({name: value for name, value in (COMMAND | wrong).items() if value is not None})
    assert not accepted
    assert words in answer


def test_what_is_no_quantity_is_told_by_its_field_alone(cluster: str) -> None:
    session = {"mode": "PerClient", "processMemoryLimit": "lots"}
    _, answer = _try(COMMAND | {"session": session})
    assert "evaluating rule" not in answer


def test_a_missing_spec_is_told_to_write_a_command(cluster: str) -> None:
    accepted, answer = _try(None)
    assert not accepted
    assert "spec.command is required" in answer


def test_every_rule_of_the_definition_is_provoked_above() -> None:
    provoked = [words for _, words in REFUSED.values()]
    unprovoked = [
        message
        for message in _rules(crd.definition())
        if not any(message.startswith(words) for words in provoked)
    ]
    assert unprovoked == []


def test_usual_pod_settings_are_accepted_and_kept(cluster: str) -> None:
    accepted, answer = _try(COMMAND | FULL)
    assert accepted, answer
    kept = json.loads(answer)["spec"]
    assert {name: kept[name] for name in FULL} == FULL


def test_defaults_are_filled_in_where_they_say_something(cluster: str) -> None:
    accepted, answer = _try(COMMAND)
    assert accepted, answer
    assert set(json.loads(answer)["spec"]) == {"command", "auth", "network", "recovery", "session", "suspend"}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("mcpserver.spec.session", "Default 120, at most 3600"),
        ("mcpsrv.spec.recovery.backoffSeconds", "Default [2, 4, 8]"),
        ("mcpserver.spec.volumes.configMap", "name of the referent"),
        ("mcpserver.status.error", "secret values masked"),
    ],
)
def test_explain_tells_units_and_defaults(cluster: str, path: str, words: str) -> None:
    told = " ".join(node.kubectl("explain", path).stdout.split())
    assert words.lower() in told.lower()


def full_status() -> MCPServerStatus:
    """A status in which every field has a value."""
    now = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
    return MCPServerStatus(
        observed_generation=1,
        phase=Phase.CONNECTED,
        conditions=tuple(
            Condition(
                type=kind, status=ConditionStatus.TRUE, reason="R", message="m", last_transition_time=now,
                observed_generation=1,
            )
            for kind in ConditionType
        ),
        image="image",
        address=Address(url="http://mcp-time.default.svc/mcp"),
        error=ServerError(
            phase=ErrorPhase.PROCESS, reason="R", message="m", exit_code=137, signal="SIGKILL", time=now,
            stderr_tail="one\ntwo",
        ),
        recovery=RecoveryStatus(
            action=RecoveryAction.RECREATE, attempt=1, max_retries=3, next_attempt_time=now, restarts=1,
            reconnects=1, consecutive_failures=1, config_hash="a.b", drops_since=now, failed_epoch=1,
        ),
        session=SessionStatus(
            pod_name="p", pod_uid="u", epoch=1, since=now, clients=1, protocol_version="2025-11-25",
            server_info=ServerInfo(name="n", title="t", version="1"), capabilities=("tools",),
        ),
        tool_count=1,
        tools_digest="sha256:1",
        tools=(Tool(name="n", title="t", description="d"),),
    )  # fmt: skip


async def test_no_field_of_a_status_is_pruned(servers: Servers) -> None:
    server = await servers.apply("told-all", suspend=True)
    told = full_status()
    assert all(getattr(told, name) is not None for name in type(told).model_fields)
    answer = await servers.kube.call(
        "PATCH",
        k.MCPSERVERS.path(servers.namespace, f"{server.name}/status"),
        params={"dryRun": "All", "fieldValidation": "Strict"},
        headers={"content-type": "application/merge-patch+json"},
        content=json.dumps({"status": told.document()}),
    )
    assert {key: answer["status"].get(key) for key in told.document()} == told.document()
