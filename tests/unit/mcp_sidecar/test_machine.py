import itertools

import pytest

from mcp_relay_api.status import RelayState
from mcp_sidecar.core.machine import TRANSITIONS, IllegalInputError, Input, Machine, State

EVERY = list(itertools.product(State, Input))


def at(state: State) -> Machine:
    machine = Machine()
    machine.state = state
    return machine


def test_the_states_are_those_of_the_contract() -> None:
    assert [state.value for state in State] == [state.value for state in RelayState]


@pytest.mark.parametrize(("state", "happened"), [pair for pair in EVERY if pair not in TRANSITIONS])
def test_an_illegal_input_raises_and_changes_nothing(state: State, happened: Input) -> None:
    machine = at(state)
    with pytest.raises(IllegalInputError):
        machine.feed(happened)
    assert machine.state is state


@pytest.mark.parametrize(("state", "happened"), list(TRANSITIONS))
def test_a_legal_input_leads_where_the_table_says(state: State, happened: Input) -> None:
    machine = at(state)
    assert machine.feed(happened) is (TRANSITIONS[state, happened] is not state)
    assert machine.state is TRANSITIONS[state, happened]


@pytest.mark.parametrize("happened", list(Input))
def test_terminating_is_the_end(happened: Input) -> None:
    machine = at(State.TERMINATING)
    machine.feed(happened)
    assert machine.state is State.TERMINATING


@pytest.mark.parametrize("happened", [Input.LOST, Input.EXITED, Input.TERMINATING])
@pytest.mark.parametrize("state", list(State))
def test_ends_may_come_at_any_time(state: State, happened: Input) -> None:
    at(state).feed(happened)


def test_only_the_handshake_makes_a_session() -> None:
    sources = {(state, happened) for (state, happened), to in TRANSITIONS.items() if to is State.CONNECTED}
    assert sources == {(State.CONNECTING, Input.READY), (State.DROPPED, Input.READY)}
