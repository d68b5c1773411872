"""Lays what the user wrote over what the operator sets."""

from typing import Any

Json = dict[str, Any]


def merge(ours: Json, theirs: Json | None) -> Json:
    """Objects are merged key by key, everything else is theirs where they name it."""
    merged = dict(ours)
    for key, value in (theirs or {}).items():
        before = merged.get(key)
        merged[key] = merge(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return merged


def contains(actual: Any, wanted: Any) -> bool:
    """Whether everything that is wanted stands in what is there; what else is there does not matter.

    Lists must have the same length, since the API server adds fields to items but no items. It leaves out
    maps and lists that are empty.
    """
    if actual is None and wanted in ({}, []):
        return True
    if isinstance(wanted, dict):
        return isinstance(actual, dict) and all(
            contains(actual.get(key), value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(wanted)
            and all(contains(there, value) for there, value in zip(actual, wanted, strict=True))
        )
    return bool(actual == wanted)
