"""Commands that are no working MCP server, each in its own way: `broken.py MODE`."""

import argparse
import json
import sys
import time
import traceback


def connect_to_database() -> None:
    raise RuntimeError("the database is not reachable")


def exits(code: int) -> None:
    """Print a stack trace and leave before reading anything."""
    try:
        connect_to_database()
    except RuntimeError:
        traceback.print_exc()
    sys.exit(code)


def chatter() -> None:
    """Answer every line with prose."""
    for _ in sys.stdin:
        print("I do not speak JSON", flush=True)


def silent() -> None:
    """Read everything, answer nothing."""
    for _ in sys.stdin:
        pass


def refuses() -> None:
    """Answer `initialize` (and everything else) with an error."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            error = {"code": -32603, "message": "licence expired"}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("mode", choices=["exits", "chatter", "silent", "refuses"])
    options.add_argument("--code", type=int, default=1, help="exit code of `exits`")
    options.add_argument("--after", type=float, default=0, help="seconds before `exits` leaves")
    arguments = options.parse_args()
    time.sleep(arguments.after)
    if arguments.mode == "exits":
        exits(arguments.code)
    {"chatter": chatter, "silent": silent, "refuses": refuses}[arguments.mode]()


if __name__ == "__main__":
    main()
