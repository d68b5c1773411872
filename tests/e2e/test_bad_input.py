"""Each wrong input gets a message that names the field and the cure, and recovers once it is put right."""

import asyncio
import hashlib
import json
import secrets

import pytest

from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.servers import Servers, condition, has_error, status

QUICK = {"backoffSeconds": [1], "maxRetries": 1, "retryAfterErrorSeconds": 0}


@pytest.mark.parametrize(
    "spec",
    [{}, {"image": "example.test/image:1", "command": [""]}, {"command": []}, {"command": [""]}],
    ids=["nothing", "an image and an empty program", "empty command", "empty program"],
)
async def test_a_spec_without_a_command_is_refused_with_the_field_and_an_example(
    servers: Servers, spec: k.Json
) -> None:
    manifest = {**manifests.mcpserver("no-command"), "spec": spec}
    with pytest.raises(k.ApiError) as refusal:
        await servers.kube.apply(k.MCPSERVERS, servers.namespace, manifest)
    assert "spec.command is required" in refusal.value.message
    assert "uvx" in refusal.value.message


async def test_a_resource_without_a_spec_is_refused(servers: Servers) -> None:
    manifest = manifests.mcpserver("no-spec")
    del manifest["spec"]
    with pytest.raises(k.ApiError, match=r"spec"):
        await servers.kube.apply(k.MCPSERVERS, servers.namespace, manifest)


