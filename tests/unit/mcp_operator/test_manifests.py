"""The objects that belong to an MCPServer, property by property."""

import json
from typing import Any

import pytest

from mcp_operator.core import naming
from mcp_operator.core.api import RESTART_ANNOTATION, MCPServerSpec
from mcp_operator.manifests import (
    environment,
    identity,
    merge,
    pod,
    references,
    secret,
    service,
    volumes,
)
from mcp_operator.manifests.identity import Owner
from mcp_operator.settings import Settings

OWNER = Owner("time", "default", "uid-1")
SETTINGS = Settings(relay_image="relay:1", runtime_image="runtime:1", image_pull_policy="IfNotPresent")
Json = dict[str, Any]


def spec(**fields: Any) -> MCPServerSpec:
    return MCPServerSpec.parse({"command": ["uvx", "mcp-server-time"], "args": ["--tz", "UTC"], **fields})


def built(**fields: Any) -> Json:
    return pod.build(pod.template(OWNER, spec(**fields), SETTINGS), OWNER, 3, "a.b", {"the spec": "a"})


def server(**fields: Any) -> Json:
    found: Json = built(**fields)["spec"]["containers"][0]
    return found


def relay(**fields: Any) -> Json:
    found: Json = built(**fields)["spec"]["initContainers"][0]
    return found


def mounts(container: Json) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}


def test_the_pod_is_ours_numbered_and_never_restarted() -> None:
    made = built()
    meta = made["metadata"]
    assert meta["name"] == "mcp-time-3"
    assert meta["labels"][naming.SERVER] == "time"
    assert meta["labels"][naming.EPOCH] == "3"
    assert meta["annotations"][naming.CONFIG_HASH] == "a.b"
    assert identity.owned(made, OWNER)
    assert meta["ownerReferences"][0]["blockOwnerDeletion"] is True
    assert made["spec"]["restartPolicy"] == "Never"
    assert made["spec"]["automountServiceAccountToken"] is False
    assert made["spec"]["enableServiceLinks"] is False
    assert made["spec"]["terminationGracePeriodSeconds"] == 15


def test_the_server_runs_under_the_launcher_and_the_relay_starts_first() -> None:
    command = server()["command"]
    assert command[:2] == ["/bridge/launcher", "run"]
    assert command[command.index("--") + 1 :] == ["uvx", "mcp-server-time"]
    assert server()["args"] == ["--tz", "UTC"]
    assert command[command.index("--max-line-bytes") + 1] == "16777216"
    assert server()["terminationMessagePolicy"] == "File"
    assert relay()["restartPolicy"] == "Always"
    assert relay()["lifecycle"]["postStart"]["exec"]["command"] == [
        "/usr/local/bin/mcp-launcher", "install", "/bridge/launcher",
    ]  # fmt: skip
    assert not {"startupProbe", "readinessProbe"} & set(relay())


def test_the_relay_learns_which_host_names_lead_to_it() -> None:
    def hosts(**session: Any) -> str:
        environment = {item["name"]: item["value"] for item in relay(session=session)["env"]}
        return str(environment["MCP_RELAY_ALLOWED_HOSTS"])

    own = "mcp-time,mcp-time.default,mcp-time.default.svc,mcp-time.default.svc.*"
    assert hosts() == own
    assert hosts(allowedHosts=["mcp.example.com", "*.corp"]) == f"{own},mcp.example.com,*.corp"


def test_the_relay_learns_how_to_speak_with_the_server_and_what_it_may_offer() -> None:
    def told(**session: Any) -> tuple[str, str]:
        environment = {item["name"]: item["value"] for item in relay(session=session)["env"]}
        return environment["MCP_RELAY_PROTOCOL"], environment["MCP_RELAY_CLIENT_CAPABILITIES"]

    assert told() == ("Auto", "")
    chosen = {"protocol": "Modern", "clientCapabilities": ["roots", "sampling"]}
    assert told(**chosen) == ("Modern", "roots,sampling")


def test_the_relay_learns_which_tools_are_for_clients_and_nothing_where_all_are() -> None:
    told = {item["name"]: item["value"] for item in relay(tools={"allow": ["a*"], "deny": ["b", "c"]})["env"]}
    assert json.loads(told["MCP_RELAY_TOOLS_ALLOW"]) == ["a*"]
    assert json.loads(told["MCP_RELAY_TOOLS_DENY"]) == ["b", "c"]
    assert [item for item in relay()["env"] if "TOOLS" in item["name"]] == []
    overrides = [{"name": "a", "rename": "b"}, {"name": "c", "title": "C", "description": ""}]
    told = {item["name"]: item["value"] for item in relay(tools={"overrides": overrides})["env"]}
    assert json.loads(told["MCP_RELAY_TOOLS_OVERRIDES"]) == overrides


