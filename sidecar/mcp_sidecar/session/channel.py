"""The way from the session to its server: a launcher's socket, or HTTP."""

from typing import Any, Protocol


class Channel(Protocol):
    """What the session needs of the way to its server."""

    @property
    def congested(self) -> bool:
        """Whether the server does not read."""

    def write(self, frame: bytes) -> bool:
        """Send one frame; False when that is not possible now."""

    def control(self, message: dict[str, Any]) -> bool:
        """Send one control message; False when that is not possible now."""

    def reconnect(self) -> None:
        """Make the connection again."""

    async def run(self) -> None:
        """Keep a connection until cancelled."""
