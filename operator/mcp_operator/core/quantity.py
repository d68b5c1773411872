"""Kubernetes quantities: `100m`, `1.5`, `64Mi`, `1e3`."""

import re
from decimal import Decimal
from typing import Any, Final

_QUANTITY: Final = re.compile(r"([+-]?[0-9.]+)([eE][+-]?[0-9]+|[a-zA-Z]*)")
_SUFFIXES: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}


def parse(text: Any) -> Decimal:
    """Read a quantity. Raises ValueError on anything else."""
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"{text!r} is no quantity")
    number, suffix = match.groups()
    try:
        if suffix in _SUFFIXES:
            return Decimal(number) * _SUFFIXES[suffix]
        if suffix[0] in "eE":
            return Decimal(number + suffix)
    except ArithmeticError:
        raise ValueError(f"{text!r} is no quantity") from None
    raise ValueError(f"{text!r} is no quantity")
