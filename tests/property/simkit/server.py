"""What the server and its launcher do, one method a step."""

from functools import partial

from mcp_sidecar.session.relay import Relay
from simkit.clock import Loop
from simkit.launcher import Launcher
from simkit.model import Model
from simkit.parties import Ask, Json, Question

QUESTIONS = ("sampling/createMessage", "elicitation/create", "roots/list", "vendor/ask")
_WANTED = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}
_PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d,"progressToken":%b}}'
_BIG = b"x" * 70_000
# Around the id: answers as servers write them.
FORMS = (
    (b'{"jsonrpc":"2.0","id":', b',"result":{"content":[],"tag":%d}}'),
    (b'{"result":{"tag":%d,"id":7,"x":{"id":"1"}},"jsonrpc":"2.0","id":', b"}"),
    (
        b'{ "id" : ',
        b' , "error" : {"code":-5,"message":"\xc3\xa9\xe6\xbc\xa2","data":{"tag":%d}} , "jsonrpc":"2.0" }',
    ),
    (b'{"jsonrpc":"2.0","result":{"s":"\\"id\\":5,","tag":%d,"big":1e400},"id":', b',"vendor":null}'),
    (b'{"jsonrpc":"2.0","id":', b',"result":{"tag":%d,"big":"' + _BIG + b'"}}'),
    (b'{"jsonrpc":"2.0","result":{"tag":%d,"big":"' + _BIG + b'"},"id":', b"}"),
)
NOISE = (
    b"Starting...",
    b"",
    b"{broken",
    b"[1,2]",
    b"\xff\xfe",
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":null,"result":1}',
)


