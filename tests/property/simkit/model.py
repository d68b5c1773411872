"""What must come out: every call's fate as the lifecycle promises it, told event by event.

The model knows nothing of how the relay works. It is told what clients sent, what the server got and wrote,
and when; from that follows what each client must be told, and what it must never see.
"""

import math
from collections.abc import Callable
from typing import Any

from simkit.parties import GIVEN_UP, Ask, Client, Fate, Question
from simkit.wire import Wire

ABANDONED_SECONDS = 10.0
EARLY_SECONDS = 60.0
DRAIN_SECONDS = 5.5


class Model:
    """The state of the world as everybody outside of the relay can know it."""

    def __init__(self, now: Callable[[], float], call_timeout: float) -> None:
        self._now = now
        self._timeout = call_timeout
        self.clients: list[Client] = []
        self.asks: list[Ask] = []
        self.questions: list[Question] = []
        self.notes: list[Client | None] = []
        """For each log message the one client that must get it."""
        self._abandoned: dict[Ask, float] = {}
        self._numbers: set[int] = set()
        self._drain_at = math.inf
        self._terminating = False

    # Time.

    def pass_time(self) -> float:
        """Let everything end that was due by now."""
        now = self._now()
        if self._drain_at <= now:
            self._expire(self._drain_at)
            self._drain_at = math.inf
            if any(ask.open for ask in self.asks):
                self._fail_all()
        self._expire(now)
        return now

    def _expire(self, now: float) -> None:
        for ask in self.asks:
            if ask.open and ask.since is not None and ask.since + self._timeout <= now:
                self._abandon(ask, Fate.TIMED_OUT, ask.since + self._timeout)
        for ask, since in list(self._abandoned.items()):
            if since + ABANDONED_SECONDS <= now:
                del self._abandoned[ask]

    def terminating(self) -> None:
        """The pod ends: open calls have some time left."""
        self._drain_at = self.pass_time() + DRAIN_SECONDS
        self._terminating = True
        for client in self.clients:
            client.lists_certain = False

    def settled(self) -> None:
        """Everything happened that needs no time: in a pod that ends, streams end with the last call."""
        if self._terminating and not any(ask.open for ask in self.asks):
            for client in self.clients:
                client.stream = None

    # What clients do.

    def called(self, ask: Ask, *, usable: bool) -> None:
        """A client sent a call; `usable`: the session with the server is up."""
        now = self.pass_time()
        client = ask.client
        self.asks.append(ask)
        if client.ended:
            ask.fate = Fate.NOT_FOUND
        elif not usable:
            ask.allowed = frozenset({Fate.UNAVAILABLE})
        elif any(other.open and other.client is client and other.id == ask.id for other in self.asks):
            ask.fate = Fate.DUPLICATE
        elif now - client.early.pop(ask.id, -EARLY_SECONDS) < EARLY_SECONDS:
            ask.fate = Fate.CANCELLED
        else:
            ask.since = now

    def waited_in_vain(self, ask: Ask) -> None:
        """A call that waited for the server met a cancellation that waited for it."""
        assert ask.client.early.pop(ask.id, None) is not None
        ask.fate = Fate.CANCELLED

    def cancelled(self, client: Client, wanted: Any) -> None:
        """A client cancelled its request with this id."""
        now = self.pass_time()
        client.cancelled.append(wanted)
        for ask in self.asks:
            if ask.client is client and ask.open and ask.id == wanted:
                self._abandon(ask, Fate.CANCELLED, now)
                return
        if wanted not in client.recent:
            client.early[wanted] = now

    def ended(self, client: Client) -> None:
        """A client ended its session."""
        now = self.pass_time()
        client.ended = True
        client.stream = None
        for ask in self.asks:
            if ask.client is client and ask.open:
                self._abandon(ask, Fate.ENDED, now)
            elif ask.client is client and ask.waiting:
                ask.allowed |= {Fate.ENDED, Fate.NOT_FOUND}
        for question in self.questions:
            if question.owner is client and question.open:
                question.open, question.refused = False, True

    def listened(self, client: Client, wire: Wire) -> None:
        """A client opened its stream."""
        self.pass_time()
        if not client.ended:
            client.stream = wire
            client.lists_due += client.list_missed
            client.list_missed = False

    def hung_up(self, client: Client, wire: Wire) -> None:
        """A client vanished from one of its connections."""
        self.pass_time()
        if client.stream is wire:
            client.stream = None
        for ask in self.asks:
            if ask.wire is wire and not wire.idle:
                ask.heard = ask.heard and wire.answered(ask.index)

    def answered_question(self, client: Client, question: Question, tag: int) -> None:
        """A client answered what the server asked; only the one that was asked can."""
        self.pass_time()
        if question.open and question.owner is client:
            question.open, question.answer = False, tag

    # What the server does; told when the relay gets it.

    def arrived(self, tag: int, number: int, token: Any) -> Ask:
        """The server got a call."""
        now = self.pass_time()
        ask = self.asks[tag]
        assert ask.number is None, f"{tag} was sent to the server twice"
        assert number not in self._numbers, f"the server knows {number} already"
        assert token == (number if ask.token is not None else None)
        self._numbers.add(number)
        ask.number = number
        if ask.since is None:
            assert ask.waiting, f"{tag} went to the server but was {ask.fate}"
            ask.since = now
        return ask

    def answered(self, ask: Ask, answer: bytes) -> None:
        """The server answered; what the client gets is `answer`, if it gets it."""
        self.pass_time()
        if ask.open:
            ask.answer = answer
            self._end(ask, Fate.ANSWERED)
        self._abandoned.pop(ask, None)

    def progressed(self, ask: Ask, note: bytes) -> None:
        """The server reported progress; `note` is what the client gets."""
        self.pass_time()
        if ask.open and ask.token is not None and ask.streams and ask.heard:
            ask.progress.append(note)

    def asked(self, question: Question, wanted: str | None) -> None:
        """The server asked something that needs the capability `wanted`."""
        owner = self.owner()
        if owner is not None and wanted in owner.capabilities and self._can_hear(owner):
            question.owner, question.open = owner, True
        else:
            question.refused = True

    def withdrew(self, question: Question) -> None:
        """The server does not want to know any more."""
        self.pass_time()
        question.open = False

    def new_note(self) -> int:
        """The tag of another log message."""
        self.notes.append(None)
        return len(self.notes) - 1

    def noted(self, tag: int) -> None:
        """The server wrote a log message."""
        owner = self.owner()
        self.notes[tag] = owner if owner is not None and self._can_hear(owner) else None

    def told_of_cancellation(self, number: int) -> None:
        """The server heard that a call was given up."""
        self.pass_time()
        for ask in self.asks:
            if ask.number == number:
                assert ask.fate in GIVEN_UP, f"{ask.tag} was cancelled but is {ask.fate}"
                assert not ask.told, f"{ask.tag} was cancelled twice"
                ask.told = True
                return
        lost = (ask for ask in self.asks if ask.number is None and ask.since is not None)
        assert any(ask.fate in GIVEN_UP for ask in lost), f"nobody gave up {number}"

    def lists_changed(self) -> None:
        """The server's tools changed."""
        self.pass_time()
        for client in self.clients:
            if client.ended or not client.known:
                continue
            if client.stream is not None:
                client.lists_due += 1
            else:
                client.list_missed = True

    def process_gone(self) -> None:
        """The process ended, or is out of reach for good."""
        self.pass_time()
        self._fail_all()

    def _fail_all(self) -> None:
        for ask in self.asks:
            ask.excused = True
            if ask.open:
                self._end(ask, Fate.GONE)
        self._abandoned.clear()
        self._forget_questions()

    def _forget_questions(self) -> None:
        for question in self.questions:
            question.lost = question.lost or not question.got
            question.open = False

    def wire_cut(self) -> None:
        """What was on its way to the server when its connection broke may have got lost."""
        self.pass_time()
        for ask in self.asks:
            ask.excused = ask.excused or ask.fate in GIVEN_UP
        for question in self.questions:
            question.lost = question.lost or question.refused or question.answer is not None

    def relay_gone(self) -> None:
        """The relay was killed; the next one knows the sessions by their ids and nothing of their calls."""
        self.pass_time()
        self._drain_at = math.inf
        self._terminating = False
        self._abandoned.clear()
        for ask in self.asks:
            ask.excused = True
            if ask.fate is None:
                ask.fate, ask.heard = Fate.GONE, False
        self._forget_questions()
        for client in self.clients:
            client.known = client.lists_certain = False
            client.stream = None
            client.recent.clear()
            client.early.clear()

    # What follows.

    def owner(self) -> Client | None:
        """The only client whose calls the server may be working on."""
        self.pass_time()
        owners = {ask.client for ask in self.asks if ask.open} | {ask.client for ask in self._abandoned}
        owner = owners.pop() if len(owners) == 1 else None
        return None if owner is None or owner.ended else owner

    def _can_hear(self, client: Client) -> bool:
        calls = (ask for ask in self.asks if ask.client is client and ask.open)
        return client.stream is not None or any(ask.streams and ask.heard for ask in calls)

    def _end(self, ask: Ask, fate: Fate) -> None:
        ask.fate = fate
        ask.client.recent.add(ask.id)

    def _abandon(self, ask: Ask, fate: Fate, since: float) -> None:
        self._end(ask, fate)
        self._abandoned[ask] = since
