"""What holds for every configuration: no crash, no secret in the open, the server gets what was written."""

import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_operator.core.api import MCPServerSpec
from mcpsrv.core.configuration import conversion, entry, localpaths, secrecy
from mcpsrv.core.configuration.conversion import Options
from mcpsrv.core.configuration.placeholders import Answers
from mcpsrv.core.errors import UsageError

Json = dict[str, Any]
TOKENS = st.builds("ghp_{}".format, st.text(alphabet="aB3", min_size=36, max_size=36))
# What Kubernetes and the placeholders make something of stands often among the rest.
WORDS = st.one_of(
    st.text(alphabet="ab$()=-{}:/.\\ ", min_size=1, max_size=12),
    st.builds("{}{}".format, st.sampled_from(["--key=", "--api-key=", "", "$(A)", "$$"]), TOKENS),
    st.sampled_from(["--token", "--flag", "$(PATH)", "$$", "plain", "-e", "-v", "a:b", "--rm"]),
)
NAMES = st.text(alphabet="ABC_xyz/:.", min_size=1, max_size=8)
ENTRIES = st.fixed_dictionaries(
    {
        "command": st.sampled_from(["npx", "uvx", "docker", "cmd", "node", "x y", ""]),
        "args": st.lists(WORDS, max_size=6),
    },
    optional={
        "env": st.dictionaries(NAMES, WORDS, max_size=4),
        "cwd": st.sampled_from(["", "/a", "~/b", "$X"]),
        "url": WORDS,
    },
)


def expanded(text: str, env: dict[str, str]) -> str:
    """What Kubernetes makes of a word: `$(NAME)` is replaced if there is one, `$$` is `$`."""

    def replace(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else env.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", replace, text)


def environment(manifests: tuple[Json, ...]) -> dict[str, str]:
    """The variables that the server gets, in Kubernetes' order."""
    secrets = manifests[0]["stringData"] if len(manifests) > 1 else {}
    env: dict[str, str] = {}
    for item in manifests[-1]["spec"].get("env", []):
        reference = item.get("valueFrom", {}).get("secretKeyRef")
        env[item["name"]] = secrets[reference["key"]] if reference else expanded(item["value"], env)
    return env


@given(st.dictionaries(st.text(max_size=50), ENTRIES, max_size=4))
@settings(deadline=None, max_examples=60)
def test_every_configuration_is_imported_or_refused_in_words(servers: dict[str, Json]) -> None:
    try:
        found = conversion.convert(entry.read({"mcpServers": servers}), Options())
    except UsageError:
        return
    assert len({item.name for item in found}) == len(servers)
    for item in found:
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?", item.name)
        for manifest in item.manifests[-1:]:
            MCPServerSpec.model_validate(manifest["spec"])
            shown = [manifest["spec"].get(key) for key in ("command", "args", "env")]
            assert not re.search(r"ghp_[A-Za-z0-9]{36}", str(shown))
        assert not re.search(r"ghp_[A-Za-z0-9]{36}", str(item.notes))


@given(st.lists(WORDS, max_size=6), st.dictionaries(NAMES, WORDS, max_size=4))
@settings(deadline=None, max_examples=60)
def test_the_server_gets_the_words_and_variables_that_were_written(
    args: list[str], env: dict[str, str]
) -> None:
    def stays(text: str) -> bool:
        value = text.partition("=")[2] or text
        return not (localpaths.is_local(text) or localpaths.is_local(value) or "${" in text)

    args = [word for word in args if stays(word)]
    env = {name: value for name, value in env.items() if stays(value)}
    raw = {"command": "npx", "args": ["package", *args], "env": env}
    (found,) = conversion.convert(entry.read({"mcpServers": {"a": raw}}), Options(answers=Answers()))
    made = environment(found.manifests)
    words = [expanded(word, made) for word in found.manifests[-1]["spec"]["command"]]
    assert words == ["npx", "package", *args]
    assert {name: made[name] for name in env} == env


@given(st.text(), st.text())
@settings(deadline=None, max_examples=60)
def test_nothing_is_too_odd_to_be_judged(name: str, value: str) -> None:
    assert isinstance(secrecy.reason(name, value), str)
