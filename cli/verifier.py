"""`pubsub fuzz --verifier`: another verifier judges the same cases, and every difference is kept."""

from collections.abc import Sequence
from pathlib import Path

from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.cli.result import Result
from pubsub_emulator.cli.screen import files, say, stage, table
from pubsub_emulator.laboratory.verifier import VerifierProcess, compare_verifiers, keep
from pubsub_emulator.runtime.parachain.block import Verdict


def run_verifier(command: str, cases: int, seed: str, strategies: Sequence[str], out: Path) -> Result:
    """The command: exit code 1 if the two verifiers differ anywhere. Raises `VerifierFailed`, `UnknownStrategy`."""
    with VerifierProcess(command) as verifier, stage(f"judging {cases:,} cases twice", cases) as advance:
        found = compare_verifiers(verifier.judge, cases, seed, strategies or None, advance)
    table("cases by our first verdict", ("verdict", "cases"), found.by_verdict.most_common())
    if found.differences:
        rows = [(group, len(each)) for group, each in sorted(found.differences.items())]
        table("differences", ("what each says", "cases"), rows)
    kept = keep(found, out)
    if kept:
        files("the smallest difference of each kind:", ((path, "") for path in kept))
    missing = [verdict.value for verdict in Verdict if verdict.value not in found.judged]
    if missing:
        say(f"not judged by the other verifier: {', '.join(missing)}")
    say(f"{found.cases:,} cases judged by both; {found.differing:,} differ")
    document = {
        "cases": found.cases,
        "by_verdict": dict(found.by_verdict),
        "judged": sorted(found.judged),
        "differing": found.differing,
        "groups": {group: len(each) for group, each in sorted(found.differences.items())},
        "files": kept,
    }
    return Result(document, FINDINGS if found.differences else 0)
