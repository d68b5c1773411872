import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_sidecar.core import texts
from mcp_sidecar.core.pace import Pace

JSON = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_texts_taken_out_and_put_back_give_the_same_value(value: object) -> None:
    assert texts.put_back(value, texts.taken(value)) == value


def test_every_text_is_taken_keys_too() -> None:
    value = {"a": ["b", 1, None, {"c": "d"}], "e": 2.5}
    assert texts.taken(value) == ["a", "b", "c", "d", "e"]
    assert texts.put_back(value, list("ABCDE")) == {"A": ["B", 1, None, {"C": "D"}], "E": 2.5}


def test_a_list_that_changes_now_and_then_is_read_at_once() -> None:
    pace = Pace()
    assert pace.wait(100.0) == 0
    pace.began(100.0)
    assert pace.wait(100.05) == pytest.approx(0.05)
    assert pace.wait(200.0) == 0
    pace.began(200.0)
    assert pace.wait(200.0) == pytest.approx(0.1)


def test_a_list_that_keeps_changing_is_read_ever_more_seldom_until_it_rests() -> None:
    pace, now, readings = Pace(), 0.0, []
    while now < 600:
        now += pace.wait(now)
        pace.began(now)
        readings.append(now)
    assert len([at for at in readings if at < 30]) <= 10
    assert readings[-1] - readings[-2] == pytest.approx(30)
    calm = now + 100
    pace.began(calm)
    assert pace.wait(calm) == pytest.approx(0.1)


def test_a_list_that_cannot_be_read_is_tried_again_ever_later() -> None:
    pace = Pace()
    assert [pace.ended(failed=True) for _ in range(8)] == [5, 10, 20, 40, 80, 160, 300, 300]
    assert pace.ended(failed=False) is None
    assert pace.ended(failed=True) == 5
