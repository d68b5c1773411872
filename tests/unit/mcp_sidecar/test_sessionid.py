import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_sidecar.core import methods, revisions
from mcp_sidecar.core.sessionid import PROCESS_BYTES, RANDOM_BYTES, Signer, Ticket

SIGNER = Signer(b"key", "uid")
TICKETS = st.builds(
    Ticket,
    revision=st.sampled_from(revisions.LEGACY),
    capabilities=st.frozensets(st.sampled_from(methods.CLIENT_CAPABILITIES)),
    created_ms=st.integers(0, 2**48),
    process=st.binary(min_size=PROCESS_BYTES, max_size=PROCESS_BYTES),
    random=st.binary(min_size=RANDOM_BYTES, max_size=RANDOM_BYTES),
)
TICKET = Ticket("2025-06-18", frozenset({"sampling"}), 1_764_470_000_123, b"r" * RANDOM_BYTES)


@given(TICKETS, st.text())
def test_an_id_tells_what_was_signed(ticket: Ticket, subject: str) -> None:
    sid = SIGNER.sign(ticket, subject)
    assert SIGNER.verify(sid, subject) == ticket
    assert sid.isascii()
    assert sid.isprintable()
    assert " " not in sid


@pytest.mark.parametrize(
    ("signer", "subject"),
    [
        (Signer(b"other", "uid"), "s"),
        (Signer(b"key", "other"), "s"),
        (SIGNER, "t"),
        (Signer(b"key", "uids"), ""),
    ],
)
def test_an_id_is_worth_nothing_elsewhere(signer: Signer, subject: str) -> None:
    assert signer.verify(SIGNER.sign(TICKET, "s"), subject) is None


def test_a_changed_id_is_worth_nothing() -> None:
    sid = SIGNER.sign(TICKET, "s")
    for position in range(len(sid)):
        for character in "A_.=":
            changed = sid[:position] + character + sid[position + 1 :]
            assert changed == sid or SIGNER.verify(changed, "s") is None


@given(st.text() | st.binary().map(lambda b: b.decode("latin-1")))
def test_any_other_text_is_worth_nothing(text: str) -> None:
    assert SIGNER.verify(text, "s") is None
    assert SIGNER.verify(text * 100, "s") is None
