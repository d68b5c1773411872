"""From the server to the clients: every line of the server's output."""

import logging
from collections.abc import Callable
from typing import Any

from mcp_sidecar import log
from mcp_sidecar.core import attribution, frames, jsontext, lines, methods
from mcp_sidecar.core.document import cut
from mcp_sidecar.core.lines import Line, Oversized
from mcp_sidecar.core.toolfilter import ToolFilter
from mcp_sidecar.session.calls import Call, RefusedError
from mcp_sidecar.session.clients import Client
from mcp_sidecar.session.modern.bridge import Answerer
from mcp_sidecar.session.shared import MAX_ASKED, Asked, Shared

_NOISE_LOGGED = 20
_NOISE_SHOWN = 200


class Inbound:
    """Routes messages of the server. Called from the reader: it never waits."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._table = shared.table
        self._noise = 0
        self.about: int | None = None
        """Number of the call on whose own stream the message came that is routed; None: not known."""
        self.on_tools_changed: Callable[[], None] = lambda: None
        self.on_noise: Callable[[str], None] = lambda _line: None
        """Told of the first lines that are no messages, cut."""
        self.before: Callable[[frames.Frame], frames.Frame | None] = lambda frame: frame
        """Sees the notifications of a server without sessions first; gives what is left to do."""
        self._notices: dict[str, Callable[[frames.Frame], None]] = {
            "notifications/progress": self._progress,
            "notifications/message": self._log_message,
            "notifications/cancelled": self._cancelled,
            "notifications/resources/updated": self._resource_updated,
            **dict.fromkeys(methods.LIST_CHANGED, self._list_changed),
        }

    def line(self, line: Line) -> None:
        """Take one line of the server's output."""
        if len(line) > frames.TRUSTED_BYTES:
            big = frames.big_answer(line)
            if big is not None and jsontext.is_utf8(line):
                self._answer(big.id, line, big.start, big.end, big.failed)
                return
        text = bytes(line)
        try:
            frame = frames.parse(text)
        except frames.FrameError:
            repaired = self._repaired(text)
            if repaired is None:
                return
            frame = repaired
        if frame.kind is frames.RESPONSE:
            self._response(frame)
        elif frame.kind is frames.REQUEST:
            self._request(frame)
        else:
            self._notification(frame)

    def _notification(self, frame: frames.Frame) -> None:
        left = self.before(frame) if self._shared.modern else frame
        if left is not None:
            self._notices.get(left.method, self._other)(left)

    def _repaired(self, line: bytes) -> frames.Frame | None:
        """A frame that is one but for some bytes that are not UTF-8; everything else is noise."""
        try:
            line.decode()
        except UnicodeDecodeError:
            try:
                frame = frames.parse(line.decode("utf-8", "replace").encode())
            except frames.FrameError:
                self._drop_noise(line)
                return None
            self._shared.metrics.count("mcp_relay_stdout_lines_dropped", "invalid_utf8_repaired")
            return frame
        self._drop_noise(line)
        return None

    def _drop_noise(self, line: bytes) -> None:
        if not line.strip():
            return
        number = frames.answer_id(line[: lines.HEAD_BYTES], line[-lines.TAIL_BYTES :])
        if number is not None:
            self._fail(number, "invalid", "The server's answer is not valid JSON", {"reason": "invalid_json"})
        self._shared.metrics.count("mcp_relay_stdout_lines_dropped", "noise")
        self._noise += 1
        if self._noise <= _NOISE_LOGGED:
            self.on_noise(cut(line[: 4 * _NOISE_SHOWN].decode("utf-8", "replace"), _NOISE_SHOWN))

    def oversized(self, line: Oversized) -> None:
        """A line above the limit was dropped: only the call that it answers fails."""
        self._shared.metrics.count("mcp_relay_stdout_lines_dropped", "oversized")
        log.event("stdout_line_oversized", logging.WARNING, bytes=line.size)
        # Never guessed: an answer that comes yet would find its call gone.
        number = frames.answer_id(line.head, line.tail)
        if number is not None:
            limit = self._shared.settings.max_message_bytes
            text = f"The server's answer of {line.size} bytes is larger than the limit of {limit} bytes"
            data = {"reason": "message_too_large", "bytes": line.size, "limit": limit}
            self._fail(number, "oversized", text, data)

    def _fail(self, number: int, outcome: str, text: str, data: dict[str, Any]) -> None:
        """End a request whose answer came, but cannot be used."""
        on_answer = self._table.take_own(number)
        if on_answer is not None:
            on_answer(frames.unusable(text))
            return
        call = self._table.take(number)
        if call is not None:
            call.refuse(RefusedError(frames.SERVER_ERROR, text, data), outcome)

    def _response(self, frame: frames.Frame) -> None:
        number = frames.own_id(frame.id)
        if number is None:
            self._shared.metrics.count("mcp_relay_messages_dropped", "unknown_id")
            return
        self._answer(number, frame.data, frame.start, frame.end, frame.failed)

    def _answer(self, number: int, line: Line, start: int, end: int, failed: bool) -> None:
        on_answer = self._table.take_own(number)
        if on_answer is not None:
            on_answer(frames.message(line))
            return
        call = self._table.take(number)
        if call is None:
            self._shared.metrics.count("mcp_relay_messages_dropped", "late_answer")
            return
        if self._shared.tools is not None and call.method == "tools/list" and not failed:
            self._answer_list(call, self._shared.tools, line)
            return
        call.answered(line, start, end, failed)

    def _answer_list(self, call: Call, tools: ToolFilter, line: Line) -> None:
        """Without the tools that are not for clients; a list that cannot be read is told to nobody."""
        try:
            answer = frames.parse(tools.answer(bytes(line)))
        except (jsontext.JsonError, frames.FrameError) as error:
            text = f"The server's list of tools cannot be read: {error}"
            call.refuse(RefusedError(frames.SERVER_ERROR, text), "error")
            return
        call.answered(answer.data, answer.start, answer.end, failed=False)

    def _request(self, frame: frames.Frame) -> None:
        shared = self._shared
        if shared.modern:  # which may send none, and gets no answers
            shared.metrics.count("mcp_relay_server_requests", "refused")
            return
        if frame.method == "ping":
            shared.say(frames.result(frame.raw_id))
            return
        wanted = methods.SERVER_REQUESTS.get(frame.method)
        owner = self._owner()
        if owner is None or wanted not in owner.capabilities or not self._ask(owner, frame):
            shared.metrics.count("mcp_relay_server_requests", "refused")
            text = (
                f"{frame.method} cannot be passed on: no client is known to be concerned and able to answer"
            )
            shared.say(frames.error(frame.raw_id, frames.METHOD_NOT_FOUND, text))

    def _ask(self, owner: Client, frame: frames.Frame) -> bool:
        if len(self._shared.asked) >= MAX_ASKED:
            return False
        number = self._table.number()
        question = frame.with_id(b"%d" % number)
        if not (owner.ask(number, frame) if isinstance(owner, Answerer) else self.deliver(owner, question)):
            return False
        self._shared.asked[number] = Asked(owner, frame.id, frame.raw_id)
        self._shared.metrics.count("mcp_relay_server_requests", "delivered")
        return True

    def _owner(self) -> Client | None:
        call = self._concerned()
        owner = attribution.sole_owner(self._table.owners()) if call is None else call.client
        return None if owner is None or owner.ended else owner

    def _concerned(self) -> Call | None:
        return None if self.about is None else self._table.get(self.about)

    def deliver(self, owner: Client, data: bytes) -> bool:
        """To a client: on the stream of the call concerned, or of its only one, else on its GET stream."""
        concerned = self._concerned()
        if concerned is not None and concerned.client is owner and concerned.tell((data,)):
            return True
        numbers = list(owner.calls.values())
        if len(numbers) != 1 and owner.stream is not None and owner.stream.put((data,)):
            return True
        for number in reversed(numbers):
            call = self._table.get(number)
            if call is not None and call.tell((data,)):
                return True
        return len(numbers) == 1 and owner.stream is not None and owner.stream.put((data,))

    def _dropped(self, reason: str) -> None:
        self._shared.metrics.count("mcp_relay_messages_dropped", reason)

    def _progress(self, frame: frames.Frame) -> None:
        number = frames.own_id(frame.params.get("progressToken"))
        call = self._table.get(number) if number is not None else None
        if number is None or call is None or call.token is None:
            self._dropped("progress_without_call")
            return
        self._table.progressed(number)
        data = jsontext.replace(frame.data, call.token, "params", "progressToken")
        if not call.tell((data,)):
            self._dropped("no_stream")

    def _log_message(self, frame: frames.Frame) -> None:
        owner = self._owner()
        if owner is None:
            self._dropped("log_without_owner")
        elif owner.hears(frame.params.get("level"), self._shared.interests) and not self.deliver(
            owner, frame.data
        ):
            self._dropped("no_stream")

    def _cancelled(self, frame: frames.Frame) -> None:
        wanted: Any = frame.params.get("requestId")
        for number, asked in self._shared.asked.items():
            if asked.id == wanted and type(asked.id) is type(wanted):
                del self._shared.asked[number]
                if isinstance(asked.client, Answerer):
                    asked.client.withdraw(number)
                    return
                self.deliver(
                    asked.client, jsontext.replace(frame.data, b"%d" % number, "params", "requestId")
                )
                return

    def _resource_updated(self, frame: frames.Frame) -> None:
        uri = frame.params.get("uri")
        for key in self._shared.interests.wanted_by(uri) if isinstance(uri, str) else ():
            client = self._shared.clients.by_key(key)
            if client is None or not client.updated(frame.data):
                self._dropped("no_stream")

    def _list_changed(self, frame: frames.Frame) -> None:
        for client in self._shared.clients:
            client.list_changed(frame.method, frame.data)
        if frame.method == "notifications/tools/list_changed":
            self.on_tools_changed()

    def _other(self, frame: frames.Frame) -> None:
        owner = self._owner()
        if owner is None or not self.deliver(owner, frame.data):
            self._dropped("notification_without_owner")
