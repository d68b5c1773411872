"""In the end: what everybody got, held against what the model says."""

import json
from collections import Counter
from typing import TYPE_CHECKING

from simkit.clients import messages_of
from simkit.parties import GIVEN_UP, Ask, Client, Fate, Question, fate_of
from simkit.wire import Reply

if TYPE_CHECKING:
    from simkit.world import World


def check(world: "World") -> None:
    """Nothing wrong, nothing lost, nothing twice, nothing left."""
    for wire in world.clients.wires:
        assert wire.gone or len(wire.replies()) == wire.sent, "a request without a reply, or with two"
    for ask in world.model.asks:
        _check_ask(ask)
    for question in world.model.questions:
        _check_question(question, world.model.clients)
    for client in world.model.clients:
        _check_messages(client, world)
    _check_relay(world)


def _check_ask(ask: Ask) -> None:
    if ask.heard:
        judge(ask, ask.wire.replies()[ask.index])
    if ask.fate in GIVEN_UP and ask.number is not None and not ask.excused:
        assert ask.told, f"the server never heard that {ask.tag} {ask.fate}"


def judge(ask: Ask, reply: Reply) -> None:
    """Hold the reply to a call against its fate."""
    *events, answer = reply.messages
    told = [event for event in events if b"notifications/progress" in event]
    assert told == ask.progress, (told, ask.progress)
    if ask.fate is Fate.ANSWERED:
        assert answer == ask.answer, (answer[:300], ask.answer[:300])
        return
    assert answer.startswith(b'{"jsonrpc":"2.0","id":' + ask.raw_id + b","), answer
    found = fate_of(reply.status, json.loads(answer))
    if ask.fate is not None:
        assert found is ask.fate, (found, ask)
    elif found is Fate.CANCELLED:
        assert ask.id in ask.client.cancelled
    else:
        assert found in ask.allowed or found is Fate.DUPLICATE, (found, ask)


def _check_question(question: Question, clients: list[Client]) -> None:
    asked = b'"question":%d}' % question.tag
    seen = {client: sum(asked in message for message in messages_of(client)) for client in clients}
    for client, times in seen.items():
        assert times <= (client is question.owner), (times, client, question)
    answers = [message["result"].get("reply") if "result" in message else None for message in question.got]
    wanted = [question.answer] if question.answer is not None else [None] * question.refused
    assert answers == wanted or (question.lost and not answers), (question, wanted)


def _check_messages(client: Client, world: "World") -> None:
    messages = messages_of(client)
    notes = Counter(
        json.loads(m)["params"]["data"]["note"] for m in messages if b"notifications/message" in m
    )
    for tag, owner in enumerate(world.model.notes):
        # A client that vanished may have missed what was on its way.
        assert notes[tag] == (owner is client), (tag, notes[tag], owner, client)
    changes = sum(b"list_changed" in message for message in messages)
    assert changes == client.lists_due or not client.lists_certain, (changes, client)


def _check_relay(world: "World") -> None:
    shared, model = world.relay.shared, world.model
    assert len(shared.table) == 0
    assert all(not client.calls for client in shared.clients)
    assert all(asked.client in list(shared.clients) for asked in shared.asked.values())
    assert len(shared.asked) == sum(question.open for question in model.questions)
    handshakes = Counter(world.server.launcher.handshakes)
    assert max(handshakes.values()) == 1, handshakes
    assert world.relay.metrics is shared.metrics
