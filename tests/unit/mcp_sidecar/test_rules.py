import json

import pytest

from mcp_sidecar.core import backoff, interests, revisions
from mcp_sidecar.core.attribution import sole_owner
from mcp_sidecar.core.cancels import LIFETIME, LIMIT, EarlyCancels
from mcp_sidecar.core.deadlines import Deadlines
from mcp_sidecar.core.interests import Interests
from mcp_sidecar.core.outage import Outage


@pytest.mark.parametrize(
    ("owners", "owner"), [("", None), ("a", "a"), ("aaa", "a"), ("ab", None), ("aab", None)]
)
def test_a_message_has_an_owner_when_all_calls_have_the_same(owners: str, owner: str | None) -> None:
    assert sole_owner(owners) == owner


def test_a_cancellation_is_kept_once_and_for_a_while() -> None:
    cancels = EarlyCancels()
    cancels.add(("s", 1), 0.0)
    assert not cancels.take(("s", "1"), 1.0)
    assert cancels.take(("s", 1), 1.0)
    assert not cancels.take(("s", 1), 1.0)
    cancels.add(("s", 2), 0.0)
    assert not cancels.take(("s", 2), LIFETIME + 1)


def test_of_too_many_cancellations_the_oldest_go() -> None:
    cancels = EarlyCancels()
    for number in range(LIMIT + 5):
        cancels.add(number, 0.0)
    assert len(cancels) == LIMIT
    assert not cancels.take(4, 0.0)
    assert cancels.take(5, 0.0)


def test_deadlines_pass_in_the_order_they_were_set() -> None:
    deadlines = Deadlines[str](10)
    deadlines.add("a", 0)
    deadlines.add("b", 1)
    deadlines.add("c", 2)
    deadlines.add("a", 3)
    deadlines.discard("c")
    deadlines.discard("nobody")
    assert deadlines.next_at() == 11
    assert deadlines.expire(10.9) == []
    assert deadlines.expire(13) == ["b", "a"]
    assert (deadlines.next_at(), len(deadlines)) == (None, 0)


def test_first_contact_is_sought_often_and_a_lost_one_in_peace() -> None:
    assert [backoff.delay(backoff.AFTER_DROP, attempt) for attempt in range(4)] == [0.05, 1.0, 1.0, 1.0]
    first = [backoff.delay(backoff.FIRST_CONTACT, attempt) for attempt in range(20)]
    assert first == sorted(first)
    assert (first[0], first[-1]) == (0.02, 0.5)


@pytest.mark.parametrize(
    ("events", "began"),
    [
        ([("lost", 5)], 5),
        ([("lost", 5), ("lost", 6)], 5),
        ([("lost", 5), ("back", 6), ("lost", 7)], 5),
        ([("lost", 5), ("back", 6), ("lost", 7), ("back", 8), ("lost", 17.9)], 5),
        ([("lost", 5), ("back", 6), ("lost", 16)], 16),
        ([("lost", 5), ("over", 6), ("lost", 7)], 7),
        ([("lost", 5), ("back", 6), ("lost", 4)], 4),  # the clock was set back
    ],
)
def test_a_connection_that_is_back_for_a_moment_does_not_end_an_outage(
    events: list[tuple[str, float]], began: float
) -> None:
    outage, told = Outage(), 0.0
    for name, now in events:
        if name == "lost":
            told = outage.lost(now)
        elif name == "back":
            outage.back(now)
        else:
            outage.over()
    assert told == began


def test_a_resource_is_wanted_while_anybody_wants_it() -> None:
    wants = Interests()
    wants.subscribe("a", "file://x")
    wants.subscribe("b", "file://x")
    wants.subscribe("b", "file://y/")
    assert wants.wanted_by("file://x") == {"a", "b"}
    assert wants.wanted_by("file://y/z") == {"b"}
    assert wants.wanted_by("file://xx") == set()
    assert not wants.unsubscribe("a", "file://x")
    assert not wants.unsubscribe("a", "file://nowhere")
    assert wants.forget("b") == ["file://x", "file://y/"]


def test_a_session_has_a_limited_number_of_subscriptions() -> None:
    wants = Interests()
    for number in range(interests.MAX_SUBSCRIPTIONS - 1):
        wants.subscribe("a", f"file://{number}")
    wants.subscribe("a", "file://0")  # again costs nothing
    wants.claim("a", "file://asked")
    assert f"{interests.MAX_SUBSCRIPTIONS} subscriptions" in str(wants.refusal("a", "file://new"))
    assert wants.refusal("a", "file://1") is None
    assert wants.refusal("b", "file://new") is None
    wants.release("a", "file://asked")
    assert wants.refusal("a", "file://new") is None
    wants.unsubscribe("a", "file://stranger")
    assert wants.forget("a")
    assert not wants.has("a")
    assert wants.sessions() == set()


def test_a_uri_to_subscribe_to_has_a_limited_length() -> None:
    wants = Interests()
    assert wants.refusal("a", "é" * (interests.MAX_URI_BYTES // 2)) is None
    assert "bytes" in str(wants.refusal("a", "é" * (interests.MAX_URI_BYTES // 2) + "x"))
    assert "bytes" in str(wants.refusal("a", "\ud800" * interests.MAX_URI_BYTES))


def test_the_subscriptions_of_all_sessions_fit_a_file_of_limited_size() -> None:
    wants, number = Interests(), 0
    while (refused := wants.refusal(f"{number:032}", "\x01" * 2000 + str(number))) is None:
        wants.subscribe(f"{number:032}", "\x01" * 2000 + str(number))
        number += 1
    assert "all sessions together" in refused
    assert len(json.dumps(wants.dump())) <= interests.MAX_TOTAL_BYTES
    again = Interests()
    again.load(wants.dump())
    assert again.refusal("x", "\x01" * 2000 + str(number)) == refused
    again.forget(f"{0:032}")
    assert again.refusal("x", "\x01" * 2000 + str(number)) is None


def test_the_level_is_the_most_verbose_and_each_session_sees_its_own() -> None:
    wants = Interests()
    assert wants.level() is None
    wants.levels |= {"a": "error", "b": "debug"}
    assert wants.level() == "debug"
    assert wants.level_with("b", "alert") == "error"
    assert not wants.shows("a", "info")
    assert wants.shows("a", "critical")
    assert wants.shows("a", "unheard of")
    assert wants.shows("stranger", "debug")


def test_interests_survive_as_json_and_nonsense_does_not() -> None:
    wants, again = Interests(), Interests()
    wants.subscribe("a", "file://x")
    wants.levels["a"] = "info"
    again.load(wants.dump())
    assert again.dump() == wants.dump()
    again.load({"subscribers": 5, "levels": {"b": "loud"}})
    assert again.dump() == wants.dump()


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2099-01-01", revisions.LATEST),
        (None, revisions.LATEST),
        (5, revisions.LATEST),
    ],
)
def test_a_client_gets_the_revision_it_asks_for_or_the_newest(asked: object, given: str) -> None:
    assert revisions.negotiate(asked) == given
