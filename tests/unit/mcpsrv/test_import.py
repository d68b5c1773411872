"""The import of client configurations: what becomes of each kind of entry, and what the user is told."""

from pathlib import Path
from typing import Any

import pytest

from mcpsrv.core.configuration import conversion, entry, jsonc
from mcpsrv.core.configuration.conversion import Imported, Options
from mcpsrv.core.configuration.launch import Level
from mcpsrv.core.configuration.placeholders import Answers
from mcpsrv.core.errors import UsageError

Json = dict[str, Any]
SIX = (Path(__file__).parent / "six.jsonc").read_text(encoding="utf-8")
PAT = "ghp_0123456789abcdefghijABCDEFGHIJ0123"


def convert(document: Json, options: Options | None = None) -> tuple[Imported, ...]:
    return conversion.convert(entry.read(document), options or Options())


def one(raw: Json, options: Options | None = None, name: str = "demo") -> Imported:
    (found,) = convert({"mcpServers": {name: raw}}, options)
    return found


def spec(found: Imported) -> Json:
    result: Json = found.manifests[-1]["spec"]
    return result


def messages(found: Imported, level: Level) -> list[str]:
    return [f"{note.field}: {note.message}" for note in found.notes if note.level is level]


def test_a_real_configuration_of_six_servers_is_imported_whole() -> None:
    found = conversion.convert(entry.read(jsonc.parse(SIX, "six.jsonc")), Options(namespace="tools"))
    assert [item.name for item in found] == [
        "time", "everything", "memory", "sequential-thinking", "filesystem", "fetch",
    ]  # fmt: skip
    assert [item.skipped for item in found] == [False] * 6
    assert spec(found[0])["command"] == ["uvx", "mcp-server-time", "--local-timezone=Europe/Berlin"]
    assert spec(found[1])["command"] == ["npx", "-y", "@modelcontextprotocol/server-everything"]
    assert spec(found[2])["command"][0] == "npx"
    assert spec(found[2])["env"] == [{"name": "MEMORY_FILE_PATH", "value": "/Users/anna/memory/memory.json"}]
    assert [m["mountPath"] for m in spec(found[2])["volumeMounts"]] == ["/Users/anna/memory"]
    assert [m["mountPath"] for m in spec(found[4])["volumeMounts"]] == [
        "/Users/anna/Desktop", "/Users/anna/Downloads",
    ]  # fmt: skip
    secret, server = found[5].manifests
    assert secret["metadata"] == {"name": "fetch-env", "namespace": "tools"}
    assert secret["stringData"] == {"SERVICE_TOKEN": PAT}
    assert server["spec"]["env"] == [
        {
            "name": "SERVICE_TOKEN",
            "valueFrom": {"secretKeyRef": {"name": "fetch-env", "key": "SERVICE_TOKEN"}},
        },
        {"name": "LOG_LEVEL", "value": "info"},
    ]


def test_no_note_ever_shows_a_secret_value() -> None:
    raw = {
        "command": "npx",
        "args": ["-y", "server", "--api-key", PAT, "postgresql://user:hunter22@db/x", f"--token={PAT}"],
        "env": {"PASSWORD": "hunter22", "HEADERS": f'{{"Authorization": "Bearer {PAT}"}}'},
    }
    found = one(raw)
    told = " ".join(note.message + note.field for note in found.notes)
    assert PAT not in told
    assert "hunter22" not in told
    assert PAT not in str(found.manifests[-1])
    assert "hunter22" not in str(found.manifests[-1])


def test_secret_arguments_become_variables_that_kubernetes_puts_back() -> None:
    raw = {
        "command": "npx",
        "args": ["server", "--api-key", PAT, f"--token={PAT}x", "postgresql://u:pw123@db/x"],
    }
    found = one(raw)
    assert spec(found)["command"] == [
        "npx",
        "server",
        "--api-key",
        "$(API_KEY)",
        "--token=$(TOKEN)",
        "$(ARGUMENT)",
    ]
    assert found.manifests[0]["stringData"] == {
        "API_KEY": PAT, "TOKEN": f"{PAT}x", "ARGUMENT": "postgresql://u:pw123@db/x",
    }  # fmt: skip
    assert {item["name"] for item in spec(found)["env"]} == {"API_KEY", "TOKEN", "ARGUMENT"}


def test_an_invented_variable_never_takes_the_name_of_one_that_is_there() -> None:
    raw = {
        "command": "npx",
        "args": ["server", "--api-key", PAT],
        "env": {"API_KEY": "another-one", "PORT": "1"},
    }
    found = one(raw)
    assert found.manifests[0]["stringData"] == {"API_KEY": "another-one", "API_KEY_2": PAT}
    assert spec(found)["command"][-1] == "$(API_KEY_2)"


