"""Tools and their results in words."""

import base64
import difflib
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

Json = dict[str, Any]
_MAX_SUMMARY: Final = 160
_MAX_SHOWN: Final = 12


def summary(tool: Mapping[str, Any]) -> str:
    """The first line of the description."""
    lines = str(tool.get("description") or tool.get("title") or "").strip().splitlines()
    first = lines[0] if lines else ""
    return first if len(first) <= _MAX_SUMMARY else f"{first[: _MAX_SUMMARY - 1]}…"


def arguments(tool: Mapping[str, Any]) -> Iterator[str]:
    """One line for each argument: `timezone=string  required  IANA name`."""
    schema = tool.get("inputSchema") or {}
    required = schema.get("required") or ()
    properties = schema.get("properties") or {}
    for name, wanted in properties.items() if isinstance(properties, dict) else ():
        told = wanted if isinstance(wanted, dict) else {}
        parts = [f"{name}={_type(told)}"]
        parts += ["required"] if name in required else []
        parts += [summary(told)] if told.get("description") else []
        yield "  ".join(parts)


def _type(wanted: Mapping[str, Any]) -> str:
    if choices := wanted.get("enum"):
        return "|".join(map(str, choices[:_MAX_SHOWN]))
    kind = wanted.get("type")
    if isinstance(kind, list):
        return "|".join(map(str, kind))
    options = wanted.get("anyOf") or wanted.get("oneOf") or ()
    return str(kind or "|".join(_type(one) for one in options if isinstance(one, dict)) or "any")


def close(name: str, known: Collection[str], otherwise: str) -> str:
    """Which names come close, or all if there are few; `otherwise` tells what else can be done."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    listed = near or (list(known) if len(known) <= _MAX_SHOWN else [])
    return f"did you mean {', '.join(listed)}?" if listed else otherwise


def progress(tool: str, done: float, total: float | None, message: str | None) -> str:
    """A progress notification in words."""
    part = f"{done:g} of {total:g}" if total else f"{done:g}"
    return f"{tool}: {part}" + (f", {message}" if message else "")


def contents(result: Mapping[str, Any]) -> Iterator[str]:
    """The contents of a result: texts as they are, the rest told about; structured content without them."""
    blocks = result.get("content") or ()
    yield from (_block(block) for block in blocks)
    if not blocks and result.get("structuredContent") is not None:
        yield json.dumps(result["structuredContent"], indent=2, ensure_ascii=False)


def _block(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind in {"image", "audio"}:
        size = len(base64.b64decode(block.get("data") or ""))
        return f"[{kind}, {block.get('mimeType')}, {size} bytes; -o json has it]"
    resource = block.get("resource") or block
    text = resource.get("text")
    head = f"[{kind}, {resource.get('uri', '')}]"
    return f"{head}\n{text}" if text is not None else head
