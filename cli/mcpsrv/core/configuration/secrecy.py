"""Which values are secret: by the name of the variable or flag, or by what the value looks like.

A false alarm only puts a plain value into a Secret; a miss would put a secret into a manifest. So doubt
counts as secret.
"""

import itertools
import re
from collections.abc import Iterable
from typing import Final


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRET_WORDS: Final = _set(
    "token tokens key keys apikey secret secrets password passwd passphrase pass pwd credential credentials "
    "auth authorization bearer cookie cookies pat dsn jwt private signature webhook accesskey passcode pin"
)
_SECRET_PAIRS: Final = frozenset({("connection", "string"), ("conn", "str"), ("service", "account")})
# What comes last tells that the value is about the secret, not the secret: TOKEN_FILE, AUTH_URL, MAX_TOKENS.
_HARMLESS_LAST: Final = _set(
    "url uri endpoint host hostname port file path dir directory folder name type mode method limit ttl "
    "timeout expiry expires size length count version region enabled algorithm format scope scopes id "
    "audience issuer"
)
_PLACES: Final = frozenset({"file", "path", "dir", "directory", "folder"})
_STRONG: Final = frozenset({"webhook", "password", "secret", "dsn"})
_COUNTING: Final = frozenset({"max", "min", "num", "count", "limit", "budget"})

_FORMATS: Final = tuple(
    (what, re.compile(pattern))
    for what, pattern in (
        ("a private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
        ("an OpenAI or Anthropic key", r"\bsk-[A-Za-z0-9_-]{16,}"),
        ("a GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
        ("a GitLab token", r"\bgl(?:pat|ptt|rt|dt)-[A-Za-z0-9_-]{16,}"),
        ("a Slack token", r"\bxox[abeprs]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}"),
        ("a Slack webhook", r"hooks\.slack\.com/services/\S+"),
        ("an AWS key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
        ("a Google key", r"\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{20,}|\bGOCSPX-[A-Za-z0-9_-]{20,}"),
        ("a JSON web token", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
        ("a Stripe key", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9]{10,}"),
        ("a Notion token", r"\bntn_[A-Za-z0-9]{20,}|\bsecret_[A-Za-z0-9]{20,}"),
        ("a package registry's token", r"\bnpm_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{30,}"),
        ("a Hugging Face token", r"\bhf_[A-Za-z0-9]{20,}"),
        ("a Linear key", r"\blin_(?:api|oauth)_[A-Za-z0-9]{20,}"),
        ("a Figma token", r"\bfig[dou]_[A-Za-z0-9_-]{20,}"),
        ("a Tavily key", r"\btvly-[A-Za-z0-9-]{10,}"),
        ("a SendGrid key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
        ("a DigitalOcean token", r"\bdo[opr]_v1_[a-f0-9]{32,}"),
        ("a Brave Search key", r"\bBSA[A-Za-z0-9_-]{20,}"),
        ("a Sentry token", r"\bsntrys_[A-Za-z0-9_=+/-]{20,}"),
        ("an Atlassian token", r"\bATATT[A-Za-z0-9_=-]{20,}"),
        ("an authorization header", r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"),
        ("a URL with a password", r"\b[a-z][a-z0-9+.-]*://[^\s/:@]*:[^\s/@]+@"),
        (
            "a URL with a key",
            r"(?i)[?&](?:[a-z0-9_-]*(?:token|key|secret|password|sig|signature))=[^&\s]{6,}",
        ),
        (
            "a connection string with a password",
            r"(?i)\b(?:password|pwd|accountkey|sharedaccesskey)\s*=\s*[^;\s]+",
        ),
        ("a long random value", r"^[0-9a-fA-F]{32,}$"),
    )
)
_RANDOM: Final = re.compile(r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[A-Za-z0-9+_=-]{32,}$")
_DOTS: Final = "…"
_PLAIN: Final = re.compile(r"(?i)^(?:true|false|yes|no|on|off|null|none|)$")


def reason(name: str, value: str) -> str:
    """Why the value of this variable or flag is secret, for people; "" if nothing says so."""
    if _PLAIN.match(value):
        return ""
    for what, pattern in _FORMATS:
        if pattern.search(value):
            return f"its value looks like {what}"
    if _RANDOM.match(value):
        return "its value looks like a long random value"
    return _by_name(name, value)


def masked(text: str, values: Iterable[str] = ()) -> str:
    """The text for people: these values, and all that looks like a secret, are replaced by dots."""
    for value in sorted(filter(None, values), key=len, reverse=True):
        text = text.replace(value, _DOTS)
    for _, pattern in _FORMATS:
        text = pattern.sub(_DOTS, text)
    return text


def _by_name(name: str, value: str) -> str:
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words:
        return ""
    pair = next((f"{a}_{b}" for a, b in itertools.pairwise(words) if (a, b) in _SECRET_PAIRS), "")
    told = next((word for word in words if word in _SECRET_WORDS), "") or pair
    last = words[-1]
    if not told or last in _PLACES or (last in _HARMLESS_LAST and not _STRONG & set(words)):
        return ""
    if value.isdigit() and len(value) <= 7 and _COUNTING & set(words):
        return ""
    return f"its name says {told.upper()}"
