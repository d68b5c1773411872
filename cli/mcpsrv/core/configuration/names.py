"""Names of MCPServers and of their Secrets: legal, readable, distinct."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

MAX_LENGTH: Final = 40
# The operator's Secrets are named so.
_OPERATORS: Final = "mcp-"


def plain(name: str) -> str:
    """A legal name close to this one; "server" when no letter or digit is in it."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name)
    return re.sub(r"[^a-z0-9]+", "-", spaced.lower()).strip("-")[:MAX_LENGTH].strip("-") or "server"


def assigned(names: Iterable[str], taken: Iterable[str] = ()) -> Mapping[str, str]:
    """A name for each, in order; one that another has already gets a number behind it."""
    listed = list(names)
    used = set(taken)
    # A name that is legal as it stands keeps it, whatever comes before it.
    result = {name: name for name in listed if name == plain(name) and name not in used}
    used |= set(result)
    for name in listed:
        if name not in result:
            result[name] = _free(plain(name), used)
            used.add(result[name])
    return result


def secret(server: str) -> str:
    """Name of the Secret with a server's environment; never one that the operator gives."""
    return f"env-{server}" if server.startswith(_OPERATORS) else f"{server}-env"


def keys(variables: Iterable[str]) -> Mapping[str, str]:
    """A legal and distinct key of a Secret for each variable; most keep their name."""
    found: dict[str, str] = {}
    for name in variables:
        key = re.sub(r"[^-._a-zA-Z0-9]", "_", name)
        found[name] = key if key not in found.values() else f"{key}.{len(found)}"
    return found


def variable(text: str) -> str:
    """A name of an environment variable close to this text."""
    name = re.sub(r"[^A-Z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).upper()).strip("_")
    return f"_{name}" if name[:1].isdigit() else name


def _free(wanted: str, used: set[str]) -> str:
    if wanted not in used:
        return wanted
    numbers = (n for n in range(2, len(used) + 3))
    options = (f"{wanted[: MAX_LENGTH - len(str(n)) - 1].rstrip('-')}-{n}" for n in numbers)
    return next(option for option in options if option not in used)
