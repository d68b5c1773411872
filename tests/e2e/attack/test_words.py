"""A server whose every word tries to steer who reads it: no status, Event, log, metric or terminal obeys."""

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from clusterkit import haystack, node
from clusterkit import kube as k
from clusterkit.haystack import OPERATOR_NAMESPACE
from clusterkit.leanmcp import McpClient
from clusterkit.servers import Server, Servers, has_error, in_phase, status

STEERING = ("python3", "/servers/steering.py")
# What a terminal obeys and what makes two lines of one; plain line ends and tabs may stand in longer texts.
OBEYED = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
OBJECT_BYTES = 100_000
"""Of an MCPServer with its status; the server says megabytes."""
KEEP = {"maxRetries": 0}


def texts(value: Any) -> Iterator[str]:
    """All texts of an object, its keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (key, *texts(item))
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def obeyed(found: list[str]) -> list[str]:
    return [text[:200] for text in found if OBEYED.search(text)]


def forged(text: str) -> list[str]:
    """Lines that begin as the server would have them begin."""
    return [line for line in text.splitlines() if line.startswith("FORGED")]


async def of_the_cluster(kube: k.Kube, namespace: str) -> list[str]:
    found: list[str] = []
    for kind in (k.MCPSERVERS, k.EVENTS, k.PODS, k.SERVICES):
        for item in await kube.list(kind, namespace):
            assert len(json.dumps(item)) < OBJECT_BYTES, (kind, item["metadata"]["name"])
            # A container's own last words are the node's, not ours; they are in the pod alone.
            item.get("status", {}).pop("containerStatuses", None)
            found += texts(item)
    return found


async def mcpsrv(*words: str) -> str:
    """What the command line shows, both streams."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mcpsrv", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    shown, _ = await process.communicate()
    return shown.decode()


async def test_no_word_of_a_server_steers_who_reads_of_it(servers: Servers, kube: k.Kube) -> None:
    talks = await servers.apply("talks", STEERING)
    speaks = await servers.apply("speaks", (*STEERING, "words"))
    refuses = await servers.apply("refuses", (*STEERING, "refuse"), recovery=KEEP)
    dies = await servers.apply("dies", (*STEERING, "die"), recovery=KEEP)
    item = await talks.ready()
    assert "FORGED" in status(item, "session", "serverInfo", "name")
    await talks.until(lambda found: bool(status(found, "tools")))
    await speaks.ready()
    await refuses.until(in_phase("Error"))
    died = await dies.until(has_error("ProcessExited"))
    assert "all is well" in status(died, "error", "stderrTail"), "the attack itself came through"
    await a_call(talks)
    found = await of_the_cluster(kube, servers.namespace)
    assert any("FORGED" in text for text in found)
    assert obeyed(found) == []
    one_line = [text for text in texts((await talks.get())["status"]) if "\n" in text]
    assert one_line == []
    await shown(servers.namespace)
    await logged(kube, servers.namespace)


async def a_call(server: Server) -> None:
    client: McpClient = await server.client()
    assert "FORGED" in await client.call("say")
    await client.close()


async def shown(namespace: str) -> None:
    """What people look at."""
    looks = ("get mcpservers --output=wide", "describe mcpservers", "describe pods", "get events")
    for words in looks:
        text = node.kubectl(*words.split(), f"--namespace={namespace}").stdout
        assert obeyed([text]) == [], words
    for words in ("list", "tools talks", "tools speaks", "why dies", "why refuses", "call speaks say"):
        text = await mcpsrv(*words.split(), "--namespace", namespace)
        assert obeyed([text]) == [], (words, text[:500])
        assert "Traceback" not in text, (words, text[:500])
        assert words in ("list", "tools talks") or "FORGED" in text, (words, text[:500])
    assert forged(await mcpsrv("list", "--namespace", namespace)) == []


async def logged(kube: k.Kube, namespace: str) -> None:
    """Logs of relays and operator, one line an event; metrics."""
    logs = [
        *(await haystack.logs(kube, namespace, "relay")).values(),
        *(await haystack.logs(kube, OPERATOR_NAMESPACE, "operator")).values(),
    ]
    assert obeyed(logs) == []
    assert [forged(text) for text in logs if forged(text)] == []
    assert max(len(line) for text in logs for line in text.splitlines()) < 20_000
    metrics = await haystack.metrics(kube, namespace)
    assert any("mcp_relay_calls_total" in text for text in metrics.values())
    assert obeyed(list(metrics.values())) == []
    assert [text for text in metrics.values() if forged(text)] == []
