"""Memory that messages in flight may take together; beyond it they are refused: that ends no relay."""


class Room:
    """Bytes that are taken and given back. One message always fits into an empty room, whatever its size."""

    __slots__ = ("limit", "taken")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0

    def take(self, size: int) -> bool:
        """Take bytes; False when there is no room for them now."""
        if self.taken and self.taken + size > self.limit:
            return False
        self.taken += size
        return True

    def give(self, size: int) -> None:
        """Give bytes back."""
        self.taken -= size
