"""A server tells its secrets wherever it can, yet they stand in its environment and their Secret alone."""

import asyncio
import contextlib
import secrets

from clusterkit import haystack, manifests, node
from clusterkit import kube as k
from clusterkit.haystack import OPERATOR_NAMESPACE
from clusterkit.leanmcp import HttpError, McpClient, RpcError
from clusterkit.servers import Servers, has_error, not_ready, status

LEAKY = ("python3", "/servers/leaky.py")


def canary() -> str:
    return f"canary-{secrets.token_urlsafe(24)}"


def where(texts: dict[str, str], values: set[str]) -> list[str]:
    return [name for name, text in texts.items() if any(value in text for value in values)]


async def test_a_canary_is_found_nowhere_outside_its_places(servers: Servers, kube: k.Kube) -> None:
    plain, lines, token = canary(), f"{canary()}\n{canary()}", canary()
    secret = manifests.secret("canaries", CANARY_PLAIN=plain, CANARY_LINES=lines)
    await kube.apply(k.SECRETS, servers.namespace, secret)
    await kube.apply(k.SECRETS, servers.namespace, manifests.secret("canary-token", token=token))
    common = {
        "envFrom": [{"secretRef": {"name": "canaries"}}],
        "auth": {"bearer": {"secretRef": {"name": "canary-token"}}},
    }
    server = await servers.ready("leaky", LEAKY, **common)
    await servers.apply("refusing", (*LEAKY, "initialize"), recovery={"maxRetries": 0}, **common)
    await servers.apply("listless", (*LEAKY, "tools/list"), **common)
    client = McpClient(await server.endpoint(), token)
    await client.connect()
    seen = [await found(kube, servers.namespace)]
    failure = asyncio.create_task(server.until(not_ready))
    await asyncio.sleep(0)
    with contextlib.suppress(RpcError, HttpError):
        await client.call("die")
    await failure
    died = await server.until(has_error("ProcessExited"))
    assert "dying with" in status(died, "error", "stderrTail")
    await servers.made[1].failed()
    await servers.made[2].until(lambda item: "ListTools" in k.summary(item))
    seen.append(await found(kube, servers.namespace))
    values = haystack.forms(plain) | haystack.forms(lines) | haystack.forms(token)
    for texts in seen:
        assert where(texts, values) == []
        assert where(texts, {"mcpservers/leaky"}) == []
        assert len(where(texts, {"leaky"})) > 5, "the search itself finds nothing"
    for value in values:
        assert node.processes(value) == []
    assert haystack.users_of(plain) == {2000}
    assert haystack.users_of(token) == set()


async def found(kube: k.Kube, namespace: str) -> dict[str, str]:
    """Objects of the namespace, metrics, and the logs of relays and operator."""
    return {
        **await haystack.objects(kube, namespace),
        **await haystack.logs(kube, namespace, "relay"),
        **await haystack.metrics(kube, namespace),
        **await haystack.logs(kube, OPERATOR_NAMESPACE, "operator"),
        **await haystack.metrics(kube, OPERATOR_NAMESPACE),
    }