async def test_an_unknown_field_is_refused_by_name(servers: Servers, namespace: str) -> None:
    manifest = manifests.mcpserver("typo", comand=["x"])
    with pytest.raises(k.ApiError, match="comand"):
        await servers.kube.apply(k.MCPSERVERS, namespace, manifest)
    done = await asyncio.to_thread(
        node.kubectl, "-n", namespace, "apply", "-f", "-", text_in=json.dumps(manifest), check=False
    )
    assert done.returncode
    assert "spec.comand" in done.stderr


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"session": {"callTimeoutSeconds": 0}}, "spec.session.callTimeoutSeconds"),
        ({"recovery": {"backoffSeconds": []}}, "spec.recovery.backoffSeconds"),
        ({"auth": {"type": "None", "bearer": {"secretRef": {"name": "x"}}}}, "spec.auth"),
        ({"volumes": [{"name": "bridge", "emptyDir": {}}]}, "spec.volumes"),
        ({"session": {"maxProcesses": 2}}, "spec.session.maxProcesses"),
        ({"session": {"mode": "PerClient", "maxClients": 2}}, "spec.session.maxClients"),
        ({"session": {"mode": "PerClient", "onServerRestart": "Resume"}}, "spec.session.onServerRestart"),
        ({"tools": {"overrides": [{"name": "a"}]}}, "spec.tools.overrides"),
        (
            {"tools": {"overrides": [{"name": "a", "rename": "c"}, {"name": "b", "rename": "c"}]}},
            "spec.tools.overrides",
        ),
        (
            {"tools": {"overrides": [{"name": "a", "rename": "b"}, {"name": "b", "title": "B"}]}},
            "spec.tools.overrides",
        ),
        ({"volumeMounts": [{"name": "x", "mountPath": "/bridge/x"}]}, "spec.volumeMounts"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_value_out_of_bounds_is_refused_with_its_field(
    servers: Servers, spec: k.Json, field: str
) -> None:
    with pytest.raises(k.ApiError) as refusal:
        await servers.kube.apply(k.MCPSERVERS, servers.namespace, manifests.mcpserver("bounds", **spec))
    assert refusal.value.status == 422
    assert field in refusal.value.message


async def test_a_command_that_the_image_lacks_is_named(servers: Servers) -> None:
    server = await servers.apply("no-program", ("no-such-program",), recovery=QUICK)
    item = await server.failed()
    error = status(item, "error")
    assert (error["phase"], error["reason"]) == ("ProcessStart", "CommandNotFound")
    assert "no-such-program" in error["message"]
    assert "spec.command" in error["message"]
    assert error["exitCode"] == 127


async def test_an_image_that_cannot_be_pulled_is_pending_until_it_can(servers: Servers) -> None:
    image = f"localhost/absent-{secrets.token_hex(4)}:1"
    server = await servers.apply("no-image", image=image)
    item = await server.until(
        lambda o: condition(o, "Available").get("reason") == "ImagePullFailed", what="reason ImagePullFailed"
    )
    assert status(item, "phase") == "Pending"
    assert status(item, "error", "phase") == "ImagePull"
    assert image in status(item, "error", "message")
    assert "spec.image" in status(item, "error", "message")
    assert status(item, "address") is None

    node.tag_image(manifests.test_image(), image)
    try:
        item = await server.ready(within=60)
    finally:
        node.remove_image(image)
    assert status(item, "recovery", "restarts") == 0
    assert status(item, "recovery", "consecutiveFailures") == 0
    assert status(item, "session", "epoch") == 1


async def test_a_missing_secret_is_named_and_its_coming_is_noticed(servers: Servers) -> None:
    name = "late-secret"
    env = [{"name": "FOO", "valueFrom": {"secretKeyRef": {"name": name, "key": "foo"}}}]
    server = await servers.apply("needs-secret", (*manifests.RAW, "--require", "FOO"), env=env)
    item = await server.until(
        lambda o: condition(o, "Accepted").get("reason") == "SecretNotFound", what="reason SecretNotFound"
    )
    assert name in condition(item, "Accepted")["message"]
    assert "spec.env" in condition(item, "Accepted")["message"]
    assert status(item, "phase") == "Pending"
    assert status(item, "recovery", "consecutiveFailures") == 0

    await servers.kube.apply(k.SECRETS, servers.namespace, manifests.secret(name, other="x"))
    item = await server.until(
        lambda o: condition(o, "Accepted").get("reason") == "SecretKeyNotFound",
        what="reason SecretKeyNotFound",
    )
    assert "foo" in condition(item, "Accepted")["message"]

    value = secrets.token_hex(16)
    await servers.kube.apply(k.SECRETS, servers.namespace, manifests.secret(name, foo=value))
    item = await server.ready()
    assert status(item, "recovery", "consecutiveFailures") == 0
    client = await server.client()
    assert await client.call("secret", name="FOO") == hashlib.sha256(value.encode()).hexdigest()
    everything = [item, await server.pod(), *(await server.children(k.SERVICES))]
    assert value not in json.dumps(everything)


async def test_a_changed_secret_means_a_new_pod_with_the_new_value(servers: Servers) -> None:
    await servers.kube.apply(k.SECRETS, servers.namespace, manifests.secret("rotated", foo="first value"))
    env = [{"name": "FOO", "valueFrom": {"secretKeyRef": {"name": "rotated", "key": "foo"}}}]
    server = await servers.ready("rotating", env=env)
    await servers.kube.apply(k.SECRETS, servers.namespace, manifests.secret("rotated", foo="second value"))
    await server.until(lambda o: status(o, "session", "epoch") == 2, what="second pod")
    await server.ready()
    client = await server.client()
    assert await client.call("secret", name="FOO") == hashlib.sha256(b"second value").hexdigest()


async def test_a_server_that_speaks_no_json_ends_in_error_with_its_words(servers: Servers) -> None:
    server = await servers.apply(
        # Long enough to have written something by then, on a busy node too.
        "prose",
        (*manifests.BROKEN, "chatter"),
        session={"startupTimeoutSeconds": 6},
        recovery=QUICK | {"maxRetries": 0},
    )
    item = await server.failed()
    error = status(item, "error")
    assert error["phase"] == "Initialize"
    assert "writes to stdout what is no JSON-RPC" in error["message"]


async def test_a_server_that_refuses_initialize_ends_in_error_with_its_words(servers: Servers) -> None:
    server = await servers.apply("refusing", (*manifests.BROKEN, "refuses"), recovery=QUICK)
    item = await server.failed()
    error = status(item, "error")
    assert (error["phase"], error["reason"]) == ("Initialize", "InitializeFailed")
    assert "licence expired" in error["message"]


async def test_a_pod_that_no_node_can_take_tells_the_schedulers_words(servers: Servers) -> None:
    greedy = {"requests": {"cpu": "1000"}, "limits": {"cpu": "1000", "memory": "64Mi"}}
    server = await servers.apply("greedy", resources=greedy)
    item = await server.until(
        lambda o: condition(o, "Available").get("reason") == "Unschedulable", what="reason Unschedulable"
    )
    assert "Insufficient cpu" in condition(item, "Available")["message"]
    assert status(item, "phase") == "Pending"
    await server.patch(resources=manifests.SMALL)
    await server.ready()


ROOT = {"runAsUser": 0}


async def test_a_root_user_is_refused_by_admission_and_told(servers: Servers) -> None:
    server = await servers.apply("root", recovery=QUICK, podSecurityContext=ROOT)
    item = await server.until(has_error("AdmissionRefused"), what="reason AdmissionRefused")
    assert "runAsUser=0" in status(item, "error", "message")


async def test_a_root_user_that_admission_lets_in_is_refused_by_the_node_and_told(
    kube: k.Kube, fresh_namespace: str
) -> None:
    admit = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
    await kube.merge(k.NAMESPACES, "", fresh_namespace, admit)
    mine = Servers(kube, fresh_namespace)
    server = await mine.apply("root", podSecurityContext=ROOT)
    item = await server.failed()
    assert status(item, "error", "reason") == "ContainerCreateFailed"
    assert "spec.podSecurityContext.runAsUser" in status(item, "error", "message")
    assert status(item, "recovery", "restarts") == 0
    await mine.close()


def long_names() -> list[str]:
    label = "a" * 63
    dotted = ".".join([label, label, label, "b" * 61])
    return [label, dotted, dotted[:-1] + "c", "a" * 62 + "b", "1.starts-with-a-digit", "dots.in.the.name"]


async def test_every_legal_name_gets_children_of_its_own(servers: Servers) -> None:
    assert len(long_names()[1]) == 253
    made = await asyncio.gather(*(servers.apply(name) for name in long_names()))
    await asyncio.gather(*(server.ready(within=120) for server in made))
    urls = {await server.url() for server in made}
    assert len(urls) == len(made)
    for server in made:
        client = await server.client()
        assert await client.call("echo", text=server.name) == server.name
        for kind in (k.PODS, k.SERVICES, k.SECRETS):
            assert len(await server.children(kind)) == 1


async def test_a_spec_of_300_kib_is_served(servers: Servers) -> None:
    words = [word for number in range(80) for word in ("--mark", f"{number:04}" + "x" * 4092)]
    assert sum(map(len, words)) > 300 * 1024
    server = await servers.ready("wordy", (*manifests.RAW, *words))
    client = await server.client()
    assert await client.call("echo", text="served") == "served"
    await server.patch(suspend=True)
    await server.until(lambda item: status(item, "phase") == "Suspended", what="phase Suspended")


async def test_an_object_of_someone_else_is_left_alone_and_told(servers: Servers) -> None:
    first = await servers.ready("taken")
    service = (await first.only_child(k.SERVICES))["metadata"]["name"]
    await first.delete()
    await servers.kube.gone(k.SERVICES, servers.namespace, service)
    foreign = manifests.service(service, 1234)
    await servers.kube.apply(k.SERVICES, servers.namespace, foreign)
    second = await servers.apply("taken")
    item = await second.until(
        lambda o: condition(o, "Accepted").get("reason") == "OwnershipConflict",
        what="reason OwnershipConflict",
    )
    assert service in condition(item, "Accepted")["message"]
    kept = await servers.kube.get(k.SERVICES, servers.namespace, service)
    assert kept["spec"]["ports"][0]["port"] == 1234
    await servers.kube.delete(k.SERVICES, servers.namespace, service)
    await second.ready(within=90)  # it is looked for every 30 s


async def test_a_quota_that_forbids_the_pod_is_told(servers: Servers, fresh_namespace: str) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}},
    }
    await servers.kube.apply(k.QUOTAS, fresh_namespace, quota)
    # Admission counts by what the controller has written into the status.
    await servers.kube.until(
        k.QUOTAS, fresh_namespace, "none", lambda o: bool(status(o, "hard")), what="quota in force"
    )
    mine = Servers(servers.kube, fresh_namespace)
    server = await mine.apply("no-room", recovery=QUICK)
    item = await server.until(has_error("QuotaExceeded"), what="reason QuotaExceeded")
    assert "exceeded quota" in status(item, "error", "message")
    await servers.kube.delete(k.QUOTAS, fresh_namespace, "none")
    await server.patch(args=["--tools", "1"])
    await server.ready()
    await mine.close()
