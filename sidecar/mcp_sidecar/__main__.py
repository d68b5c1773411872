"""`python -m mcp_sidecar` in a pod; `python -m mcp_sidecar local …` on a laptop."""

import sys


def main(arguments: list[str]) -> int:
    """Run what the arguments ask for; gives the exit code."""
    if arguments[:1] == ["local"]:
        from mcp_sidecar import local  # argparse and subprocess cost the pod's relay memory

        return local.main(arguments[1:])
    if arguments:
        sys.stderr.write("usage: python -m mcp_sidecar [local --port PORT [--token TOKEN] -- CMD ARGS]\n")
        return 2
    from mcp_sidecar import pod

    return pod.main()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