@pytest.mark.parametrize(
    ("wanted", "limits", "flag"),
    [
        (None, None, str(256 << 20)),
        (None, {"memory": "1Gi"}, str(512 << 20)),
        ("128Mi", None, str(128 << 20)),
        (100_000_000, {"memory": "200M"}, "100000000"),
        ("0.5Gi", {"memory": "1Gi"}, str(512 << 20)),
        ("512Mi", None, None),
        ("1Gi", {"memory": "1024Mi"}, None),
    ],
)
def test_each_process_may_hold_what_is_named_or_half_of_the_containers_memory(
    wanted: Any, limits: Any, flag: str | None
) -> None:
    session = {"mode": "PerClient"} | ({} if wanted is None else {"processMemoryLimit": wanted})
    words = server(session=session, resources={"limits": limits} if limits else None)["command"]
    flags = words[: words.index("--")]
    assert (flags[flags.index("--memory-limit") + 1] if "--memory-limit" in flags else None) == flag


def test_one_process_for_all_has_the_containers_limit_alone() -> None:
    assert "--memory-limit" not in server()["command"]


def test_a_process_for_each_client_is_told_to_launcher_and_relay_and_nothing_where_they_share_one() -> None:
    session = {"mode": "PerClient", "maxProcesses": 7}
    words = server(session=session)["command"]
    flags = words[: words.index("--")]
    assert flags[flags.index("--control") :][:4] == [
        "--control",
        "/bridge/control.sock",
        "--max-processes",
        "7",
    ]
    told = {item["name"]: item["value"] for item in relay(session=session)["env"]}
    assert (told["MCP_RELAY_SESSION_MODE"], told["MCP_RELAY_MAX_PROCESSES"]) == ("PerClient", "7")
    assert "--control" not in server()["command"]
    assert [item for item in relay()["env"] if item["name"].endswith(("_MODE", "_PROCESSES"))] == []


def test_the_relay_learns_limits_and_audit_and_nothing_where_there_are_none() -> None:
    names = {"MCP_RELAY_CALLS_PER_MINUTE", "MCP_RELAY_CALL_BURST", "MCP_RELAY_CONCURRENT_CALLS"}
    limits = {"callsPerMinute": 60, "burst": 5, "concurrentCalls": 2}
    environment = relay(session={"limits": limits, "audit": "Calls"})["env"]
    told = {item["name"]: item["value"] for item in environment}
    assert {told[name] for name in names} == {"60", "5", "2"}
    assert told["MCP_RELAY_AUDIT"] == "Calls"
    assert {item["name"] for item in relay()["env"]} & {*names, "MCP_RELAY_AUDIT"} == set()


def test_the_default_image_is_the_runtime_and_the_users_wins() -> None:
    assert (server()["image"], server()["imagePullPolicy"]) == ("runtime:1", "IfNotPresent")
    assert server(image="mine:1")["image"] == "mine:1"
    assert "imagePullPolicy" not in server(image="mine:1")
    assert server(image="mine:1", imagePullPolicy="Always")["imagePullPolicy"] == "Always"


def test_every_container_passes_pod_security_restricted_by_default() -> None:
    assert built()["spec"]["securityContext"]["runAsNonRoot"] is True
    assert built()["spec"]["securityContext"]["fsGroup"] == 3000
    for container, user in ((server(), 2000), (relay(), 1000)):
        context = container["securityContext"]
        assert (context["runAsUser"], context["runAsGroup"]) == (user, 3000)
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}


def test_a_user_id_for_the_pod_reaches_the_server_and_never_the_relay() -> None:
    fields: Json = {"podSecurityContext": {"runAsUser": 5000, "supplementalGroups": [7]}}
    assert server(**fields)["securityContext"]["runAsUser"] == 5000
    assert relay(**fields)["securityContext"]["runAsUser"] == 1000
    assert built(**fields)["spec"]["securityContext"]["supplementalGroups"] == [7]
    fields["securityContext"] = {
        "runAsUser": 6000,
        "readOnlyRootFilesystem": False,
        "capabilities": {"add": ["X"]},
    }
    context = server(**fields)["securityContext"]
    assert (context["runAsUser"], context["readOnlyRootFilesystem"]) == (6000, False)
    assert context["capabilities"] == {"drop": ["ALL"], "add": ["X"]}


def test_the_server_sees_neither_the_relays_state_nor_its_secrets() -> None:
    assert set(mounts(server()).values()) == {"bridge", "home", "tmp"}
    assert set(mounts(relay())) == {"/bridge", "/state", "/secrets"}


