import pytest

from mcp_sidecar.core import backoff, revisions
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
    interests = Interests()
    interests.subscribe("a", "file://x")
    interests.subscribe("b", "file://x")
    interests.subscribe("b", "file://y/")
    assert interests.wanted_by("file://x") == {"a", "b"}
    assert interests.wanted_by("file://y/z") == {"b"}
    assert interests.wanted_by("file://xx") == set()
    assert not interests.unsubscribe("a", "file://x")
    assert not interests.unsubscribe("a", "file://nowhere")
    assert interests.forget("b") == ["file://x", "file://y/"]


def test_the_level_is_the_most_verbose_and_each_session_sees_its_own() -> None:
    interests = Interests()
    assert interests.level() is None
    interests.levels |= {"a": "error", "b": "debug"}
    assert interests.level() == "debug"
    assert interests.level_with("b", "alert") == "error"
    assert not interests.shows("a", "info")
    assert interests.shows("a", "critical")
    assert interests.shows("a", "unheard of")
    assert interests.shows("stranger", "debug")


def test_interests_survive_as_json_and_nonsense_does_not() -> None:
    interests, again = Interests(), Interests()
    interests.subscribe("a", "file://x")
    interests.levels["a"] = "info"
    again.load(interests.dump())
    assert again.dump() == interests.dump()
    again.load({"subscribers": 5, "levels": {"b": "loud"}})
    assert again.dump() == interests.dump()


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
