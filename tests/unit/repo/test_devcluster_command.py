"""The command line: answers on standard output, everything for people on standard error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster import __main__ as command
from devcluster import debian, demo, gotools, layout, say, shell


def test_kubeconfig_prints_the_path_and_nothing_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert command.main(["kubeconfig"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "/somewhere/mcpserver-operator/kubeconfig\n"
    assert captured.err == ""


def test_the_cache_lies_in_the_users_home_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/u")
    assert layout.of_user().cache == Path("/home/u/.cache/mcpserver-operator")


@pytest.mark.parametrize("words", [[], ["sideways"], ["tool"], ["tool", "hammer"]])
def test_a_command_that_does_not_exist_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.parse(words)
    assert "usage: devcluster" in capsys.readouterr().err


def test_every_command_says_what_it_does() -> None:
    assert all(function.__doc__ for function in command.COMMANDS.values())
    assert {"helm", "kubeconform", "helm-unittest", "kubectl"} <= set(gotools.names())


def test_a_failed_program_is_told_with_the_end_of_its_output() -> None:
    script = "print('one'); import sys; print('the cause', file=sys.stderr); sys.exit(4)"
    with pytest.raises(say.ClusterError, match=r"(?s)failed \(4\).*the cause"):
        shell.run([sys.executable, "-c", script])


def test_a_missing_program_is_named() -> None:
    with pytest.raises(say.ClusterError, match="no-such-program is missing on this machine"):
        shell.run(["no-such-program"])


def test_a_step_ends_its_line_with_the_time_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    with say.step("doing"):
        pass
    assert capsys.readouterr().err == "==> doing … 0.0 s\n"
    with pytest.raises(KeyError), say.step("trying"):
        raise KeyError
    assert capsys.readouterr().err == "==> trying … failed after 0.0 s\n"


def test_waiting_gives_up_and_says_for_what() -> None:
    with pytest.raises(say.ClusterError, match="the moon rises: not within 0 s"):
        shell.wait_until("the moon rises", lambda: False, 0)


def test_what_downloads_is_tried_again_and_its_last_error_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shell, "RETRY_PAUSES", (0.0, 0.0))
    failures = ["HTTP 502", "reset"]

    def download() -> str:
        if failures:
            raise say.ClusterError(failures.pop(0))
        return "it is here"

    assert shell.persistently(download) == "it is here"
    told = capsys.readouterr().err
    assert "HTTP 502" in told
    assert "reset" in told
    failures += ["1", "2", "3"]
    with pytest.raises(say.ClusterError, match="3"):
        shell.persistently(download)


def test_without_root_and_sudo_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(say.ClusterError, match="Run as root"):
        debian.become_root()


def test_under_sudo_the_cache_stays_the_callers() -> None:
    kept = debian.kept_under_sudo({"PATH": "/bin", "PIP_FIND_LINKS": "/w", "SECRET": "s"}, Path("/home/u"))
    assert kept["XDG_CACHE_HOME"] == "/home/u/.cache"
    assert kept["PATH"] == "/bin"
    assert not kept.keys() & {"PIP_FIND_LINKS", "SECRET"}


def test_a_second_caller_waits_for_the_lock_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "folder/lock"
    script = (
        "import sys; from pathlib import Path; from devcluster import shell\n"
        "with shell.lock(Path(sys.argv[1])): print('got it', flush=True)"
    )
    environment = {**os.environ, "PYTHONPATH": str(layout.REPOSITORY / "tests/cluster")}
    with shell.lock(path):
        second = subprocess.Popen(
            [sys.executable, "-c", script, str(path)], env=environment, stdout=subprocess.PIPE, text=True
        )
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(timeout=0.5)
    out, _ = second.communicate(timeout=30)
    assert (out, second.returncode) == ("got it\n", 0)


@pytest.mark.parametrize("call", demo.CALLS, ids=lambda call: call.server)
def test_the_demo_calls_examples_that_exist(call: demo.Call) -> None:
    assert f"name: {call.server}\n" in call.example.read_text(encoding="utf-8")


def test_the_demos_client_pod_mounts_the_token_of_the_server_that_it_calls() -> None:
    url = "http://mcp-time.default.svc/mcp"
    pod = demo.client_pod(demo.CALLS[0], url)
    spec = pod["spec"]
    assert isinstance(spec, dict)
    assert spec["volumes"][0]["secret"] == {
        "secretName": "mcp-time",
        "items": [{"key": "token", "path": "token"}],
    }
    assert url in spec["containers"][0]["command"]
    assert spec["containers"][0]["resources"]["limits"]["memory"]
