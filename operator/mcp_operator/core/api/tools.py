"""`spec.tools`: which of a server's tools clients may see and call, and as what."""

from typing import Annotated

from pydantic import ConfigDict, Field

from mcp_operator.core.api.model import SET, Model, map_of, rules

Glob = Annotated[str, Field(min_length=1, max_length=256)]


ToolName = Annotated[str, Field(min_length=1, max_length=256)]


class ToolOverride(Model):
    """One tool under another name, title or description."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "has(self.rename) || has(self.title) || has(self.description)",
                "spec.tools.overrides: an entry changes nothing: add rename, title or description",
            )
        )
    )

    name: ToolName
    """The server's name of the tool. Required."""
    rename: ToolName | None = None
    """Name by which clients see and call it; the server's name is then unknown to them. Default: the
    server's."""
    title: Annotated[str, Field(max_length=256)] | None = None
    """Its name for people. Default: the server's."""
    description: Annotated[str, Field(max_length=8192)] | None = None
    """What models are told of it. Default: the server's."""


class Tools(Model):
    """Which of the server's tools clients may see and call, and as what."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                (
                    "!has(self.overrides) || self.overrides.all(o, self.overrides.exists_one(p, "
                    "(has(p.rename) ? p.rename : p.name) == (has(o.rename) ? o.rename : o.name)))"
                ),
                "spec.tools.overrides: two entries give the same name to two tools: choose another rename",
            )
        )
    )

    allow: Annotated[tuple[Glob, ...], Field(max_length=256, json_schema_extra=SET)] = ()
    """The server's names, or globs with `*`, `?` and `[ab]`, of the tools that clients may see and call; case
    matters. Default, and with an empty list: all."""
    deny: Annotated[tuple[Glob, ...], Field(max_length=256, json_schema_extra=SET)] = ()
    """Names or globs of tools that they may not, whatever `allow` says. Default: none."""
    overrides: Annotated[
        tuple[ToolOverride, ...], Field(max_length=128, json_schema_extra=map_of("name"))
    ] = ()
    """Tools that clients know under another name, title or description; all else of them passes unchanged.
    `allow` and `deny` go by the server's names. An entry without a tool, and a new name that another tool of
    the server has, are told in condition Verified (reason ToolOverridesUnmatched). Default: none. At most
    128."""
