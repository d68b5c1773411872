"""`python -m mcp_sidecar` in a pod; `python -m mcp_sidecar local …` on a laptop."""

import os
import signal
import sys


def _end(_number: int, _frame: object) -> None:
    os._exit(0)  # there is nothing yet to be ended in order


def main(arguments: list[str]) -> int:
    """Run what the arguments ask for; gives the exit code."""
    if arguments[:1] == ["local"]:
        from mcp_sidecar import local  # argparse and subprocess cost the pod's relay memory

        return local.main(arguments[1:])
    if arguments:
        sys.stderr.write("usage: python -m mcp_sidecar [local --port PORT [--token TOKEN] -- CMD ARGS]\n")
        return 2
    # As the first process of its container the relay would not even die of a signal nobody waits for yet.
    signal.signal(signal.SIGTERM, _end)
    from mcp_sidecar import pod

    return pod.main()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