class ServerSteps:
    """The server behind the launcher; what it writes is told to the model when the relay gets it."""

    def __init__(self, loop: Loop, model: Model) -> None:
        self._model = model
        self.launcher = Launcher(loop)
        self.launcher.on_refused = model.process_gone
        self.launcher.on_greeting = self._greets
        self.launcher.on_introduced = model.lists_changed
        self.launcher.on_message = self._got
        loop.acceptor = self.launcher
        self._served: list[Ask] = []
        """Calls the process has and did not answer, the oldest first."""
        self._done: list[Ask] = []
        self._met = 0
        self._terminating = False
        self._relays = 0
        self._pings = 0
        self.pongs = 0

    def meet(self, relay: Relay) -> None:
        """A new relay connects."""
        self._relay = relay
        self._relays += 1
        self._terminating = False

    # What it says.

    def answer(self, a: int, b: int) -> None:
        """Answers a call, in one of many forms, perhaps cut in two."""
        if self._served:
            ask = self._served.pop(a % len(self._served))
            self._done.append(ask)
            self._answer(ask, b)

    def answer_again(self, a: int, b: int) -> None:
        """Answers a call that it answered before."""
        if self._done:
            self._answer(self._done[a % len(self._done)], b)

    def _answer(self, ask: Ask, b: int) -> None:
        form = FORMS[b % len(FORMS)]
        before, after = (part % ask.tag if b"%d" in part else part for part in form)
        number = b"%d" % (ask.number or 0)
        if b // 6 % 4 == 3 and len(before) < 1000 and len(after) < 1000:
            number = b'"%b"' % number  # some servers turn numbers into strings
        event = partial(self._model.answered, ask, before + ask.raw_id + after)
        self.launcher.put(before + number + after, event, cut=b // 32 * 11)

    def answer_nobody(self, a: int, _b: int) -> None:
        """Answers a request that nobody sent."""
        number = (b"1", b'"1"', b"4294967295", b"-1", b"1.5", b"99999999999999999999", b"true")[a % 7]
        self.launcher.put(b'{"jsonrpc":"2.0","id":%b,"result":{}}' % number)

    def progress(self, a: int, b: int) -> None:
        """Reports progress of a call, or of one that has ended."""
        known = [*self._served, *self._done[-2:]]
        if known:
            ask = known[a % len(known)]
            event = partial(self._model.progressed, ask, _PROGRESS % (b, ask.token or b"-"))
            self.launcher.put(_PROGRESS % (b, b"%d" % (ask.number or 0)), event, cut=b // 64 * 30)

    def ask(self, a: int, b: int) -> None:
        """Asks something."""
        method, tag = QUESTIONS[a % len(QUESTIONS)], len(self._model.questions)
        raw_id = b'"%d"' % tag if b % 2 else b"%d" % tag
        question = Question(tag, raw_id, None)
        self._model.questions.append(question)
        text = b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":{"question":%d}}'
        event = partial(self._model.asked, question, _WANTED.get(method))
        if not self.launcher.put(text % (raw_id, method.encode(), tag), event):
            question.lost = True

    def withdraw(self, a: int, _b: int) -> None:
        """Does not want to know any more."""
        if self._model.questions:
            question = self._model.questions[a % len(self._model.questions)]
            text = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}'
            self.launcher.put(text % question.raw_id, partial(self._model.withdrew, question))

    def note(self, _a: int, _b: int) -> None:
        """Writes a log message."""
        tag = self._model.new_note()
        text = (
            b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"note":%d}}}'
        )
        self.launcher.put(text % tag, partial(self._model.noted, tag))

    def change_tools(self, _a: int, _b: int) -> None:
        """Says that its tools changed."""
        text = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
        self.launcher.put(text, self._model.lists_changed)

    def ping(self, _a: int, _b: int) -> None:
        """Asks whether anybody is there."""
        self.launcher.put(b'{"jsonrpc":"2.0","id":"ping","method":"ping"}')

    def noise(self, a: int, _b: int) -> None:
        """Writes what is no message."""
        self.launcher.put(NOISE[a % len(NOISE)])

    def hold(self, _a: int, _b: int) -> None:
        """Writes all that follows in one go, later."""
        self.launcher.held = True

    def release(self, _a: int, _b: int) -> None:
        """Writes what it held back, or the rest of a line."""
        self.launcher.release()

    # What becomes of it.

    def drop(self, _a: int, _b: int) -> None:
        """The connection to the relay breaks."""
        if self.launcher.pipe is not None:
            self._model.wire_cut()
        self.launcher.drop()

    def reconnect(self, _a: int, _b: int) -> None:
        """The operator has the relay connect anew."""
        self._relay.upstream.link.reconnect()

    def die(self, a: int, _b: int) -> None:
        """The process ends: it is reported, it takes the launcher with it, or it only closes its output."""
        if self.launcher.refusing or self.launcher.mute:
            return
        self.launcher.release()
        if a % 3 == 0:
            connected = self.launcher.pipe is not None
            self.launcher.end()
            if connected:
                self._model.process_gone()
        elif a % 3 == 1:
            self._model.wire_cut()
            self.launcher.vanish()
        elif self.launcher.pipe is not None:
            self.launcher.say({"event": "stdout-closed"})
            self.launcher.mute = True
            self._model.process_gone()
        if self.launcher.refusing or self.launcher.mute:
            self._served.clear()
            self._done.clear()

    def restart(self, a: int, _b: int) -> None:
        """A new process takes the place of one that ended; a shy one makes the relay wait."""
        if self.launcher.mute:
            self.launcher.vanish()
        if self.launcher.refusing:
            self.launcher.start(shy=a % 3 == 0)

    def introduce(self, _a: int, _b: int) -> None:
        """A shy process answers `initialize`."""
        self.launcher.introduce()

    def terminate(self, _a: int, _b: int) -> None:
        """The pod is to end."""
        if self.launcher.pipe is not None and not self._terminating:
            self._terminating = True
            self.launcher.release()
            self.launcher.say({"event": "terminating", "drainSeconds": 6})
            self._model.terminating()

    # What it hears.

    def _greets(self) -> None:
        if self.launcher.incarnation != self._met and not self._terminating:
            self._met = self.launcher.incarnation
            self._model.process_gone()

    def _got(self, message: Json, line: bytes) -> None:
        method, params = message.get("method"), message.get("params") or {}
        if method == "tools/call":
            token = params.get("_meta", {}).get("progressToken")
            self._served.append(self._model.arrived(params["arguments"]["tag"], message["id"], token))
        elif method == "notifications/cancelled":
            self._model.told_of_cancellation(params["requestId"])
        elif method is None and message["id"] == "ping":
            self.pongs += 1
        elif method is None:
            question = self._model.questions[int(message["id"])]
            assert b'"id":' + question.raw_id + b"," in line
            question.got.append(message)
        else:
            assert method == "notifications/initialized", message
