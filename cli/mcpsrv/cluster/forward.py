"""A port of this computer that leads to a port of a pod, through the API server. Needs no kubectl.

Each connection becomes one WebSocket (protocol `v4.channel.k8s.io`): channel 0 carries the data, channel 1
errors; the first message of each repeats the port number.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import aiohttp

from mcpsrv.cluster.kube import Kube
from mcpsrv.core.errors import AccessError, CliError, UsageError

_PROTOCOL: Final = "v4.channel.k8s.io"
_CHUNK: Final = 65536
_PORT_BYTES: Final = 3

# Name of the pod to connect to, asked for each connection: a pod may have been replaced.
Target = Callable[[], Awaitable[str]]


@asynccontextmanager
async def forwarded(
    kube: Kube, target: Target, port: int, local: int = 0, failed: Callable[[str], None] | None = None
) -> AsyncIterator[int]:
    """The local port while the block runs; `local` 0: any free one. `failed` hears why a connection ended.

    Raises:
        UsageError: the local port is taken.

    """
    connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a connection is served by a task
        connections.add(task)
        try:
            await _serve(kube, target, port, reader, writer)
        except CliError as error:
            if failed:
                failed(str(error))
        except asyncio.CancelledError:
            return
        finally:
            connections.discard(task)
            writer.close()

    try:
        server = await asyncio.start_server(serve, "127.0.0.1", local)
    except OSError as error:
        raise UsageError(
            f"port {local} cannot be used: {error.strerror}; choose another with --port"
        ) from error
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _serve(
    kube: Kube, target: Target, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Carry one connection until either side ends it."""
    path = f"/api/v1/namespaces/{kube.namespace}/pods/{await target()}/portforward"
    async with kube.websocket(path, [("ports", str(port))], _PROTOCOL) as socket:
        up = asyncio.create_task(_up(reader, socket))
        try:
            await _down(socket, writer)
        finally:
            up.cancel()
            with suppress(asyncio.CancelledError, ConnectionError):
                await up


async def _up(reader: asyncio.StreamReader, socket: aiohttp.ClientWebSocketResponse) -> None:
    while data := await reader.read(_CHUNK):
        await socket.send_bytes(b"\0" + data)
    await socket.close()


async def _down(socket: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter) -> None:
    """Data to the local side. Raises AccessError with what the error channel says."""
    greeted: set[int] = set()
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel not in greeted and len(message.data) == _PORT_BYTES:
            greeted.add(channel)
            continue
        if channel == 1:
            raise AccessError(f"the pod's port cannot be reached: {data.decode(errors='replace').strip()}")
        with suppress(ConnectionError):
            writer.write(data)
            await writer.drain()
