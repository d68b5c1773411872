"""Inputs without sense: nothing that anybody sends makes the relay fail, hang or grow.

The long run (`make fuzz`) feeds 1,000,000 inputs; a seed that fails is in the message of the failure.
"""

import asyncio
import json
import re
import resource
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h11
from hypothesis import settings

from mcp_sidecar.core import frames, jsontext
from mcp_sidecar.core.lines import LineSplitter, Oversized
from relaykit.wirepeer import LIMIT, Peer, Seen
from simkit import seeds
from simkit.clients import ClientSteps
from simkit.clock import made_up_time, moment
from simkit.mutation import Chance, mutated, pieces
from simkit.wire import Wire
from simkit.world import World

INPUTS = settings().max_examples * 100
"""In all: 30,000 in the short run, 1,000,000 in the long one."""
BATCH = 500
GROWTH_KIB = 16 * 1024
Play = Callable[[World, Chance], Coroutine[Any, Any, None]]


@contextmanager
def bounded_memory() -> Iterator[None]:
    """What is fed must not stay: the peak grows little."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH_KIB


def batches(share: int) -> range:
    """Seeds of the batches that make `share` percent of all inputs."""
    return range(max(1, INPUTS * share // 100 // BATCH))


def in_worlds(share: int, play: Play) -> None:
    """Play batches, each in a world of its own; the first few settle how much memory is usual."""
    for seed in batches(share)[:5]:
        _in_world(seed, play)
    with bounded_memory():
        for seed in batches(share)[5:]:
            _in_world(seed, play)


def _in_world(seed: int, play: Play) -> None:
    with tempfile.TemporaryDirectory() as directory, made_up_time() as loop:
        world = World(loop, Path(directory), 30.0)
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            try:
                runner.run(_batch(world, seed, play))
            except Exception as error:
                raise AssertionError(f"seed {seed}") from error
        assert loop.failures == [], (seed, loop.failures)


async def _batch(world: World, seed: int, play: Play) -> None:
    await world.begin()
    world.server.launcher.on_message = lambda _message, _line: None
    await asyncio.wait_for(play(world, Chance(seed)), 10_000)
    await world.end()


async def _server_writes(world: World, chance: Chance) -> None:
    """A server (or its launcher) that writes nonsense, in a process that starts anew now and then."""
    steps: ClientSteps = world.clients
    lines = (*seeds.SERVER_LINES * 3, *seeds.CONTROL_LINES)
    for number in range(BATCH):
        if number % 20 == 0:
            steps.call(number, number)
            await moment()
        pipe = world.server.launcher.pipe
        if pipe is None or not world.relay.open:
            world.server.launcher.vanish()
            world.server.launcher.start()
            await asyncio.sleep(2)
            continue
        last = b"%d" % world.relay.shared.table.number()
        line = mutated(chance, lines).replace(b"NUMBER", last if chance.random() < 0.3 else b"4294967299")
        for piece in pieces(chance, line + b"\n"):
            if not pipe.lost:
                pipe.protocol.data_received(piece)
    assert len(world.relay.shared.asked) <= 1000
    assert world.relay.metrics.counters["mcp_relay_stdout_lines_dropped"]["unreadable"] == 0


def test_whatever_a_server_writes_the_relay_goes_on() -> None:
    in_worlds(30, _server_writes)


async def _clients_send(world: World, chance: Chance) -> None:
    """Clients that send nonsense, on connections of their own."""
    client = world.model.clients[0]
    requests = seeds.requests(client.sid)
    wires: list[Wire] = []
    for number in range(BATCH):
        wire = Wire(world.site, asyncio.get_running_loop())
        wires.append(wire)
        for piece in pieces(chance, mutated(chance, requests)):
            if wire.transport.closed or not wire.transport.reading:
                break
            wire.connection.data_received(piece)
        if number % 10 == 9:
            await moment()
            for fed in wires[-10:]:
                fed.replies()  # every one of them is a reply
                fed.leave()
    await asyncio.sleep(100)
    assert len(world.site.connections) == len(world.clients.wires)
    assert not world.site.tasks
    assert len(world.relay.shared.table) == 0


def test_whatever_clients_send_the_relay_goes_on() -> None:
    in_worlds(30, _clients_send)


HEADS = tuple(
    request.replace(b"/mcp", b"/").replace(b"GET /mcp", b"GET /later") for request in seeds.requests(b"sid")
)


_START = re.compile(rb"[\r\n]*([A-Z]+) +(\S+) +HTTP/1")


def reference(data: bytes) -> list[Seen]:
    """The requests that a strict parser of another make finds, up to the first that it refuses."""
    found: list[Seen] = []
    while True:
        # Line ends before a request are ignored, several spaces mean one: RFC 9112, 2.2 and 3, allows both.
        start = _START.match(data)
        if start is not None:
            data = b"%b %b HTTP/1%b" % (start[1], start[2], data[start.end() :])
        reader = h11.Connection(h11.SERVER, max_incomplete_event_size=10**6)
        reader.receive_data(data)
        request = _first(reader)
        if request is None:
            return found
        found.append(request)
        if reader.their_state is h11.MUST_CLOSE:
            return found
        data = reader.trailing_data[0]


def _first(reader: h11.Connection) -> Seen | None:
    method, target, body = b"", b"", b""
    try:
        while True:
            event = reader.next_event()
            if isinstance(event, h11.Request):
                method, target = event.method, event.target
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return method, _path(target), body
            else:
                return None
    except h11.RemoteProtocolError:
        return None


def _path(target: bytes) -> bytes:
    if target.lower().startswith((b"http://", b"https://")):
        target = b"/" + target.split(b"://", 1)[1].partition(b"/")[2]
    return target.partition(b"?")[0]


async def _compare(chance: Chance) -> None:
    data = mutated(chance, HEADS)
    peer = Peer()
    for piece in pieces(chance, data):
        await peer.send(piece)
        if peer.transport.closed:
            break
    seen, known = peer.application.seen, reference(data)
    assert seen == known[: len(seen)], (data, seen, known)
    assert all(len(body) <= LIMIT for _, _, body in seen)


def test_no_request_is_understood_otherwise_than_by_a_strict_parser() -> None:
    async def batch(seed: int) -> None:
        chance = Chance(seed)
        for _ in range(BATCH):
            await _compare(chance)

    for seed in batches(20):
        asyncio.run(batch(seed))


def test_a_message_keeps_everything_but_its_id_whatever_it_is() -> None:
    messages = (*seeds.CLIENT_MESSAGES, *(line for line in seeds.SERVER_LINES if len(line) < 1000))
    for seed in batches(15):
        chance = Chance(seed)
        for _ in range(BATCH):
            _hold(mutated(chance, messages))


def _hold(data: bytes) -> None:
    try:
        frame = frames.parse(data)
    except frames.FrameError as error:
        told = error.raw_id
    else:
        told = frame.raw_id
        _hold_frame(frame, data)
    assert told in (b"null", b"") or told in jsontext.one_line(data)
    json.loads(told or b"null")


def _hold_frame(frame: frames.Frame, data: bytes) -> None:
    if frame.kind is frames.Kind.NOTIFICATION:
        return
    pairs: list[tuple[str, Any]] = json.loads(frame.data, object_pairs_hook=list)
    twice = [name for name, _ in pairs].count("id") > 1
    if twice and (frame.kind is frames.RESPONSE or (frames.own_id(frame.id) or 0) < frames.FIRST_OWN_ID):
        return  # malformed, and no id of another's call: nobody is hurt but who sent it
    changed = jsontext.loads(frame.with_id(b'"other"'))
    same = jsontext.loads(frame.data)
    assert changed["id"] == "other"
    assert repr({**changed, "id": 0}) == repr({**same, "id": 0}), data


def test_lines_are_the_same_however_they_are_cut_and_however_long_they_are() -> None:
    for seed in batches(5):
        chance = Chance(seed)
        splitter, whole = LineSplitter(300), bytearray()
        found: list[bytes | int] = []
        for _ in range(BATCH):
            data = mutated(chance, [line[:400] + b"\n" for line in seeds.SERVER_LINES])
            whole += data
            for piece in pieces(chance, data):
                lines = splitter.feed(piece)
                found += [line.size if isinstance(line, Oversized) else bytes(line) for line in lines]
        wanted = [line if len(line) <= 300 else len(line) for line in bytes(whole).split(b"\n")[:-1]]
        assert found == wanted
