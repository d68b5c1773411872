"""`python -m suitekit`: run every set, one line each; exit code 1 when the gate does not open."""

import sys
from pathlib import Path

import yaml

from suitekit import cache, local, suite
from suitekit.judgement import Verdict, judge

BASELINE = Path(__file__).resolve().parents[1] / "baseline.yaml"

# Set -> the server behind the relay, and how the relay is told to speak with it.
SERVERS = {"2025-11-25": (local.LEGACY, "Auto"), "2026-07-28": (local.MODERN, "Modern")}


def main() -> int:
    """Run the sets that the baseline names; gives the exit code."""
    baseline: dict[str, dict[str, str] | None] = yaml.safe_load(BASELINE.read_text(encoding="utf-8"))
    try:
        installed = suite.installed()
        verdicts = {name: run(installed, str(name), allowed or {}) for name, allowed in baseline.items()}
    except (cache.InstallError, suite.SuiteError, local.StartError) as error:
        print(error, file=sys.stderr)
        return 2
    return int(any(verdict.problems for verdict in verdicts.values()))


def run(installed: suite.Suite, name: str, allowed: dict[str, str]) -> Verdict:
    """Run one set against a relay of its own and tell the verdict."""
    with local.running(*SERVERS[name]) as relay:
        before = relay.started_servers()
        outcomes, passed = installed.run(name, relay.url)
        same = len(before) == 1 and relay.servers() == before
    scenarios = installed.scenarios(name)
    verdict = judge(scenarios, outcomes, allowed, suite_passed=passed, one_process=same)
    print(verdict.line(name), flush=True)
    for problem in verdict.problems:
        print(f"  {problem}", file=sys.stderr)
    return verdict


if __name__ == "__main__":
    sys.exit(main())
