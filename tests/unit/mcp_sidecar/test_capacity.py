"""Who makes room for a newcomer where all places are taken."""

from collections import Counter
from pathlib import Path

import pytest

from mcp_sidecar.core import capacity
from mcp_sidecar.core.sessionid import Signer
from mcp_sidecar.session.calls import RefusedError
from mcp_sidecar.session.clients import Client, Clients
from mcp_sidecar.session.store import Store


def gives(places: str, newcomer: str) -> int | None:
    """Which place is given, of some like `a A a!`: whose, upper case with a stream, `!` with a call.

    They were used in this order.
    """
    found = places.split()
    held = Counter(place[0].lower() for place in found)
    ranks: dict[capacity.Rank, int] = {}
    for number, place in enumerate(found):
        owner, working = place[0].lower(), place.endswith("!")
        rank = capacity.rank(
            owner, newcomer, held, working=working, listening=place[0].isupper(), last_used=number
        )
        if rank is not None:
            ranks[rank] = number
    return ranks[min(ranks)] if ranks else None


@pytest.mark.parametrize(
    ("places", "newcomer", "expected"),
    [
        ("a a a", "a", 0),
        ("A a! a", "a", 2),
        ("A A! a!", "a", None),
        ("b a a a", "c", 1),
        ("b a a a", "b", 1),
        ("b a a a", "a", 1),
        ("b A A A", "a", None),
        ("b A A A", "b", 1),
        ("b A A A", "c", 1),
        ("b A a A", "c", 2),
        ("b a! a! a!", "c", 0),
        ("B a! a! a!", "c", None),
        ("b a b a", "a", 1),
        ("b a b a", "b", 0),
        ("B a B a", "b", None),
        ("b a c", "d", 0),
        ("B A C", "d", None),
        ("B A A", "d", 1),
        ("b A A", "b", 0),
    ],
)
def test_room_is_made_by_who_has_the_most(places: str, newcomer: str, expected: int | None) -> None:
    assert gives(places, newcomer) == expected


@pytest.fixture
async def clients(tmp_path: Path) -> Clients:
    return Clients(Signer(b"k", "u"), Store(tmp_path), 8, 60)


def opened(clients: Clients, subject: str, *, stream: bool = False) -> Client:
    client = clients.open({}, subject)
    if stream:
        client.open_stream()
    return client


async def test_one_subject_ends_no_session_of_another_however_many_it_opens(clients: Clients) -> None:
    bob = opened(clients, "bob")
    for _ in range(30):
        opened(clients, "alice")
    assert not bob.ended
    assert len(clients) == 8


@pytest.mark.parametrize("stream", [False, True])
async def test_one_subject_with_all_sessions_keeps_none_out(clients: Clients, stream: bool) -> None:
    for _ in range(8):
        opened(clients, "alice", stream=stream)
    others = [opened(clients, name, stream=True) for name in ("bob", "carol", "bob")]
    assert [other.ended for other in others] == [False] * 3
    assert sum(client.subject == "alice" for client in clients) == 5


async def test_who_has_the_most_and_none_idle_is_told_when_to_come_again(clients: Clients) -> None:
    bob = opened(clients, "bob")
    for _ in range(7):
        opened(clients, "alice", stream=True)
    with pytest.raises(RefusedError, match="in use") as caught:
        clients.open({}, "alice")
    assert (caught.value.status, caught.value.retry_after) == (503, 1)
    assert not bob.ended


async def test_a_session_that_comes_back_makes_room_by_the_same_rule(
    clients: Clients, tmp_path: Path
) -> None:
    kept = [opened(clients, "alice").sid for _ in range(8)]
    restarted = Clients(Signer(b"k", "u"), Store(tmp_path), 8, 60)
    bob = opened(restarted, "bob")
    for sid in kept:
        assert restarted.find(sid, "alice") is not None
    assert not bob.ended


async def test_nothing_is_kept_of_subjects_that_have_no_session(clients: Clients) -> None:
    for number in range(50):
        clients.end(opened(clients, f"subject {number}"), "deleted")
    assert len(clients._held) == 0
