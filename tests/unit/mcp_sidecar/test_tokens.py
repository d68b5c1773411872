"""Valid tokens, and how they change while the relay runs."""

from pathlib import Path

import pytest

from mcp_relay_api.paths import MAX_TOKENS
from mcp_sidecar.web.tokens import LOOK_SECONDS, Tokens


class World:
    """A clock, and a file of tokens as a mounted Secret has it: each version under a new number."""

    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.file = folder / "token"
        self.folder = folder
        self.versions = 0

    def write(self, text: bytes) -> None:
        self.versions += 1
        new = self.folder / f"version-{self.versions}"
        new.write_bytes(text)
        self.file.unlink(missing_ok=True)
        self.file.symlink_to(new)

    def tokens(self, text: bytes) -> Tokens:
        self.write(text)
        return Tokens(text, self.file, lambda: self.now)

    def later(self) -> None:
        self.now += LOOK_SECONDS


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize(
    ("header", "valid"),
    [
        (b"Bearer one", True),
        (b"bearer  two words ", True),
        (b"Bearer two", False),
        (b"Bearer", False),
        (b"Bearer ", False),
        (b"Basic one", False),
        (b"one", False),
        (b"Bearer one\ntwo words", False),
        (None, False),
    ],
)
def test_each_line_is_a_token(header: bytes | None, valid: bool) -> None:
    assert Tokens(b"one\r\n\n two words \n", None, lambda: 0.0).accept(header) is valid


def test_there_is_a_limit_to_the_number_of_tokens() -> None:
    many = Tokens(b"".join(b"t%d\n" % n for n in range(MAX_TOKENS + 1)), None, lambda: 0.0)
    assert many.accept(b"Bearer t%d" % (MAX_TOKENS - 1))
    assert not many.accept(b"Bearer t%d" % MAX_TOKENS)


def test_a_rotation_in_two_steps_leaves_no_moment_without_a_valid_token(world: World) -> None:
    tokens = world.tokens(b"old")
    world.write(b"new\nold\n")
    world.later()
    assert tokens.accept(b"Bearer new")
    assert tokens.accept(b"Bearer old")
    world.write(b"new")
    world.later()
    assert tokens.accept(b"Bearer new")
    assert not tokens.accept(b"Bearer old")


def test_a_change_is_seen_within_a_second_and_not_looked_for_more_often(world: World) -> None:
    tokens = world.tokens(b"old")
    world.write(b"new")
    assert not tokens.accept(b"Bearer new")
    world.later()
    assert tokens.accept(b"Bearer new")


def test_a_change_is_told_once_to_who_keeps_verdicts(world: World) -> None:
    tokens = world.tokens(b"old")
    assert not tokens.changed()
    world.write(b"new")
    assert (tokens.changed(), tokens.changed()) == (True, False)
    world.write(b"newer")
    world.later()
    assert tokens.accept(b"Bearer newer")
    assert (tokens.changed(), tokens.changed()) == (True, False)
    assert not Tokens(b"fixed", None, lambda: 0.0).changed()


def test_a_file_that_is_gone_or_empty_changes_nothing(world: World) -> None:
    tokens = world.tokens(b"old")
    world.write(b" \n")
    world.later()
    assert tokens.accept(b"Bearer old")
    assert not tokens.accept(b"Bearer ")
    world.file.unlink()
    world.later()
    assert tokens.accept(b"Bearer old")
    world.write(b"new")
    world.later()
    assert (tokens.accept(b"Bearer old"), tokens.accept(b"Bearer new")) == (False, True)
