import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Render = Callable[..., str]

SETTINGS: dict[str, tuple[str, ...]] = {
    "defaults": (),
    "two namespaces": ("rbac.namespaces={a,b}",),
    "no CRD, no rights": ("crds.install=false", "rbac.create=false"),
    "metrics": ("metrics.service.enabled=true", "metrics.serviceMonitor.enabled=true"),
    "everything optional": (
        "imageRegistry=registry.example.com",
        "imagePullSecrets[0].name=registry",
        "serviceAccount.annotations.a=b",
        "podLabels.team=x",
        "podAnnotations.note=y",
        "nodeSelector.disk=ssd",
        "tolerations[0].key=k",
        "tolerations[0].operator=Exists",
        "priorityClassName=high",
        "extraEnv[0].name=A",
        "extraEnv[0].value=b",
    ),
}

REFUSED: dict[str, tuple[str, str]] = {
    "an unknown value": ("imagge.tag=1", "imagge"),
    "an unknown nested value": ("metrics.service.enable=true", "enable"),
    "a bad digest": ("image.digest=sha256:12", "/image/digest"),
    "a bad namespace": ("rbac.namespaces={Upper}", "/rbac/namespaces/0"),
    "an unknown log level": ("logLevel=LOUD", "/logLevel"),
    "a pull policy that does not exist": ("imagePullPolicy=Sometimes", "/imagePullPolicy"),
}

# The whole of what the operator may do. A wider right has to be argued for here.
ALLOWED = {
    ("mcp-session.dev", "mcpservers"): {"get", "list", "watch"},
    ("mcp-session.dev", "mcpservers/status"): {"patch"},
    ("mcp-session.dev", "mcpservers/finalizers"): {"update"},
    ("", "pods"): {"get", "list", "watch", "create", "delete"},
    ("", "services"): {"get", "list", "watch", "create", "patch"},
    ("", "secrets"): {"get", "list", "watch", "create", "patch"},
    ("networking.k8s.io", "networkpolicies"): {"get", "list", "watch", "create", "patch"},
    ("", "configmaps"): {"get", "list", "watch"},
    ("events.k8s.io", "events"): {"create", "list"},
}


def _conform(kubeconform: str, schemas: Path, manifests: str) -> subprocess.CompletedProcess[str]:
    location = f"{schemas}/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json"
    command = [kubeconform, "-strict", "-summary", "-schema-location", location, "-"]
    return subprocess.run(command, input=manifests, capture_output=True, text=True, check=False, timeout=30)


def _rules(manifests: str, kinds: set[str]) -> dict[tuple[str, str], set[str]]:
    rights: dict[tuple[str, str], set[str]] = {}
    for document in yaml.safe_load_all(manifests):
        for rule in (document.get("rules") or ()) if document and document["kind"] in kinds else ():
            assert set(rule) == {"apiGroups", "resources", "verbs"}
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    rights.setdefault((group, resource), set()).update(rule["verbs"])
    return rights


def test_helm_lint_finds_nothing(helm: str, chart: Path) -> None:
    result = subprocess.run(
        [helm, "lint", "--strict", str(chart)], capture_output=True, text=True, check=False, timeout=30
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_charts_own_suites_pass(helm_unittest: str, chart: Path) -> None:
    result = subprocess.run(
        [helm_unittest, "--strict", str(chart)], capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_rendered_objects_have_no_field_that_kubernetes_does_not_know(
    settings: tuple[str, ...], render: Render, kubeconform: str, schemas: Path
) -> None:
    result = _conform(kubeconform, schemas, render(*settings))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Skipped: 0" in result.stdout


def test_the_check_of_rendered_objects_notices_a_wrong_field(
    kubeconform: str, schemas: Path, render: Render
) -> None:
    wrong = render("crds.install=false").replace("replicas: 1", "replicass: 1")
    result = _conform(kubeconform, schemas, wrong)
    assert result.returncode != 0
    assert "replicass" in result.stdout


@pytest.mark.parametrize(("setting", "named"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_value_is_refused_by_name(setting: str, named: str, helm: str, chart: Path) -> None:
    command = [helm, "template", "op", str(chart), "--set", setting]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert result.returncode != 0
    assert named in result.stderr


def test_the_operator_has_exactly_the_rights_it_uses(render: Render) -> None:
    assert _rules(render(), {"ClusterRole"}) == ALLOWED
    assert _rules(render("rbac.namespaces={a}"), {"Role"}) == ALLOWED


def test_named_namespaces_need_no_cluster_wide_right(render: Render) -> None:
    kinds = {document["kind"] for document in yaml.safe_load_all(render("rbac.namespaces={a,b}")) if document}
    assert kinds.isdisjoint({"ClusterRole", "ClusterRoleBinding"})


def test_examples_are_valid_resources(kubeconform: str, schemas: Path) -> None:
    examples = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.yaml"))
    assert examples
    result = _conform(
        kubeconform, schemas, "\n---\n".join(path.read_text(encoding="utf-8") for path in examples)
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_resource_shown_in_the_notes_is_valid(chart: Path, kubeconform: str, schemas: Path) -> None:
    text = (chart / "templates/NOTES.txt").read_text(encoding="utf-8")
    shown = text.split("<<END\n")[1].split("   END")[0]
    resource: dict[str, Any] = yaml.safe_load(shown)
    assert resource["kind"] == "MCPServer"
    result = _conform(kubeconform, schemas, yaml.safe_dump(resource))
    assert result.returncode == 0, result.stdout + result.stderr


def test_chart_and_package_have_one_version(chart: Path) -> None:
    described = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    project = (chart.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{described["version"]}"' in project
    assert described["appVersion"] == described["version"]
