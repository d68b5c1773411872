"""Whole stories: decisions, the status written after each, and the next decision from that status."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from mcp_operator.core import backoff, status
from mcp_operator.core.api import MCPServerStatus, Phase, Reason, RecoveryAction
from mcp_operator.core.api.spec import Recovery
from mcp_operator.core.decide import decide
from mcp_operator.core.observation import Observation, PodFacts, RelayView
from mcp_operator.core.plan import Plan
from mcp_operator.core.refusal import Refusal, refused

CONTEXT = status.Context("image", "url")


class Story:
    """A world that goes on: plans are carried out, the status is kept, time passes."""

    def __init__(self, world: Any, **changes: Any) -> None:
        self.world = world
        self.seen: Observation = world.seen(
            **{"pods": (), "relay": RelayView(), "status": MCPServerStatus(), **changes}
        )
        self.created: list[tuple[float, int]] = []
        self.refusal: Refusal | None = None

    def step(self) -> Plan:
        """One reconcile."""
        plan = decide(self.seen)
        if plan.create_epoch is not None and self.refusal is not None:
            plan = refused(self.seen, plan, self.refusal)
        made = status.compute(self.seen, plan, CONTEXT)
        pods = tuple(pod for pod in self.seen.pods if pod not in plan.delete)
        if plan.create_epoch is not None:
            self.created.append(((self.seen.now - self.world.now).total_seconds(), plan.create_epoch))
            pods = (*pods, self.world.pending(epoch=plan.create_epoch, name=f"mcp-time-{plan.create_epoch}"))
        parsed = MCPServerStatus.parse(status.document(made))
        self.seen = replace(self.seen, status=parsed, pods=pods)
        return plan

    def settle(self) -> Plan:
        """Reconcile until nothing changes, as the events of its own writes would do."""
        plan = self.step()
        for _ in range(5):
            before = self.seen
            plan = self.step()
            if (before.status, before.pods) == (self.seen.status, self.seen.pods):
                return plan
        raise AssertionError("decisions do not come to rest")

    def wait(self, plan: Plan) -> None:
        """Let the time pass that the plan asked for."""
        assert plan.look_again is not None
        self.seen = replace(self.seen, now=plan.look_again)

    def pass_time(self, seconds: float) -> None:
        self.seen = replace(self.seen, now=self.seen.now + timedelta(seconds=seconds))

    def become(self, **changes: Any) -> None:
        """The newest pod changes."""
        newest: PodFacts = self.seen.pods[-1]
        self.seen = replace(self.seen, pods=(*self.seen.pods[:-1], replace(newest, **changes)))

    def run_up(self) -> None:
        now: datetime = self.seen.now
        running = replace(self.world.running(), started_at=now)
        self.become(phase="Running", ready=True, ip="10.0.0.2", server=running, relay=running)
        session = {
            "protocolVersion": "2025-11-25", "serverInfo": {"name": "x"}, "capabilities": {},
            "adopted": False,
            "since": now.timestamp(),
        }  # fmt: skip
        self.seen = replace(self.seen, relay=RelayView(self.world.report(session=session)))

    def die(self, code: int = 1) -> None:
        self.become(server=self.world.terminated(code), ready=False)
        self.seen = replace(self.seen, relay=RelayView())


def test_a_server_that_always_dies_gets_four_attempts_after_2_4_and_8_seconds_then_slow_ones(
    world: Any,
) -> None:
    story = Story(world)
    story.settle()
    for _ in range(5):
        story.run_up()
        story.settle()
        story.die()
        story.wait(story.settle())
        story.settle()
    assert story.created == [(0, 1), (2, 2), (6, 3), (14, 4), (314, 5), (614, 6)]
    assert story.seen.status.recovery is not None
    assert story.seen.status.recovery.restarts == 5


def test_an_operator_that_restarts_goes_on_where_it_was(world: Any) -> None:
    story = Story(world)
    story.settle()
    story.die()
    plan = story.settle()
    story.pass_time(300)
    assert plan.look_again is not None
    assert plan.look_again < story.seen.now
    story.settle()
    assert story.created == [(0, 1), (300, 2)]


def test_rare_blips_do_not_add_up(world: Any) -> None:
    story = Story(world)
    story.settle()
    for _ in range(6):
        story.run_up()
        story.settle()
        story.pass_time(601)
        assert story.settle().budget.failures == 0
        story.die()
        story.wait(story.settle())
        story.settle()
    assert story.seen.status.phase is not Phase.ERROR
    assert len(story.created) == 7


def flap(story: Story, state: str) -> None:
    """One second later the relay has just come to this."""
    story.pass_time(1)
    since = story.seen.now.timestamp()
    story.seen = replace(story.seen, relay=RelayView(story.world.report(state=state, since=since)))


def test_a_connection_that_breaks_again_and_again_is_given_up_at_the_deadline_of_the_first_break(
    world: Any,
) -> None:
    story = Story(world, pods=(world.pod(),))
    story.settle()
    for _ in range(59):
        flap(story, "Dropped")
        assert story.step().phase is Phase.RECONNECTING
        flap(story, "Connected")
        assert story.step().phase is Phase.CONNECTED
    assert story.seen.status.recovery is not None
    assert story.seen.status.recovery.drops_since == world.later(1)
    for _ in range(3):
        flap(story, "Dropped")
        plan = story.step()
    assert plan.failure is not None
    assert (plan.failure.reason, plan.budget.failures) == (Reason.TRANSPORT_DROPPED, 1)


def test_breaks_with_a_session_that_held_between_them_do_not_add_up(world: Any) -> None:
    story = Story(world, pods=(world.pod(),))
    story.settle()
    for _ in range(30):
        flap(story, "Dropped")
        assert story.step().phase is Phase.RECONNECTING
        flap(story, "Connected")
        story.wait(story.step())
        assert story.settle().budget.drops_since is None
    assert story.created == []


def test_success_alone_does_not_reset_the_count(world: Any) -> None:
    story = Story(world)
    story.settle()
    for _ in range(4):
        story.run_up()
        story.settle()
        story.pass_time(60)
        story.die()
        plan = story.settle()
        story.wait(plan)
        if plan.phase is not Phase.ERROR:
            story.settle()
    assert plan.phase is Phase.ERROR


def test_a_change_of_the_spec_revives_a_server_that_was_given_up(world: Any) -> None:
    story = Story(world)
    story.settle()
    for _ in range(4):
        story.die()
        plan = story.settle()
        if plan.phase is not Phase.ERROR:
            story.wait(plan)
            story.settle()
    assert plan.phase is Phase.ERROR
    story.pass_time(10)
    story.seen = replace(story.seen, generation=2, config_hash="new.refs")
    plan = story.step()
    assert (plan.action, plan.reason, plan.budget.failures) == (
        RecoveryAction.RECREATE, Reason.CONFIGURATION_CHANGED, 0,
    )  # fmt: skip


def test_a_server_that_comes_up_at_last_is_connected_and_not_stalled(world: Any) -> None:
    story = Story(world)
    story.settle()
    for _ in range(4):
        story.die()
        story.wait(story.settle())
        story.settle()
    story.run_up()
    assert story.settle().phase is Phase.CONNECTED
    assert "Stalled" not in {condition.type for condition in story.seen.status.conditions}


def test_a_refused_pod_costs_retries_and_makes_no_hot_loop(world: Any) -> None:
    story = Story(world)
    story.refusal = Refusal(403, 'pods "x" is forbidden: exceeded quota: memory')
    times = []
    for _ in range(4):
        plan = story.settle()
        times.append(plan.budget.failures)
        story.wait(plan)
    assert times == [1, 2, 3, 4]
    assert plan.phase is Phase.ERROR
    assert story.seen.status.error is not None
    assert story.seen.status.error.reason == Reason.QUOTA_EXCEEDED
    story.refusal = None
    story.settle()
    assert [epoch for _, epoch in story.created] == [1]


def test_a_missing_runtime_class_is_an_error_at_once_and_costs_no_retry(world: Any) -> None:
    story = Story(world)
    story.refusal = Refusal(403, 'pod rejected: RuntimeClass "kata" not found')
    plan = story.settle()
    assert (plan.phase, plan.budget.failures) == (Phase.ERROR, 0)
    assert story.seen.status.error is not None
    assert "spec.runtimeClassName" in story.seen.status.error.message
    story.wait(plan)
    story.refusal = None
    story.settle()
    assert story.created == [(30, 1)]


def test_a_quota_that_the_old_pod_still_holds_costs_nothing(world: Any) -> None:
    story = Story(world, pods=(world.pod(deleting=True),))
    story.refusal = Refusal(403, 'pods "x" is forbidden: exceeded quota: memory')
    plan = story.settle()
    assert (plan.phase, plan.budget.failures) == (Phase.RECREATING, 0)
    story.refusal = None
    story.seen = replace(story.seen, pods=())
    story.settle()
    assert [epoch for _, epoch in story.created] == [2]


def test_a_foreign_pod_with_our_name_is_named_and_left_alone(world: Any) -> None:
    story = Story(world)
    story.refusal = Refusal(409, 'the pod "mcp-time-1" exists and belongs to someone else: delete it')
    plan = story.settle()
    assert story.seen.status.error is not None
    assert story.seen.status.error.reason == Reason.OWNERSHIP_CONFLICT
    story.wait(plan)
    story.refusal = None
    story.settle()
    assert [epoch for _, epoch in story.created] == [1]


def test_a_namespace_that_goes_away_is_no_failure(world: Any) -> None:
    story = Story(world)
    story.refusal = Refusal(403, "because it is being terminated", "NamespaceTerminating")
    plan = story.settle()
    assert (plan.phase, plan.budget.failures, plan.look_again) == (Phase.TERMINATING, 0, None)


@pytest.mark.parametrize(
    ("failures", "recovery", "seconds"),
    [
        (1, {}, 2), (2, {}, 4), (3, {}, 8), (4, {}, 300), (9, {}, 300),
        (1, {"max_retries": 0}, 300),
        (5, {"max_retries": 6}, 8),
        (4, {"retry_after_error_seconds": 0}, None),
        (2, {"backoff_seconds": (7,)}, 7),
    ],
)  # fmt: skip
def test_delays_are_data(failures: int, recovery: dict[str, Any], seconds: float | None) -> None:
    assert backoff.delay(failures, Recovery(**recovery)) == seconds


def test_ten_evictions_leave_no_corpses_and_stay_inside_the_budget(world: Any) -> None:
    story = Story(world)
    story.settle()
    for _ in range(10):
        story.become(phase="Failed", reason="Evicted", message="The node was low on disk.", ready=False)
        plan = story.settle()
        assert plan.failure is not None
        assert (plan.failure.reason, plan.failure.message) == (Reason.EVICTED, "The node was low on disk.")
        story.wait(plan)
        story.settle()
        assert len(story.seen.pods) == 1
    assert [moment for moment, _ in story.created[:6]] == [0, 2, 6, 14, 314, 614]
    assert story.seen.status.error is not None
    assert story.seen.status.error.reason == Reason.EVICTED


def test_a_server_that_refuses_initialize_for_ten_minutes_is_told_of_in_few_writes(world: Any) -> None:
    story = Story(world)
    story.settle()
    refusal = {"phase": "Initialize", "reason": "Error", "message": "no licence"}
    written = [story.seen.status]
    for _ in range(600):
        if not story.seen.pods[-1].server.running:
            story.run_up()
        report = world.report(state="Refused", session=None, error=refusal, toolCount=None, tools=[])
        story.seen = replace(story.seen, relay=RelayView(report))
        story.step()
        if story.seen.status != written[-1]:
            written.append(story.seen.status)
        story.pass_time(1)
    assert len(story.created) == 5  # the fifth is the slow attempt after 300 s
    assert len(written) <= 4 * len(story.created)


def test_the_looks_of_a_server_that_can_never_be_pulled_change_nothing(world: Any) -> None:
    story = Story(world)
    story.settle()
    name = "registry.example.com/absent:1"
    states = [
        world.waiting("ErrImagePull", f'failed to pull "{name}": not found'),
        world.waiting("ImagePullBackOff", f'Back-off pulling image "{name}"'),
    ]
    story.become(relay=world.running(), server=states[0])
    plan = story.settle()
    assert (plan.reason, plan.look_again) == (Reason.IMAGE_PULL_FAILED, None)
    told = story.seen.status
    for number in range(1, 20):
        story.pass_time(60)
        story.become(server=states[number % 2])
        story.step()
        assert story.seen.status == told
