"""Entry point of `mcpsrv`, and of `kubectl mcpsrv`."""

import sys


def main() -> None:
    """Runs the command line. Without its libraries it says which package brings them."""
    try:
        from mcpsrv.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("mcpsrv"):
            raise
        sys.stderr.write(f"{error.name} is missing: pip install '.[cli]' in the repository's folder\n")
        raise SystemExit(1) from error
    app()


if __name__ == "__main__":
    main()