@pytest.mark.parametrize(
    ("value", "written"),
    [("plain", "plain"), ("a$b", "a$b"), ("a$$b", "a$$$$b"), ("$(HOME)/x", "$$(HOME)/x"), ("5$", "5$")],
)
def test_what_kubernetes_would_expand_is_escaped_so_that_the_server_gets_what_was_written(
    value: str, written: str
) -> None:
    found = one({"command": "npx", "args": ["server", value], "env": {"MODE": value}})
    assert spec(found)["command"][-1] == written
    assert spec(found)["env"] == [{"name": "MODE", "value": written}]


@pytest.mark.parametrize(
    ("raw", "command"),
    [
        ({"command": "npx -y @a/b --flag 'two words'"}, ["npx", "-y", "@a/b", "--flag", "two words"]),
        ({"command": "cmd.exe", "args": ["/c", "npx.cmd", "-y", "p"]}, ["npx", "-y", "p"]),
        ({"command": "C:\\Program Files\\nodejs\\npx.cmd", "args": ["-y", "p"]}, ["npx", "-y", "p"]),
        ({"command": "/home/me/.local/bin/uvx", "args": ["p"]}, ["uvx", "p"]),
        ({"command": "wsl", "args": ["-e", "npx", "p"]}, ["npx", "p"]),
        ({"command": "bunx", "args": ["-y", "p"]}, ["npx", "-y", "p"]),
        ({"command": "pnpm", "args": ["dlx", "p"]}, ["npx", "-y", "p"]),
        ({"command": "pipx", "args": ["run", "p"]}, ["uvx", "p"]),
        ({"command": "npx", "args": ["p", 5, True]}, ["npx", "p", "5", "true"]),
    ],
)
def test_the_wrappers_of_desktops_become_programs_of_the_default_image(raw: Json, command: list[str]) -> None:
    assert spec(one(raw))["command"] == command


@pytest.mark.parametrize(
    ("raw", "field", "cure"),
    [
        ({"url": "mcp.example/mcp"}, "url", "correct it"),
        ({"url": "http://localhost:3000/mcp"}, "url", "this computer"),
        ({"url": "https://mcp.example/mcp?api_key=0123456789abcdef"}, "url", "by a header"),
        ({"type": "http"}, "url", "correct it"),
        (
            {"command": "node", "args": ["/Users/me/server/build/index.js"]},
            "args[0]",
            "publish it as a package",
        ),
        ({"command": "node", "args": ["C:\\me\\index.js"]}, "args[0]", "publish it as a package"),
        ({"command": "python", "args": ["server.py"]}, "args[0]", "publish it as a package"),
        (
            {"command": "uv", "args": ["--directory", "/home/me/x", "run", "s"]},
            "args[1]",
            "publish it as a package",
        ),
        ({"command": "/Users/me/go/bin/server"}, "command", "publish it as a package"),
        ({"command": "java", "args": ["-jar", "x"]}, "command", "spec.image"),
        ({"command": "docker", "args": ["exec", "x"]}, "command", "only `run`"),
        ({"command": "docker", "args": ["run", "-i", "--rm"]}, "", "names no image"),
        ({"args": ["x"]}, "command", "is missing"),
        ({"command": "cmd", "args": ["/c"]}, "command", "starts no server"),
    ],
)
def test_what_no_cluster_can_run_is_left_out_naming_field_and_cure(raw: Json, field: str, cure: str) -> None:
    found = one(raw)
    assert found.manifests == ()
    assert found.skipped
    (told,) = messages(found, Level.SKIPPED)
    assert told.startswith(f"mcpServers.demo{'.' if field else ''}{field}: ")
    assert cure in told


def test_docker_run_becomes_the_image_with_its_environment_folders_and_user() -> None:
    raw = {
        "command": "docker",
        "args": [
            "run", "-i", "--rm", "--init", "--name", "x", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "-eMODE=ro",
            "--env=LEVEL=1", "-v", "/Users/me/p:/work:ro", "--mount", "type=bind,src=/a,dst=/b", "-u", "1001",
            "-w", "/work", "-it", "ghcr.io/github/github-mcp-server:v1", "stdio", "--read-only",
        ],
        "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": PAT, "UNUSED": "x"},
    }  # fmt: skip
    found = one(raw)
    made = spec(found)
    assert made["image"] == "ghcr.io/github/github-mcp-server:v1"
    assert "command" not in made
    assert made["args"] == ["stdio", "--read-only"]
    assert [item["name"] for item in made["env"]] == ["GITHUB_PERSONAL_ACCESS_TOKEN", "MODE", "LEVEL"]
    assert [item["mountPath"] for item in made["volumeMounts"]] == ["/work", "/b"]
    assert made["workingDir"] == "/work"
    assert made["securityContext"] == {"runAsUser": 1001}
    assert found.manifests[0]["stringData"] == {"GITHUB_PERSONAL_ACCESS_TOKEN": PAT}


