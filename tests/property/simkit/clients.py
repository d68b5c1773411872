"""What clients do, one method a step: `a` chooses the client, `b` the rest."""

import json

from mcp_sidecar.session.relay import Relay
from mcp_sidecar.web.connection import Site
from simkit.clock import Loop, moment
from simkit.model import Model
from simkit.parties import Ask, Client, Fate, Question, fate_of
from simkit.wire import Wire

BOTH, ONLY_JSON, ONLY_EVENTS = (
    b"application/json, text/event-stream",
    b"application/json",
    b"text/event-stream",
)
ACCEPTS = (BOTH, ONLY_JSON, BOTH, ONLY_EVENTS)
# Ids that are easily mistaken for one another. 1 and 1.0 are the same number.
IDS = (b"1", b'"1"', b"2", b"1.0", b'"\\u0031x"', b"-7", b"9007199254740993", b'""')
TOKENS = (None, b"1", b'"1"', b"null", b'"p\xc3\xa9"', b"1.50")
CAPABILITIES = (("sampling", "elicitation", "roots"), ("sampling",), ())
MAX_CLIENTS = 4
_CALL = b'{"jsonrpc":"2.0","id":%b,"method":"tools/call","params":{"name":"echo","arguments":{"tag":%d}%b}}'
_CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}'


class ClientSteps:
    """The clients and their connections; they speak to the relay that `meet` named last."""

    def __init__(self, loop: Loop, model: Model) -> None:
        self._loop = loop
        self._model = model
        self.wires: list[Wire] = []
        self._replies = 0

    def meet(self, relay: Relay, site: Site) -> None:
        """Speak to this relay from now on."""
        self._relay, self._site = relay, site

    def lose_connections(self) -> None:
        """The relay is gone, and every connection with it."""
        for wire in self.wires:
            wire.leave()

    async def connect(self, number: int) -> None:
        """One more client, if there is room and the server is up."""
        if len(self._model.clients) >= MAX_CLIENTS or not self._relay.open:
            return
        capabilities = CAPABILITIES[number % len(CAPABILITIES)]
        client = Client(len(self._model.clients), frozenset(capabilities))
        declared: dict[str, object] = {name: {} for name in capabilities}
        params = {"protocolVersion": "2025-11-25", "capabilities": declared}
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        wire = self._wire(client)
        self._post(client, wire, json.dumps(message).encode())
        await moment()
        reply = wire.replies()[-1]
        assert json.loads(reply.messages[0])["id"] == 0
        client.sid = reply.headers[b"mcp-session-id"]
        self._model.clients.append(client)

    def call(self, a: int, b: int) -> None:
        """A tool call, on a connection that is free."""
        client, accept = self._client(a), ACCEPTS[a // 8 % len(ACCEPTS)]
        wire, token = self._wire(client), TOKENS[b // 8 % len(TOKENS)]
        raw_id, tag = IDS[b % len(IDS)], len(self._model.asks)
        ask = Ask(tag, client, wire, raw_id, token, streams=accept is not ONLY_JSON, index=wire.sent)
        meta = b',"_meta":{"progressToken":%b}' % token if token is not None else b""
        self._look_at_waiting()
        self._model.called(ask, usable=self._relay.open)
        self._post(client, wire, _CALL % (raw_id, tag, meta), accept)

    def _look_at_waiting(self) -> None:
        """A call that waited may have met a cancellation that waited for it."""
        for ask in self._model.asks:
            if ask.waiting and ask.wire.answered(ask.index):
                reply = ask.wire.replies()[ask.index]
                if fate_of(reply.status, json.loads(reply.messages[-1])) is Fate.CANCELLED:
                    self._model.waited_in_vain(ask)

    def cancel(self, a: int, b: int) -> None:
        """A cancellation: of an open call, too late, or too early."""
        client, raw = self._client(a), IDS[b % len(IDS)]
        self._look_at_waiting()
        if not client.ended:
            self._model.cancelled(client, json.loads(raw))
        self._post(client, self._wire(client), _CANCEL % raw)

    def delete(self, a: int, _b: int) -> None:
        """A client ends its session, or does so again."""
        client = self._client(a)
        self._model.ended(client)
        self._wire(client).send(b"DELETE", {b"mcp-session-id": client.sid})

    def listen(self, a: int, _b: int) -> None:
        """A client opens its stream; an older one ends."""
        client = self._client(a)
        wire = self._wire(client)
        if self._relay.upstream.state.value != "Terminating":
            self._model.listened(client, wire)
        wire.send(b"GET", {b"mcp-session-id": client.sid, b"accept": ONLY_EVENTS})

    def hang_up(self, a: int, b: int) -> None:
        """A client vanishes from one of its connections."""
        client = self._client(a)
        waiting = [ask.wire for ask in self._model.asks if ask.waiting]
        busy = [wire for wire in client.wires if not wire.gone and not wire.idle and wire not in waiting]
        if busy:
            wire = busy[b % len(busy)]
            self._model.hung_up(client, wire)
            wire.leave()

    def reply(self, a: int, b: int) -> None:
        """A client answers what the server asked; sometimes the wrong one does."""
        heard = [
            (number, question) for client in self._model.clients for number, question in self.heard(client)
        ]
        if heard:
            number, question = heard[a % len(heard)]
            client = self._client(b // 4) if b % 4 == 0 or question.owner is None else question.owner
            self._replies += 1
            if not client.ended:
                self._model.answered_question(client, question, self._replies)
            text = b'{"jsonrpc":"2.0","id":%d,"result":{"reply":%d}}' % (number, self._replies)
            self._post(client, self._wire(client), text)

    def heard(self, client: Client) -> list[tuple[int, Question]]:
        """What the client was asked, each with the id it was asked under."""
        messages = (json.loads(m) for m in messages_of(client) if b'"question"' in m)
        return [(message["id"], self._model.questions[message["params"]["question"]]) for message in messages]

    def _client(self, a: int) -> Client:
        return self._model.clients[a % len(self._model.clients)]

    def _wire(self, client: Client) -> Wire:
        for wire in client.wires:
            if wire.idle and wire.connection in self._site.connections:
                return wire
        wire = Wire(self._site, self._loop)
        client.wires.append(wire)
        self.wires.append(wire)
        return wire

    def _post(self, client: Client, wire: Wire, body: bytes, accept: bytes = BOTH) -> None:
        headers = {b"accept": accept, b"content-type": b"application/json"}
        if client.sid:
            headers[b"mcp-session-id"] = client.sid
        wire.send(b"POST", headers, body)
        client.known = True


def messages_of(client: Client) -> list[bytes]:
    """Everything the client got, on all its connections."""
    return [message for wire in client.wires for reply in wire.replies() for message in reply.messages]