def test_every_writable_volume_has_a_size() -> None:
    for volume in built()["spec"]["volumes"]:
        if "emptyDir" in volume:
            assert volume["emptyDir"]["sizeLimit"]


def test_the_users_volumes_come_along_and_their_mounts_replace_ours() -> None:
    made = built(
        volumes=[{"name": "data", "emptyDir": {}}], volumeMounts=[{"name": "data", "mountPath": "/home/mcp/"}]
    )
    assert [volume["name"] for volume in made["spec"]["volumes"]][-1] == "data"
    assert mounts(made["spec"]["containers"][0]) == {
        "/bridge": "bridge", volumes.TMP_DIR: "tmp", "/home/mcp/": "data",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cache", "volume"), [({"claimName": "packages"}, "package-cache"), ({"volumeName": "mine"}, "mine")]
)
def test_downloads_are_kept_on_the_volume_that_is_named(cache: Json, volume: str) -> None:
    made = built(volumes=[{"name": "mine", "emptyDir": {}}], cache=cache)
    container = made["spec"]["containers"][0]
    assert mounts(container)["/cache"] == volume
    claims = {item["name"]: item.get("persistentVolumeClaim") for item in made["spec"]["volumes"]}
    assert claims.get("package-cache") == ({"claimName": "packages"} if "claimName" in cache else None)
    found = {item["name"]: item["value"] for item in container["env"]}
    assert (found["npm_config_cache"], found["UV_CACHE_DIR"]) == ("/cache/npm", "/cache/uv")
    assert (found["HOME"], found["npm_config_prefer_offline"]) == ("/home/mcp", "true")
    assert "npm_config_prefer_offline" in environment.plain_names(spec(cache=cache))


def test_tools_find_writable_places_and_the_users_variables_win() -> None:
    found = {
        item["name"]: item.get("value") for item in server(env=[{"name": "HOME", "value": "/data"}])["env"]
    }
    assert found["HOME"] == "/data"
    assert found["npm_config_cache"].startswith("/home/mcp")
    assert found["UV_CACHE_DIR"].startswith("/home/mcp")


@pytest.mark.parametrize(
    ("session", "told"),
    [
        ({}, {}),
        ({"maxCallSeconds": 0, "onServerRestart": "Resume"}, {}),
        ({"maxCallSeconds": 600}, {"MCP_RELAY_MAX_CALL_SECONDS": "600"}),
        ({"onServerRestart": "Expire"}, {"MCP_RELAY_ON_SERVER_RESTART": "Expire"}),
    ],
)
def test_the_relay_is_told_what_is_no_default(session: Json, told: Json) -> None:
    found = {item["name"]: item["value"] for item in relay(session=session)["env"]}
    names = {"MCP_RELAY_MAX_CALL_SECONDS", "MCP_RELAY_ON_SERVER_RESTART"}
    assert {name: found[name] for name in names & found.keys()} == told