@pytest.mark.parametrize(
    ("args", "commands", "expected"),
    [
        (["--entrypoint", "/srv/run", "img", "a"], {}, (["/srv/run"], ["a"])),
        (["img", "a"], {"demo": ("node", "/app/index.js")}, (["node", "/app/index.js"], ["a"])),
        (["img"], {}, (None, None)),
    ],
)
def test_the_command_in_an_image_is_the_entry_point_the_users_or_the_images_own(
    args: list[str], commands: dict[str, tuple[str, ...]], expected: tuple[list[str] | None, list[str] | None]
) -> None:
    found = one({"command": "podman", "args": ["run", "-i", *args]}, Options(commands=commands))
    assert (spec(found).get("command"), spec(found).get("args")) == expected


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (["-p", "80:80"], "own Service"),
        (["--env-file", "x.env"], "not in the cluster"),
        (["--privileged"], "--privileged"),
        (["--network=host"], "the cluster's network"),
        (["-e", "NOWHERE"], "NOWHERE has no value"),
        (["-v", "C:\\me:/data"], "an empty folder at /data"),
    ],
)
def test_options_of_docker_that_a_pod_does_not_have_are_told_about(option: list[str], told: str) -> None:
    found = one({"command": "docker", "args": ["run", "-i", *option, "img"]})
    assert any(told in message for message in messages(found, Level.WARNING))
    assert spec(found)["image"] == "img"


@pytest.mark.parametrize(
    ("path", "place", "folders"),
    [
        ("/Users/anna/Desktop", "/Users/anna/Desktop", ["/Users/anna/Desktop"]),
        ("~/notes", "/home/mcp/notes", ["/home/mcp/notes"]),
        ("~", "/home/mcp", []),
        (".", "/workspace", ["/workspace"]),
        ("./docs", "/workspace/docs", ["/workspace/docs"]),
        ("C:\\Users\\anna\\My Files", "/data/My Files", ["/data/My Files"]),
        ("/home/anna/db.sqlite", "/home/anna/db.sqlite", ["/home/anna"]),
        ("~/db.sqlite", "/home/mcp/db.sqlite", []),
        ("--root=/Users/anna", "--root=/Users/anna", ["/Users/anna"]),
        ("${workspaceFolder}/src", "/workspace/src", ["/workspace/src"]),
        ("/etc/hosts", "/etc/hosts", []),
        ("@scope/package", "@scope/package", []),
        ("https://example.org/a", "https://example.org/a", []),
    ],
)
def test_paths_of_the_computer_become_empty_folders_that_the_server_can_use(
    path: str, place: str, folders: list[str]
) -> None:
    found = one({"command": "npx", "args": ["-y", "server", path]})
    assert spec(found)["command"][-1] == place
    assert [item["mountPath"] for item in spec(found).get("volumeMounts", [])] == folders
    assert len(messages(found, Level.WARNING)) == (
        place not in {"/etc/hosts", "@scope/package"} and "://" not in path
    )


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ({"env": {"URL": "http://localhost:8080/x"}}, "env.URL: localhost is the pod itself"),
        ({"args": ["p", "redis://:pw@127.0.0.1:6379"]}, "args[1]: 127.0.0.1 is the pod itself"),
        ({"args": ["p", "--host=host.docker.internal"]}, "args[1]: host.docker.internal is the pod itself"),
        ({"env": {"DB": "postgres://192.168.1.20/db"}}, "env.DB: 192.168.1.20 is a private address"),
        ({"env": {"DB": "172.20.0.3"}}, "env.DB: 172.20.0.3 is a private address"),
        ({"args": ["mcp-remote", "https://mcp.example/mcp"]}, "args[0]: logs in with a browser"),
    ],
)
def test_hosts_that_are_elsewhere_in_a_cluster_are_told_about(raw: Json, told: str) -> None:
    (message,) = messages(one({"command": "npx", **raw}), Level.WARNING)
    assert told in message


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org",
        "mylocalhost",
        "8.8.8.8",
        "1.10.1.2.3",
        "172.32.0.1",
        "localhost-tool",
        "v10.1.2",
    ],
)
def test_other_hosts_and_versions_are_not(text: str) -> None:
    found = one({"command": "npx", "args": ["p", text], "env": {"A": text}})
    assert messages(found, Level.WARNING) == []


