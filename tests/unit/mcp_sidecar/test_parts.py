import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_sidecar.core import frames
from mcp_sidecar.core.sessionid import Signer
from mcp_sidecar.session import store as stores
from mcp_sidecar.session.calls import MAX_EVENTS, Call, Outbox, RefusedError
from mcp_sidecar.session.clients import Clients
from mcp_sidecar.session.store import Store


def test_the_relay_imports_nothing_heavy() -> None:
    heavy = ["pydantic", "mcp", "starlette", "h11", "anyio", "prometheus_client", "httpx", "argparse"]
    heavy += ["jwt", "cryptography"]
    code = f"import sys, mcp_sidecar.pod; print([m for m in {heavy!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["mcp_sidecar.pod", "uvloop", "mcp_sidecar.session.relay"])
def test_a_relay_told_to_stop_while_it_is_being_loaded_stops(module: str) -> None:
    code = f"""
import importlib.abc, os, runpy, signal, sys
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGTERM)
sys.meta_path.insert(0, Finder())
sys.argv = ["mcp_sidecar"]
runpy.run_module("mcp_sidecar", run_name="__main__")
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")


async def test_a_queue_that_grows_too_long_is_given_up_but_one_large_event_passes() -> None:
    outbox, cut = Outbox(), asyncio.Event()
    outbox.on_overflow = cut.set
    assert outbox.put((b"x" * 50_000_000,))
    assert not outbox.put((b"y",))
    assert cut.is_set()
    assert (outbox.overflown, outbox.pop(), outbox.put((b"z",))) == (True, None, False)
    many = Outbox()
    assert [many.put((b"x",)) for _ in range(MAX_EVENTS + 1)][-2:] == [True, False]


async def test_whoever_waits_for_events_wakes_at_the_first_and_at_the_end() -> None:
    outbox = Outbox()
    assert not await outbox.wait(0.01)
    waiting = asyncio.create_task(outbox.wait(5))
    await asyncio.sleep(0)
    outbox.put((b"x",))
    assert await waiting
    assert outbox.pop() == (b"x",)
    waiting = asyncio.create_task(outbox.wait(5))
    await asyncio.sleep(0)
    outbox.close()
    assert await waiting


def test_what_the_store_was_told_is_known_after_a_restart(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert (store.starts, store.handshakes, store.answer, store.refused) == (1, 0, None, None)
    store.begin("abc", 17)
    again = Store(tmp_path)
    assert (again.starts, again.handshakes, again.incarnation, again.request_id) == (2, 1, "abc", 17)
    assert again.answer is None
    again.finish({"protocolVersion": "x", "odd": "\ud800"}, 5.0)
    again.save_interests({"levels": {"a": "info"}})
    third = Store(tmp_path)
    assert (third.answer, third.since) == ({"protocolVersion": "x", "odd": "\ud800"}, 5.0)
    assert third.interests == {"levels": {"a": "info"}}
    third.refuse({"reason": "no"})
    assert Store(tmp_path).refused == {"reason": "no"}
    third.begin("def", 18)
    assert (third.answer, third.refused, third.handshakes) == (None, None, 2)


def test_a_store_that_cannot_write_goes_on_in_memory_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "state"
    store = Store(folder)
    store.end_session("first")
    folder.rename(tmp_path / "away")
    for number in range(3):
        store.begin(f"process{number}", number)
        store.finish({"protocolVersion": "x"}, 5.0)
        store.save_interests({"levels": {}})
        store.end_session(f"s{number}")
    assert (store.incarnation, store.handshakes, store.is_ended("s2")) == ("process2", 3, True)
    assert len(caplog.records) == 3  # one a file
    (tmp_path / "away").rename(folder)
    store.finish({"protocolVersion": "y"}, 6.0)
    store.end_session("last")
    again = Store(folder)
    assert (again.incarnation, again.answer) == ("process2", {"protocolVersion": "y"})
    assert [again.is_ended(key) for key in ("first", "s0", "s1", "s2", "last")] == [True] * 5


def test_a_store_that_cannot_write_at_the_start_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "handshake.json.new").mkdir()
    with pytest.raises(OSError, match="handshake"):
        Store(tmp_path)


async def test_whoever_waits_for_a_call_is_woken_whatever_follows_from_its_end(tmp_path: Path) -> None:
    def fails(_ok: bool) -> None:
        raise OSError("no room")

    client = Clients(Signer(b"k", "u"), Store(tmp_path), 10, 60).open({}, "s")
    frame = frames.parse(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    call = Call(client, frame, 0.0, sse=True)
    assert call.tell((b"news",))
    woken: list[bool] = []
    call.watcher = lambda: woken.append(True)
    call.on_result = fails
    with pytest.raises(OSError, match="no room"):
        call.finish((b"answer",), "ok")
    assert woken == [True]
    assert call.outbox is not None
    assert call.outbox.closed


def test_ended_sessions_are_remembered_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "MAX_ENDED", 3)
    store = Store(tmp_path)
    for number in range(9):
        store.end_session(f"s{number}")
        store.end_session(f"s{number}")
    assert [store.is_ended(f"s{n}") for n in range(9)] == [False] * 6 + [True] * 3
    again = Store(tmp_path)
    assert [again.is_ended(f"s{n}") for n in range(9)] == [False] * 6 + [True] * 3
    assert len((tmp_path / "ended").read_text().split()) <= 7


@pytest.mark.parametrize("broken", ["", "[]", "{", '{"starts": "x", "handshakes": -1, "answer": []}'])
def test_a_broken_state_file_counts_as_absent(tmp_path: Path, broken: str) -> None:
    (tmp_path / "handshake.json").write_text(broken)
    store = Store(tmp_path)
    assert (store.starts, store.handshakes, store.answer) == (1, 0, None)
    assert json.loads((tmp_path / "handshake.json").read_text())["starts"] == 1


async def test_a_session_belongs_to_the_subject_that_opened_it(tmp_path: Path) -> None:
    clients = Clients(Signer(b"k", "u"), Store(tmp_path), 10, 60)
    client = clients.open(
        {"capabilities": {"sampling": {}, "odd": {}}, "protocolVersion": "2025-03-26"}, "alice"
    )
    assert (client.capabilities, client.revision) == (frozenset({"sampling"}), "2025-03-26")
    assert clients.find(client.sid, "bob") is None
    assert clients.find(client.sid, "alice") is client
    restored = Clients(Signer(b"k", "u"), Store(tmp_path), 10, 60)
    assert restored.find(client.sid, "bob") is None
    again = restored.find(client.sid, "alice")
    assert again is not None
    assert (again.key, again.capabilities, again.revision) == (
        client.key,
        client.capabilities,
        client.revision,
    )
    restored.end(again, "deleted")
    restored.end(again, "deleted")
    assert restored.find(client.sid, "alice") is None
    assert len(restored) == 0


async def test_a_session_in_use_is_never_ended_for_room(tmp_path: Path) -> None:
    clients = Clients(Signer(b"k", "u"), Store(tmp_path), 1, 60)
    first = clients.open({}, "s")
    first.open_stream()
    with pytest.raises(RefusedError, match="in use"):
        clients.open({}, "s")
    clients.find(first.sid, "s")
    assert first.stream is not None
    first.close_stream(first.stream, 0.0)
    second = clients.open({}, "s")
    assert (first.ended, second.ended) == (True, False)
