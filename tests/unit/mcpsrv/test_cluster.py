"""The shell against an API server of a few lines: errors, watches that break, port-forwards."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import WSMsgType, web

from mcpsrv.cluster import access
from mcpsrv.cluster.access import Where
from mcpsrv.cluster.forward import forwarded
from mcpsrv.cluster.kinds import SERVERS
from mcpsrv.cluster.kube import ConflictError, Kube
from mcpsrv.core.errors import AccessError, CliError, ExitCode, NotFoundError, UsageError

Json = dict[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
COLLECTION = SERVERS.path("tools")


def kubeconfig(path: Path, url: str) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "tools"}},
            {"name": "there", "context": {"cluster": "c", "user": "u"}},
        ],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


@asynccontextmanager
async def api(tmp_path: Path, *routes: tuple[str, str, Handler]) -> AsyncIterator[Kube]:
    """A client of an API server with these routes."""
    served = web.Application()
    served.add_routes([web.route(method, path, handler) for method, path, handler in routes])
    runner = web.AppRunner(served)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    file = kubeconfig(tmp_path / "config", f"http://127.0.0.1:{port}")
    configuration, namespace = await access.load(Where(kubeconfig=file))
    kube = Kube(configuration, namespace)
    try:
        yield kube
    finally:
        await kube.close()
        await runner.cleanup()


def answering(status: int, body: Json) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        return web.json_response(body, status=status)

    return handle


@pytest.mark.parametrize(
    ("status", "body", "error", "message"),
    [
        (401, {}, AccessError, "renew the credentials"),
        (403, {"message": "mcpservers is forbidden"}, AccessError, "ask for that right"),
        (403, {"message": "exceeded quota: q"}, CliError, "exceeded quota"),
        (
            404,
            {"message": "the server could not find the requested resource"},
            AccessError,
            "install the operator",
        ),
        (404, {"message": "not found", "details": {"name": "x"}}, NotFoundError, "not found"),
        (409, {"message": "taken"}, ConflictError, "taken"),
        (422, {"message": "spec.command is required"}, UsageError, "spec.command is required"),
        (500, {}, AccessError, "HTTP 500"),
    ],
)
async def test_an_answer_of_the_api_server_becomes_an_error_with_its_exit_code(
    tmp_path: Path, status: int, body: Json, error: type[CliError], message: str
) -> None:
    async with api(tmp_path, ("GET", COLLECTION, answering(status, body))) as kube:
        with pytest.raises(error, match=message):
            await kube.list(SERVERS)


async def test_a_missing_server_is_told_with_the_names_that_come_close(tmp_path: Path) -> None:
    known = {"items": [{"metadata": {"name": "everything"}}]}
    missing = {"message": "not found", "details": {"name": "evrything"}}
    async with api(
        tmp_path,
        ("GET", f"{COLLECTION}/evrything", answering(404, missing)),
        ("GET", COLLECTION, answering(200, known)),
    ) as kube:
        with pytest.raises(NotFoundError, match="in namespace tools: did you mean everything"):
            await kube.get(SERVERS, "evrything")


async def test_a_cluster_that_does_not_answer_is_no_access(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "config", "http://127.0.0.1:9")
    configuration, namespace = await access.load(Where(kubeconfig=file))
    kube = Kube(configuration, namespace)
    with pytest.raises(AccessError, match=r"the cluster at http://127.0.0.1:9 does not answer"):
        await kube.list(SERVERS)
    await kube.close()


@pytest.mark.parametrize(
    ("where", "namespace"),
    [({}, "tools"), ({"namespace": "other"}, "other"), ({"context": "there"}, "default")],
)
async def test_the_namespace_is_the_users_or_the_contexts(
    tmp_path: Path, where: dict[str, str], namespace: str
) -> None:
    file = kubeconfig(tmp_path / "config", "http://127.0.0.1:9")
    assert (await access.load(Where(kubeconfig=file, **where)))[1] == namespace


@pytest.mark.parametrize("text", ["", "- a list", "current-context: gone", "{"])
async def test_a_broken_kubeconfig_is_no_access(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(AccessError, match="cannot be used"):
        await access.load(Where(kubeconfig=str(tmp_path / "config")))


async def test_without_any_kubeconfig_the_cure_is_told(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="set KUBECONFIG, or pass --kubeconfig"):
        await access.load(Where(kubeconfig=str(tmp_path / "nothing")))
    assert AccessError.code is ExitCode.NO_ACCESS


async def test_a_watch_that_breaks_or_is_too_old_is_opened_again(tmp_path: Path) -> None:
    opened = 0

    async def handle(request: web.Request) -> web.StreamResponse:
        nonlocal opened
        if "watch" not in request.query:
            version = {"resourceVersion": str(opened)}
            return web.json_response(
                {"metadata": version, "items": [{"metadata": {"name": f"listed-{opened}"}}]}
            )
        opened += 1
        answer = web.StreamResponse()
        await answer.prepare(request)
        event = {"type": "MODIFIED", "object": {"metadata": {"name": f"watched-{opened}"}}}
        if opened == 2:
            event = {"type": "ERROR", "object": {"code": 410}}
        await answer.write(json.dumps(event).encode() + b"\n")
        return answer

    async with api(tmp_path, ("GET", COLLECTION, handle)) as kube, asyncio.timeout(10):
        names = []
        async for change in kube.changes(SERVERS, []):
            names.append(change.object["metadata"]["name"])
            if len(names) == 5:
                break
    assert names == ["listed-0", "watched-1", "listed-1", "listed-2", "watched-3"]


async def test_an_object_that_does_not_exist_is_gone_at_once(tmp_path: Path) -> None:
    nothing = answering(200, {"metadata": {}, "items": []})
    async with api(tmp_path, ("GET", COLLECTION, nothing)) as kube, asyncio.timeout(10):
        assert (await anext(kube.changes(SERVERS, name="demo"))).gone


def port_forward(error: str = "") -> Handler:
    """A pod's port that answers each message in capitals, as the node's agent frames it."""

    async def handle(request: web.Request) -> web.StreamResponse:
        if "*/*" not in request.headers.get("Accept", "*/*"):
            return web.Response(status=406)
        socket = web.WebSocketResponse(protocols=["v4.channel.k8s.io"])
        await socket.prepare(request)
        port = int(request.query["ports"]).to_bytes(2, "little")
        await socket.send_bytes(b"\0" + port)
        await socket.send_bytes(b"\1" + port)
        if error:
            await socket.send_bytes(b"\1" + error.encode())
        async for message in socket:
            if message.type is WSMsgType.BINARY and message.data[0] == 0:
                await socket.send_bytes(b"\0" + message.data[1:].upper())
        return socket

    return handle


PORT_FORWARD = "/api/v1/namespaces/tools/pods/{pod}/portforward"


async def pod() -> str:
    return "mcp-demo-1"


async def test_a_forwarded_port_carries_bytes_both_ways_for_many_connections(tmp_path: Path) -> None:
    async def exchange(port: int, data: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        answer = await reader.readexactly(len(data))
        writer.close()
        await writer.wait_closed()
        return answer

    sent = [bytes([97 + n]) * (n * 50_000 + 1) for n in range(6)]
    route = ("GET", PORT_FORWARD, port_forward())
    async with api(tmp_path, route) as kube, asyncio.timeout(20), forwarded(kube, pod, 8080) as port:
        answers = await asyncio.gather(*(exchange(port, data) for data in sent))
    assert answers == [data.upper() for data in sent]


async def test_a_port_that_the_pod_does_not_serve_is_told_and_ends_the_connection(tmp_path: Path) -> None:
    told: list[str] = []
    route = ("GET", PORT_FORWARD, port_forward("connection refused"))
    async with (
        api(tmp_path, route) as kube,
        asyncio.timeout(10),
        forwarded(kube, pod, 8080, failed=told.append) as port,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
    assert told == ["the pod's port cannot be reached: connection refused"]


async def test_a_pod_that_is_gone_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    route = ("GET", PORT_FORWARD, answering(404, {}))
    async with (
        api(tmp_path, route) as kube,
        asyncio.timeout(10),
        forwarded(kube, pod, 8080, failed=told.append) as port,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
    assert "mcp-demo-1/portforward: HTTP 404" in told[0]


async def test_a_local_port_that_is_taken_is_wrong_usage(tmp_path: Path) -> None:
    async with (
        api(tmp_path, ("GET", PORT_FORWARD, port_forward())) as kube,
        forwarded(kube, pod, 8080) as port,
    ):
        with pytest.raises(UsageError, match=f"port {port} cannot be used.*--port"):
            async with forwarded(kube, pod, 8080, port):
                pytest.fail("two servers on one port")