def test_vs_codes_inputs_are_answered_and_hidden_answers_go_to_the_secret() -> None:
    document = {
        "inputs": [
            {"id": "plain", "type": "promptString"},
            {"id": "hidden", "type": "promptString", "password": True},
            {"id": "level", "type": "pickString", "options": ["a", "b"], "default": "b"},
        ],
        "servers": {
            "x": {
                "command": "npx",
                "args": ["p", "${input:hidden}"],
                "env": {
                    "A": "${input:plain}",
                    "B": "${input:hidden}",
                    "C": "${input:level}",
                    "D": "${env:WHO}",
                },
            }
        },
    }
    answers = Answers({"plain": "one", "hidden": "two"}, {"WHO": "me"})
    (found,) = convert(document, Options(answers=answers))
    assert found.manifests[0]["stringData"] == {"B": "two", "ARGUMENT": "two"}
    assert [(item["name"], item.get("value")) for item in spec(found)["env"]] == [
        ("B", None), ("ARGUMENT", None), ("A", "one"), ("C", "b"), ("D", "me"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            {"command": "npx", "env": {"A": "${input:key}"}},
            "mcpServers.demo.env.A: ${input:key} has no value: pass ",
        ),
        (
            {"command": "npx", "env": {"A": "${env:GONE}"}},
            "the variable GONE is not set here: export it or pass --env",
        ),
        ({"command": "npx", "args": ["$GONE"]}, "mcpServers.demo.args[0]: the variable GONE is not set"),
    ],
)
def test_a_placeholder_without_a_value_is_refused_naming_field_and_option(raw: Json, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        one(raw)
    assert message in str(caught.value)


def test_a_default_in_a_placeholder_is_taken() -> None:
    assert spec(one({"command": "npx", "args": ["${NAME:-fallback}"]}))["command"] == ["npx", "fallback"]


def test_names_become_legal_and_stay_distinct() -> None:
    names = ["My Server", "my-server", "my_server", "@org/Server!", "日本", "x" * 60, "x" * 61, "a.b"]
    found = convert({"mcpServers": {name: {"command": "npx", "args": ["p"]} for name in names}})
    assert [item.name for item in found] == [
        "my-server-2", "my-server", "my-server-3", "org-server", "server", "x" * 40, "x" * 38 + "-2", "a-b",
    ]  # fmt: skip


def test_a_secrets_name_never_meets_one_that_the_operator_gives() -> None:
    found = one({"command": "npx", "env": {"TOKEN": "abcdefgh"}}, name="mcp-x")
    assert found.manifests[0]["metadata"]["name"] == "env-mcp-x"


def test_a_disabled_entry_is_left_out_unless_it_is_asked_for() -> None:
    raw = {"command": "npx", "args": ["p"], "disabled": True}
    assert (one(raw).manifests, one(raw).skipped) == ((), False)
    assert len(one(raw, Options(with_disabled=True)).manifests) == 1


def test_only_the_chosen_entries_are_imported() -> None:
    document = {"mcpServers": {"a": {"command": "npx"}, "b": {"command": "npx"}}}
    assert [item.entry for item in convert(document, Options(only=frozenset({"b"})))] == ["b"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "holds no object"),
        ({}, "neither mcpServers"),
        ({"mcpServers": []}, "mcpServers must be an object in braces, it is a list"),
        ({"mcpServers": {"a": "npx"}}, "mcpServers.a must be an object in braces, it is a string"),
        (
            {"mcpServers": {"a": {"args": "x"}}},
            "mcpServers.a.args must be a list in brackets, it is a string",
        ),
        ({"mcpServers": {"a": {"args": [{}]}}}, "mcpServers.a.args[0] must be a string, it is an object"),
        ({"mcpServers": {"a": {"env": 5}}}, "mcpServers.a.env must be an object in braces, it is a number"),
        ({"servers": {}, "inputs": [7]}, "inputs[0] must be an object in braces, it is a number"),
    ],
)
def test_a_file_of_another_shape_is_refused_naming_the_field(document: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        entry.read(document)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": {"a": {"command": "npx"}}},
        {"servers": {"a": {"command": "npx"}}},
        {"mcp": {"servers": {"a": {"command": "npx"}}}},
        {"context_servers": {"a": {"command": "npx"}}},
    ],
)
def test_the_files_of_all_clients_are_read(document: Json) -> None:
    assert [found.name for found in entry.read(document).entries] == ["a"]


def test_comments_and_trailing_commas_are_read_and_strings_are_left_alone() -> None:
    text = '\ufeff{ // note\n "a": "http://x//y", /* "b": 1,\n */ "c": [1, 2,], "d": ",}" , }'
    assert jsonc.parse(text, "file") == {"a": "http://x//y", "c": [1, 2], "d": ",}"}


def test_broken_json_is_told_with_line_and_column() -> None:
    with pytest.raises(UsageError, match=r"file is no JSON: .*line 3 column 2"):
        jsonc.parse('{\n // fine\n "a" 1}'.replace(' "a" 1', " x"), "file")
