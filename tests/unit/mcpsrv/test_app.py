"""The command line as a script sees it: exit codes, streams, files."""

import json
import os
import stat
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from mcpsrv.app import app
from mcpsrv.core.errors import ExitCode

TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ0123"
CONFIG = json.dumps(
    {
        "mcpServers": {
            "a": {"command": "npx", "args": ["p"], "env": {"TOKEN": TOKEN}},
            "far": {"url": "http://localhost/mcp"},
        }
    }
)


def mcpsrv(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, list(words), input=stdin)


def test_an_import_writes_manifests_to_stdout_and_the_rest_to_stderr() -> None:
    done = mcpsrv("import", "-", "--only", "a", "-n", "tools", stdin=CONFIG)
    assert done.exit_code == ExitCode.OK
    kinds = [(one["kind"], one["metadata"]["namespace"]) for one in yaml.safe_load_all(done.stdout)]
    assert kinds == [("Secret", "tools"), ("MCPServer", "tools")]
    assert TOKEN not in done.stderr
    assert "MCPServer a and Secret a-env" in done.stderr


def test_an_entry_that_is_left_out_ends_with_1_unless_that_is_agreed_to() -> None:
    done = mcpsrv("import", "-", stdin=CONFIG)
    assert done.exit_code == ExitCode.FAILED
    assert "mcpServers.far.url: is a server on this computer" in done.stderr
    assert mcpsrv("import", "-", "--skip-unsupported", stdin=CONFIG).exit_code == ExitCode.OK


def test_a_file_with_secrets_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    made = tmp_path / "out.yaml"
    done = mcpsrv("import", "-", "--skip-unsupported", "--output", str(made), stdin=CONFIG)
    assert (done.exit_code, done.stdout) == (ExitCode.OK, "")
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert TOKEN in made.read_text()


def test_json_is_a_list_that_kubectl_applies() -> None:
    done = mcpsrv("import", "-", "--skip-unsupported", "-o", "json", stdin=CONFIG)
    assert [item["kind"] for item in json.loads(done.stdout)["items"]] == ["Secret", "MCPServer"]


@pytest.mark.parametrize(
    ("words", "stdin", "message"),
    [
        (["import", "/nowhere/x.json"], "", "/nowhere/x.json cannot be read"),
        (["import", "-"], "{", "stdin is no JSON"),
        (["import", "-", "--input", "x"], CONFIG, "write --input NAME=VALUE"),
        (["import", "-", "--only", "z"], CONFIG, "--only z: the file has no such server; it has a, far"),
        (["import", "-", "--command", "z=x"], CONFIG, "--command z: the file has no such server"),
        (
            ["import", "-"],
            '{"inputs": [{"id": "k"}], "servers": {"a": {"command": "npx", "env": {"A": "${input:k}"}}}}',
            "the file asks for k: pass --input k=VALUE",
        ),
        (["test", "-f", "-"], "a: [", "- cannot be read"),
        (["test", "-f", "-"], "kind: Pod", "holds no MCPServer"),
    ],
)
def test_wrong_usage_ends_with_2_and_names_the_cure(words: list[str], stdin: str, message: str) -> None:
    done = mcpsrv(*words, stdin=stdin)
    assert done.exit_code == ExitCode.USAGE
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "command", ["list", "tools x", "call x y", "logs x", "why x", "connect x", "restart x"]
)
def test_without_a_cluster_every_command_ends_with_4(command: str, tmp_path: Path) -> None:
    done = mcpsrv(*command.split(), "--kubeconfig", str(tmp_path / "nothing"))
    assert done.exit_code == ExitCode.NO_ACCESS
    assert "set KUBECONFIG, or pass --kubeconfig" in done.stderr


INPUTS = """{
  "inputs": [
    {"id": "region", "type": "pickString", "description": "Which region", "options": ["eu", "us"]},
    {"id": "key", "type": "promptString", "description": "Your key", "password": true},
  ],
  "servers": {"a": {"command": "npx", "args": ["p", "${input:region}"], "env": {"A": "${input:key}"}}},
}"""


def test_a_person_is_asked_for_the_inputs_and_hidden_ones_do_not_appear(tmp_path: Path) -> None:
    config, made = tmp_path / "mcp.json", tmp_path / "out.yaml"
    config.write_text(INPUTS)
    terminal, inside = os.openpty()
    command = [sys.executable, "-m", "mcpsrv", "import", str(config), "--output", str(made)]
    with subprocess.Popen(command, preexec_fn=lambda: os.login_tty(inside)) as process:  # noqa: PLW1509
        os.close(inside)
        seen = read_until(terminal, "Which region (eu, us): ")
        os.write(terminal, b"mars\n")
        seen += read_until(terminal, "Which region (eu, us): ")
        os.write(terminal, b"eu\n")
        seen += read_until(terminal, "Your key: ")
        os.write(terminal, b"s3same-open\n")
        seen += read_until(terminal, "kubectl apply -f")
        assert process.wait(timeout=20) == ExitCode.OK
    os.close(terminal)
    assert "s3same" not in seen
    secret, server = yaml.safe_load_all(made.read_text())
    assert secret["stringData"] == {"A": "s3same-open"}
    assert server["spec"]["command"] == ["npx", "p", "eu"]


def read_until(terminal: int, text: str) -> str:
    seen = ""
    while text not in seen:
        seen += os.read(terminal, 4096).decode()
    return seen


def test_both_names_start_the_same_program_as_the_module() -> None:
    folder = Path(sys.executable).parent
    commands = [[str(folder / "mcpsrv")], [str(folder / "kubectl-mcpsrv")], [sys.executable, "-m", "mcpsrv"]]
    said = set()
    for command in commands:
        done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True, timeout=50)
        said.add(done.stdout.partition("╭")[2])
    assert len(said) == 1
    assert "Exit codes: 0 done" in said.pop()


def test_the_version_is_told_without_a_command() -> None:
    told = mcpsrv("--version")
    assert (told.exit_code, told.stdout) == (ExitCode.OK, f"mcpsrv {version('mcpserver-operator')}\n")
