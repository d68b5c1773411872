"""The order of faults follows from the seed, and holds every kind."""

import pytest

from chaoskit import campaign, schedule
from chaoskit.kinds import BY_NAME, KINDS, Scope

SERVERS = ["raw", "sdk1", "sdk2"]


def test_the_same_seed_gives_the_same_faults_and_another_one_others() -> None:
    first = schedule.plan(7, 40, SERVERS, KINDS)
    assert schedule.plan(7, 40, SERVERS, KINDS) == first
    assert schedule.plan(8, 40, SERVERS, KINDS) != first


@pytest.mark.parametrize("seed", range(20))
def test_every_kind_comes_at_least_once_and_faults_are_numbered_through(seed: int) -> None:
    faults = [fault for together in schedule.plan(seed, 60, SERVERS, KINDS) for fault in together]
    assert {fault.kind.name for fault in faults} == set(BY_NAME)
    assert [fault.number for fault in faults] == list(range(1, 61))
    assert all(0 <= fault.pause <= schedule.LONGEST_PAUSE for fault in faults)


@pytest.mark.parametrize("seed", range(20))
def test_no_server_is_hit_twice_in_a_round_and_faults_of_the_cluster_come_alone(seed: int) -> None:
    for together in schedule.plan(seed, 60, SERVERS, KINDS):
        assert len({fault.server for fault in together}) == len(together) <= len(SERVERS)
        if any(fault.kind.scope is Scope.CLUSTER for fault in together):
            assert len(together) == 1


def test_fewer_faults_than_kinds_repeat_none() -> None:
    faults = [fault for together in schedule.plan(1, 5, SERVERS, KINDS) for fault in together]
    assert len({fault.kind.name for fault in faults}) == len(faults) == 5


def test_one_server_gets_its_faults_one_after_the_other() -> None:
    assert all(len(together) == 1 for together in schedule.plan(3, 30, ["raw"], KINDS))


def test_each_kind_can_be_made() -> None:
    assert set(campaign.INJECTORS) == set(BY_NAME)
