"""The end-to-end tests lean on these servers: here they are held to what they promise, over plain pipes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SERVERS = Path(__file__).parents[1] / "e2e" / "servers"


class Piped:
    """One server process and the other end of its pipes."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(SERVERS / command[0]), *command[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.next_id = 0

    def send(self, **message: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()

    def request(self, method: str, **params: Any) -> Any:
        self.next_id += 1
        self.send(id=self.next_id, method=method, params=params)
        answer = json.loads(self.line())
        assert answer["id"] == self.next_id
        return answer.get("result", answer.get("error"))

    def call(self, tool: str, **arguments: Any) -> str:
        return str(self.request("tools/call", name=tool, arguments=arguments)["content"][0]["text"])


@contextmanager
def piped(*command: str) -> Iterator[Piped]:
    server = Piped(*command)
    with server.process:
        try:
            yield server
        finally:
            server.process.kill()


def test_raw_server_counts_its_handshakes() -> None:
    with piped("raw.py") as server:
        for _ in range(2):
            assert (
                server.request("initialize", protocolVersion="2025-06-18")["protocolVersion"] == "2025-06-18"
            )
        assert json.loads(server.call("stats"))["initializes"] == 2


def test_raw_server_never_speaks_a_revision_newer_than_its_own() -> None:
    with piped("raw.py") as server:
        assert server.request("initialize", protocolVersion="2999-01-01")["protocolVersion"] == "2025-11-25"


def test_raw_server_lists_its_tools_and_echoes() -> None:
    with piped("raw.py", "--tools", "2") as server:
        names = [tool["name"] for tool in server.request("tools/list")["tools"]]
        assert names[0] == "echo"
        assert names[-2:] == ["extra-0", "extra-1"]
        assert server.call("echo", text="é€😀漢") == "é€😀漢"
        assert len(server.call("big", bytes=100_000)) == 100_000


def test_raw_server_records_a_cancelled_call_and_does_not_answer_it() -> None:
    with piped("raw.py") as server:
        server.send(id=99, method="tools/call", params={"name": "sleep", "arguments": {"seconds": 60}})
        server.send(method="notifications/cancelled", params={"requestId": 99})
        assert json.loads(server.call("stats"))["cancelled"] == 1


def test_raw_server_answers_unknown_methods_and_tools_with_an_error() -> None:
    with piped("raw.py") as server:
        assert server.request("vendor/none")["code"] == -32601
        assert server.request("tools/call", name="none")["code"] == -32601


def test_raw_server_dies_by_the_signal_asked_for() -> None:
    with piped("raw.py") as server:
        die = {"name": "die", "arguments": {"signal": "SIGKILL"}}
        server.send(id=1, method="tools/call", params=die)
        assert server.process.wait(10) == -9


def test_raw_server_needs_the_variable_it_is_told_to_require() -> None:
    with piped("raw.py", "--require", "SURELY_NOT_SET") as server:
        assert server.process.wait(10) == 1


def test_raw_server_may_open_with_a_line_that_is_no_json() -> None:
    with piped("raw.py", "--banner") as server:
        assert server.line().startswith("Starting")
        assert server.request("ping") == {}


def test_raw_server_announces_a_changed_tool_list() -> None:
    with piped("raw.py") as server:
        server.send(id=1, method="tools/call", params={"name": "change", "arguments": {"burst": 2}})
        lines = [json.loads(server.line()) for _ in range(3)]
        assert [line.get("method") for line in lines] == ["notifications/tools/list_changed"] * 2 + [None]
        assert server.request("tools/list")["tools"][-1]["name"] == "extra-0"


def test_broken_server_exits_with_its_code_and_a_trace() -> None:
    with piped("broken.py", "exits", "--code", "7") as server:
        assert server.process.wait(10) == 7
        assert server.process.stderr
        assert "database is not reachable" in server.process.stderr.read()


def test_broken_server_answers_prose_or_refuses() -> None:
    with piped("broken.py", "chatter") as server:
        server.send(id=1, method="initialize")
        assert server.line() == "I do not speak JSON\n"
    with piped("broken.py", "refuses") as server:
        assert server.request("initialize")["message"] == "licence expired"
