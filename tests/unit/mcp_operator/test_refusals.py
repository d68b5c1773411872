"""What the API server refuses: it shows in the status, costs at most a retry, and loops never."""

from datetime import timedelta
from typing import Any

import pytest

from mcp_operator.adapters.errors import RefusedError
from mcp_operator.adapters.kinds import PODS, SECRETS, SERVICES

KEY = ("default", "time")
# A reconciler against an API server in memory, from conftest.
Setup = Any


async def test_a_refused_pod_shows_in_the_status_and_is_not_tried_again_at_once(setup: Setup) -> None:
    setup.server()
    setup.kube.errors["create pods"] = RefusedError(403, "exceeded quota: memory")
    delay = await setup.reconcile(KEY)
    assert delay == pytest.approx(2)
    assert setup.status()["error"]["reason"] == "QuotaExceeded"
    setup.told()
    await setup.reconcile(KEY)
    assert setup.told() == []


REFUSALS = [
    ("apply services", "the Service", 'services "mcp-time" is forbidden: exceeded quota: count/services'),
    ("apply secrets", "the Secret", "admission webhook denied the request"),
]


@pytest.mark.parametrize(("request_", "what", "message"), REFUSALS)
async def test_a_refused_service_or_secret_shows_in_the_status_with_the_pod_that_was_made(
    setup: Setup, request_: str, what: str, message: str
) -> None:
    setup.server()
    setup.kube.errors[request_] = RefusedError(403, message)
    assert await setup.reconcile(KEY) == pytest.approx(2)
    found = setup.status()
    assert (found["phase"], found["error"]["phase"]) == ("Pending", "Admission")
    assert found["error"]["message"] == f'the API server refused {what} "mcp-time": {message}'
    assert found["session"] == {"podName": "mcp-time-1", "podUID": "uid-pods-mcp-time-1", "epoch": 1}
    setup.told()
    for _ in range(3):
        await setup.reconcile(KEY)
    assert set(setup.told()) == {f"{request_} mcp-time"}
    assert setup.status()["recovery"]["consecutiveFailures"] == 1
    del setup.kube.errors[request_]
    setup.now += timedelta(seconds=2)
    await setup.reconcile(KEY)
    assert setup.names(SERVICES) == setup.names(SECRETS) == ["mcp-time"]
    assert setup.status()["recovery"]["consecutiveFailures"] == 1
    assert setup.names(PODS) == ["mcp-time-1"]


async def test_without_its_network_policy_no_pod_is_made(setup: Setup) -> None:
    setup.server()
    setup.kube.errors["apply networkpolicies"] = RefusedError(
        422, "spec.egress[0].to[0].ipBlock.cidr: Invalid"
    )
    assert await setup.reconcile(KEY) == pytest.approx(2)
    assert setup.names(PODS) == []
    found = setup.status()["error"]
    assert (found["phase"], found["reason"]) == ("Admission", "AdmissionRefused")
    assert found["message"].startswith('the API server refused the NetworkPolicy "mcp-time": spec.egress')
    setup.told()
    for _ in range(3):
        await setup.reconcile(KEY)
    assert set(setup.told()) == {"apply networkpolicies mcp-time"}
    del setup.kube.errors["apply networkpolicies"]
    setup.now += timedelta(seconds=2)
    await setup.reconcile(KEY)
    assert setup.names(PODS) == ["mcp-time-1"]


async def test_a_policy_that_cannot_be_changed_shows_in_the_status_and_the_pod_goes_on(setup: Setup) -> None:
    setup.server()
    await setup.reconcile(KEY)
    setup.kube.errors["apply networkpolicies"] = RefusedError(422, "invalid")
    setup.server(network={"egress": "All"})
    await setup.reconcile(KEY)
    assert (
        setup.status()["error"]["message"] == 'the API server refused the NetworkPolicy "mcp-time": invalid'
    )
    assert setup.names(PODS) == ["mcp-time-1"]


async def test_a_service_that_stays_refused_is_an_error_in_the_end_and_the_pod_is_left_alone(
    setup: Setup,
) -> None:
    setup.server()
    setup.kube.errors["apply services"] = RefusedError(403, "no")
    delays = []
    for _ in range(5):
        delay = await setup.reconcile(KEY)
        delays.append(delay)
        setup.now += timedelta(seconds=delay or 0)
    assert delays == [2, 4, 8, 300, 300]
    assert (setup.status()["phase"], setup.status()["error"]["reason"]) == ("Error", "AdmissionRefused")
    assert setup.names(PODS) == ["mcp-time-1"]


async def test_a_suspended_resource_stays_so_when_its_service_is_refused(setup: Setup) -> None:
    setup.server(suspend=True)
    setup.kube.errors["apply services"] = RefusedError(403, "no")
    assert await setup.reconcile(KEY) == pytest.approx(2)
    assert (setup.status()["phase"], setup.status()["error"]["phase"]) == ("Suspended", "Admission")


async def test_a_pod_that_may_not_be_deleted_shows_in_the_status_and_has_no_successor(setup: Setup) -> None:
    setup.server()
    await setup.reconcile(KEY)
    setup.kube.errors["delete pods"] = RefusedError(403, "admission webhook denied the request")
    setup.server(args=["--verbose"])
    assert await setup.reconcile(KEY) == pytest.approx(2)
    assert setup.status()["error"]["message"].startswith(
        'the API server refused to delete the pod "mcp-time-1": admission webhook'
    )
    assert setup.names(PODS) == ["mcp-time-1"]


async def test_a_namespace_that_goes_away_makes_no_noise(setup: Setup) -> None:
    setup.server()
    going = RefusedError(403, "is being terminated", "NamespaceTerminating")
    setup.kube.errors = {"apply services": going, "apply secrets": going, "create pods": going}
    assert await setup.reconcile(KEY) is None
    assert setup.names(PODS) == []
