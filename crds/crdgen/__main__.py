import json
import sys
from pathlib import Path

from crdgen import conform, coretypes, crd, recovery, reference, trim

ROOT = Path(__file__).resolve().parents[2]
RECOVERY_FIGURES = ROOT / "docs/figures/recovery.md"
CHART_TYPES = ROOT / "tests/chart/kubernetes.json"


def outputs() -> dict[Path, str]:
    """Give every generated file: path below the repository's root, and content."""
    manifest = crd.text()
    return {
        Path("crds", f"{crd.NAME}.yaml"): manifest,
        Path("helm/files", f"{crd.NAME}.yaml"): manifest,
        Path("docs/api.md"): reference.text(),
        Path("docs/recovery.md"): recovery.text() + "\n" + RECOVERY_FIGURES.read_text(encoding="utf-8"),
    }


def renew(swagger: Path) -> None:
    """Cut the OpenAPI document of a Kubernetes release down to what the CRD and the chart's tests need."""
    document = json.loads(swagger.read_text(encoding="utf-8"))
    coretypes.FILE.write_text(
        json.dumps(trim.trim(document), indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )
    definitions = conform.built_in(document)
    CHART_TYPES.write_text(json.dumps(definitions, sort_keys=True) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Write the generated files, or with `trim SWAGGER` what they are made from. Returns the exit code."""
    match arguments:
        case []:
            for path, content in outputs().items():
                (ROOT / path).parent.mkdir(exist_ok=True)
                (ROOT / path).write_text(content, encoding="utf-8")
        case ["trim", swagger]:
            renew(Path(swagger))
        case _:
            sys.stderr.write("usage: python -m crdgen [trim SWAGGER.JSON]\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
