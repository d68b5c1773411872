"""Break things on the cluster of $KUBECONFIG while clients call, and report which promises held.

    KUBECONFIG=... python -m chaoskit [--seed N] [--faults N] [--short] [--json FILE] [--only KIND ...]

Progress goes to standard error. The last line of standard output sums up; exit code 1: a promise was broken.
"""

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path

from chaoskit import campaign, report, schedule, world
from chaoskit.kinds import BY_NAME, KINDS, Kind
from clusterkit import kube as k
from clusterkit import node

LONG_FAULTS = 200
OUTAGE_SECONDS, SHORT_OUTAGE_SECONDS = 30.0, 10.0
CLIENTS = 3


def say(text: str) -> None:
    print(f"==> {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def chosen(options: argparse.Namespace) -> tuple[Kind, ...]:
    """The kinds of this run."""
    if options.only:
        return tuple(BY_NAME[name] for name in options.only)
    return tuple(kind for kind in KINDS if kind.short or not options.short)


async def run(options: argparse.Namespace) -> report.Findings:
    kinds = chosen(options)
    count = options.faults or (len(kinds) if options.short else LONG_FAULTS)
    outage = options.outage or (SHORT_OUTAGE_SECONDS if options.short else OUTAGE_SECONDS)
    rounds = schedule.plan(options.seed, count, list(options.servers), kinds)
    say(f"seed {options.seed}: {count} faults in {len(rounds)} rounds; servers {', '.join(options.servers)}")
    namespace = await asyncio.to_thread(node.make_namespace, "chaos")
    async with k.Kube(k.kubeconfig_path()) as kube:
        made = await world.make(kube, namespace, list(options.servers), outage)
        starts = ", ".join(f"{name} {made.targets[name].start_seconds:.1f} s" for name in made.targets)
        say(f"servers are Ready: {starts}")
        try:
            return await campaign.run(made, rounds, options.seed, CLIENTS, say)
        finally:
            await world.remove(made)
            await asyncio.to_thread(node.kubectl, "delete", "namespace", namespace, "--wait=false")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="chaoskit", description=__doc__)
    found.add_argument(
        "--seed", type=int, default=None, help="of the order; default: from the clock, told first"
    )
    found.add_argument("--faults", type=int, default=0, help=f"how many; default {LONG_FAULTS}")
    found.add_argument("--short", action="store_true", help="each kind that is quick once")
    found.add_argument("--outage", type=float, default=0, help="seconds without API server")
    found.add_argument("--only", action="append", choices=sorted(BY_NAME), help="only faults of this kind")
    found.add_argument("--servers", nargs="+", default=list(world.COMMANDS), choices=list(world.COMMANDS))
    found.add_argument("--json", type=Path, help="write everything there")
    return found


def main() -> int:
    options = parser().parse_args()
    if node.is_kind():
        print(
            "not run: the fault suite needs the local node, whose programs it can stop; this cluster is kind"
        )
        return 0
    if options.seed is None:
        options.seed = int(time.time())
    found = asyncio.run(run(options))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report.document(found), indent=1))
    print(report.text(found))
    return 1 if report.failures(found) else 0


if __name__ == "__main__":
    sys.exit(main())
