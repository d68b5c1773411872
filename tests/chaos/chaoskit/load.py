"""Clients that call all the time, and write down what became of each call."""

import asyncio
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from chaoskit.calls import LIMIT_SECONDS, Call, Outcome, outcome_of_error
from chaoskit.world import Target
from clusterkit.leanmcp import Http, HttpError, McpClient, RpcError, Stream

# As long as a relay that is stopped on purpose may keep the calls of before; what is judged is shorter.
PATIENCE_SECONDS = LIMIT_SECONDS + 60.0
CONNECT_SECONDS = 5.0
PAUSE_SECONDS = 0.05
# After a failure a client waits as a sensible one would.
AFTER_ERROR_SECONDS = 0.15
LONGEST_WORK = 1.5

WRONG_ID = "the answer to"


@dataclass
class Ledger:
    """All calls that have ended."""

    calls: list[Call] = field(default_factory=list)
    sessions_lost: int = 0
    number: int = 0
    closed: bool = False
    """No further calls are wanted."""

    def token(self, prefix: str) -> str:
        """One that was never used before."""
        self.number += 1
        return f"{prefix}-{self.number:07d}"


class ImpatientHttp(Http):
    """Gives a connection up that does not come about: the node's proxy may still lead to a gone pod."""

    async def connection(self) -> Stream:
        """A connection. Raises NotConnectedError: none came about, so nothing was sent."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await super().connection()
        except TimeoutError as error:
            raise NotConnectedError(f"no connection within {CONNECT_SECONDS:g} s") from error


class NotConnectedError(ConnectionError):
    """Nobody answered at the address."""


def client_of(target: Target) -> McpClient:
    """A client without a session yet."""
    client = McpClient(target.endpoint, target.token, limit=PATIENCE_SECONDS)
    client.http = ImpatientHttp(target.endpoint)
    return client


async def one_call(
    ledger: Ledger, target: Target, client: McpClient, prefix: str, seconds: float = 0
) -> Call:
    """Make one call on the client's session, opening one if it has none, and judge its answer."""
    token = ledger.token(prefix)
    sent = time.monotonic()
    outcome, detail = await _attempt(ledger, client, token, seconds)
    call = Call(token, target.name, sent, time.monotonic(), outcome, detail)
    ledger.calls.append(call)
    return call


async def _attempt(ledger: Ledger, client: McpClient, token: str, seconds: float) -> tuple[Outcome, str]:
    try:
        if client.session is None:
            await client.connect()
        arguments: dict[str, object] = {"token": token, **({"seconds": seconds} if seconds else {})}
        said = await client.call("record", **arguments)
    except RpcError as error:
        return outcome_of_error(error.message, error.data), f"{error.code}: {error.message} {error.data}"
    except HttpError as error:
        return _http(ledger, client, error), f"{error} {error.reply.headers}"
    except TimeoutError:
        return Outcome.LOST, ""
    except (OSError, EOFError) as error:
        return Outcome.BROKEN, f"{type(error).__name__}: {error}"
    except AssertionError as error:
        return Outcome.WRONG, str(error)
    return (Outcome.ANSWERED, "") if said == token else (Outcome.WRONG, said)


def _http(ledger: Ledger, client: McpClient, error: HttpError) -> Outcome:
    """A reply without a JSON-RPC answer. A session that is gone is opened anew for the next call."""
    if error.reply.status == 404:
        ledger.sessions_lost += 1
        client.headers.pop("mcp-session-id", None)
        return Outcome.REFUSED
    return Outcome.REFUSED if error.reply.status in (401, 429, 503) else Outcome.UNCLEAR


async def caller(ledger: Ledger, target: Target, name: str, *, slow: bool, chance: random.Random) -> None:
    """One client: quick calls, or calls that the server works on for a while."""
    client = client_of(target)
    while not ledger.closed:
        seconds = round(chance.uniform(0.1, LONGEST_WORK), 2) if slow else 0
        call = await one_call(ledger, target, client, name, seconds)
        failed = call.outcome is not Outcome.ANSWERED
        await asyncio.sleep(AFTER_ERROR_SECONDS if failed else PAUSE_SECONDS)


def start(ledger: Ledger, targets: Iterator[Target], clients: int, seed: int) -> list[asyncio.Task[None]]:
    """Start the clients of all servers; they end, after their last call, when `ledger.closed` is set."""
    tasks = []
    for target in targets:
        for index in range(clients):
            name = f"{target.name}-c{index}"
            chance = random.Random(f"{seed} {name}")  # noqa: S311 - repeatable, not secret
            work = caller(ledger, target, name, slow=index % 2 == 1, chance=chance)
            tasks.append(asyncio.create_task(work, name=name))
    return tasks
