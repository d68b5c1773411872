"""Stories that ended badly once."""

import tempfile
from pathlib import Path

from simkit.clock import made_up_time
from simkit.parties import Fate
from simkit.world import Step, World, play


def tell(*steps: tuple[str, int, int], call_timeout: float = 30.0) -> World:
    """Play steps, each settled; the model has held everything against what was promised."""
    with tempfile.TemporaryDirectory() as directory, made_up_time() as loop:
        return play(Path(directory), loop, [Step(*step, settle=True) for step in steps], call_timeout)


def test_the_server_hears_of_a_cancellation_that_came_while_its_connection_was_made_again() -> None:
    world = tell(("call", 0, 0), ("drop", 0, 0), ("cancel", 0, 0), ("pause", 2, 0))
    (call,) = world.model.asks
    assert (call.fate, call.told) == (Fate.CANCELLED, True)


def test_the_server_hears_of_a_timeout_that_came_while_its_connection_was_made_again() -> None:
    almost = [("pause", which, 0) for which in (5, 4, 3, 1, 0, 0, 0, 0, 0)]  # 29.965 s
    world = tell(("call", 0, 0), *almost, ("drop", 0, 0), ("pause", 2, 0))
    (call,) = world.model.asks
    assert (call.fate, call.told) == (Fate.TIMED_OUT, True)


def test_the_server_gets_an_answer_that_came_while_its_connection_was_made_again() -> None:
    world = tell(("call", 0, 0), ("ask", 0, 0), ("drop", 0, 0), ("reply", 0, 1), ("pause", 2, 0))
    (question,) = world.model.questions
    assert [message["result"] for message in question.got] == [{"reply": question.answer}]


def test_a_question_is_not_put_to_a_connection_whose_client_has_left() -> None:
    world = tell(("call", 0, 0), ("hang_up", 0, 0), ("ask", 0, 0))
    (question,) = world.model.questions
    assert [message["error"]["code"] for message in question.got] == [-32601]


def test_a_question_reaches_a_client_that_left_one_connection_and_listens_on_another() -> None:
    world = tell(("call", 0, 0), ("listen", 0, 0), ("hang_up", 0, 0), ("ask", 0, 0), ("reply", 0, 1))
    (question,) = world.model.questions
    assert [message["result"] for message in question.got] == [{"reply": question.answer}]


def test_a_call_that_was_given_up_stops_being_its_clients_business_in_time() -> None:
    world = tell(
        *(("call", 0, 0), ("pause", 5, 0), ("call", 0, 1), ("call", 1, 0), ("cancel", 1, 0)),
        *(("pause", 3, 0), ("pause", 3, 0), ("pause", 1, 0), ("note", 0, 0)),
    )
    assert world.model.notes == [world.model.clients[0]]


def test_calls_that_wait_for_the_server_begin_in_the_order_they_came() -> None:
    calls = [("call", 0, 1 + number) for number in range(6)]
    world = tell(("drop", 0, 0), *calls, ("pause", 2, 0))
    numbers = [call.number for call in world.model.asks]
    assert None not in numbers
    assert numbers == sorted(number for number in numbers if number is not None)


def test_a_process_that_ends_while_its_tools_are_read_leaves_no_reader_behind() -> None:
    tell(("hold", 0, 0), ("kill_relay", 0, 0), ("change_tools", 0, 0), ("die", 0, 0))
