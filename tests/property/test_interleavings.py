"""Random stories of clients, server and connections, each held against a model of what was promised."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from simkit.clock import made_up_time
from simkit.world import Step, play

# How often a step is taken, compared with the others; the first is what failing stories are made of.
WEIGHTS = {
    "pause": 8, "call": 24, "answer": 20, "cancel": 8, "progress": 8, "answer_again": 4, "answer_nobody": 1,
    "connect": 2, "delete": 1, "listen": 3, "hang_up": 3, "ask": 5, "reply": 5, "withdraw": 1, "note": 3,
    "change_tools": 2, "ping": 1, "noise": 1, "hold": 2, "release": 4, "drop": 4, "reconnect": 2, "die": 2,
    "restart": 4, "introduce": 2, "kill_relay": 1, "terminate": 1,
}  # fmt: skip

steps = st.builds(
    Step,
    st.sampled_from([what for what, weight in WEIGHTS.items() for _ in range(weight)]),
    st.integers(0, 255),
    st.integers(0, 255),
    st.sampled_from([True, False]),
)


@given(st.lists(steps, min_size=10, max_size=60), st.sampled_from([30.0, 100.0]))
def test_no_answer_is_wrong_lost_or_given_twice(story: list[Step], call_timeout: float) -> None:
    with tempfile.TemporaryDirectory() as directory, made_up_time() as loop:
        play(Path(directory), loop, story, call_timeout)