def test_only_values_that_stand_in_the_resource_are_shown_in_stderr() -> None:
    names = environment.plain_names(
        spec(
            env=[
                {"name": "LEVEL", "value": "info"},
                {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                {"name": "URL", "value": "http://$(KEY)@host"},
                {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "HOME", "valueFrom": {"secretKeyRef": {"name": "s", "key": "h"}}},
            ]
        )
    )
    assert {"LEVEL", "NODE", "PATH"} <= set(names)
    assert not {"KEY", "URL", "HOME"} & set(names)


def test_no_secret_value_stands_in_the_pod() -> None:
    made = json.dumps(built(env=[{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]))
    assert "secretKeyRef" in made
    assert "Authorization" not in made


def test_the_token_of_the_users_secret_replaces_ours() -> None:
    def sources(**fields: Any) -> list[Json]:
        volumes = {volume["name"]: volume for volume in built(**fields)["spec"]["volumes"]}
        assert volumes["secrets"]["projected"]["defaultMode"] == 0o440
        return [source["secret"] for source in volumes["secrets"]["projected"]["sources"]]

    def paths(source: Json) -> list[str]:
        return [item["path"] for item in source["items"]]

    assert [(source["name"], paths(source)) for source in sources()] == [
        ("mcp-time", ["token", "admin-token", "signing-key"])
    ]
    own = sources(auth={"type": "Bearer", "bearer": {"secretRef": {"name": "mine", "key": "t"}}})
    assert [(source["name"], paths(source)) for source in own] == [
        ("mcp-time", ["admin-token", "signing-key"]),
        ("mine", ["token"]),
    ]
    assert [paths(source) for source in sources(auth={"type": "None"})] == [["admin-token", "signing-key"]]


def test_placement_is_passed_on_and_left_out_where_nothing_is_said() -> None:
    assert not {"nodeSelector", "affinity", "runtimeClassName"} & set(built()["spec"])
    made = built(runtimeClassName="gvisor", nodeSelector={"a": "b"}, tolerations=[{"key": "x"}])["spec"]
    assert (made["runtimeClassName"], made["nodeSelector"], made["tolerations"]) == (
        "gvisor", {"a": "b"}, [{"key": "x"}],
    )  # fmt: skip


def test_labels_of_the_pod_template_never_replace_ours() -> None:
    labels = {"team": "x", naming.SERVER: "other"}
    meta = built(podTemplate={"metadata": {"labels": labels}})["metadata"]
    assert meta["labels"]["team"] == "x"
    assert meta["labels"][naming.SERVER] == "time"


def test_the_template_changes_with_the_spec_and_with_the_restart_mark_and_not_by_itself() -> None:
    def digest(restarted: str = "", **fields: Any) -> str:
        return references.plain_digest(pod.template(OWNER, spec(**fields), SETTINGS, restarted))

    assert digest() == digest()
    assert digest() == digest(recovery={"maxRetries": 1})
    assert len({digest(), digest(workingDir="/x"), digest("now"), digest(session={"maxClients": 2})}) == 4
    assert RESTART_ANNOTATION in pod.template(OWNER, spec(), SETTINGS, "now")["metadata"]["annotations"]


def test_the_service_selects_by_our_label_and_listens_on_80() -> None:
    made = service.build(OWNER)
    assert made["metadata"]["name"] == "mcp-time"
    assert made["spec"]["selector"] == {naming.SERVER: "time"}
    assert [(port["port"], port["targetPort"]) for port in made["spec"]["ports"]] == [(80, 8080)]


def test_existing_values_of_the_secret_are_kept_and_missing_ones_filled() -> None:
    fresh = {key: f"new {key}".encode() for key in secret.KEYS}
    first = secret.build(OWNER, secret.filled(None, secret.KEYS, lambda: fresh))
    assert secret.values(first) == fresh
    first["data"]["token"] = "b2xk"
    first["data"]["signing-key"] = ""
    assert secret.filled(first, secret.KEYS, lambda: fresh) == {
        "token": b"old", "admin-token": b"new admin-token", "signing-key": b"new signing-key",
    }  # fmt: skip


def test_owners_are_told_apart_by_uid_and_recognised_by_kind() -> None:
    made = service.build(OWNER)
    assert identity.owner_key(made) == ("default", "time")
    assert not identity.owned(made, Owner("time", "default", "uid-2"))
    foreign = {
        "metadata": {"ownerReferences": [{"kind": "MCPServer", "apiVersion": "other/v1", "controller": True}]}
    }
    assert identity.owner_key(foreign) is None
    assert identity.owner_key({}) is None


def test_merging_keeps_what_only_one_side_names() -> None:
    assert merge.merge({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"c": 3}, "d": [2], "e": 4}) == {
        "a": {"b": 1, "c": 3}, "d": [2], "e": 4,
    }  # fmt: skip
    assert merge.merge({"a": 1}, None) == {"a": 1}


@pytest.mark.parametrize(
    ("actual", "wanted", "there"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": 1}, {"b": 1}, False),
        (None, {"a": 1}, False),
        ({"a": {"b": {}}}, {"a": {"b": {}, "c": [], "d": {}}}, True),
        ({"a": [1]}, {"a": []}, False),
    ],
)
def test_drift_is_what_is_wanted_and_not_there(actual: Any, wanted: Any, there: bool) -> None:
    assert merge.contains(actual, wanted) is there


@pytest.mark.parametrize(
    ("auth", "keys"),
    [
        ({}, {"token", "admin-token", "signing-key"}),
        ({"type": "None"}, {"admin-token", "signing-key"}),
        ({"bearer": {"secretRef": {"name": "mine"}}}, {"admin-token", "signing-key"}),
    ],
)
def test_the_secret_holds_no_token_that_opens_nothing(auth: Json, keys: set[str]) -> None:
    fresh = dict.fromkeys(secret.KEYS, b"new")
    made = secret.build(OWNER, secret.filled(None, secret.keys(spec(auth=auth)), lambda: fresh))
    assert set(made["data"]) == keys
    projected = pod.template(OWNER, spec(auth=auth), SETTINGS)["spec"]["volumes"][2]["projected"]["sources"]
    mounted = {item["key"] for item in projected[0]["secret"]["items"]}
    assert mounted == keys
