"""Whether something listens behind an address."""

import asyncio

from mcp_operator.adapters.errors import UnreachableError


async def touch(host: str, port: int, seconds: float) -> None:
    """Connect and hang up.

    Raises:
        UnreachableError: nothing accepts the connection within the time.

    """
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError) as error:
        raise UnreachableError(str(error) or type(error).__name__) from error
    writer.close()
