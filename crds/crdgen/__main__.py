import json
import sys
from pathlib import Path

from crdgen import coretypes, crd, reference, trim

ROOT = Path(__file__).resolve().parents[2]


def outputs() -> dict[Path, str]:
    """Give every generated file: path below the repository's root, and content."""
    manifest = crd.text()
    return {
        Path("crds", f"{crd.NAME}.yaml"): manifest,
        Path("helm/files", f"{crd.NAME}.yaml"): manifest,
        Path("docs/api.md"): reference.text(),
    }


def main(arguments: list[str]) -> int:
    """Write the generated files, or with `trim SWAGGER` the trimmed core types. Returns the exit code."""
    match arguments:
        case []:
            for path, content in outputs().items():
                (ROOT / path).parent.mkdir(exist_ok=True)
                (ROOT / path).write_text(content, encoding="utf-8")
        case ["trim", swagger]:
            document = trim.trim(json.loads(Path(swagger).read_text(encoding="utf-8")))
            coretypes.FILE.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        case _:
            sys.stderr.write("usage: python -m crdgen [trim SWAGGER.JSON]\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
