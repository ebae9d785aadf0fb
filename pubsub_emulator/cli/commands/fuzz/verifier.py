"""`pubsub fuzz --verifier`: another verifier judges the same cases. Differences are kept."""

from math import inf
from time import monotonic

from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.commands.fuzz.campaigns import Campaign
from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.cli.screen import files, say, stage, table
from pubsub_emulator.laboratory.novelty import read_corpus
from pubsub_emulator.laboratory.verifier import VerifierProcess, compare_verifiers, keep
from pubsub_emulator.runtime.parachain.block import Verdict


def run_verifier(command: str, request: Campaign) -> Result:
    """Run the command. The exit code is 1 if the two verifiers differ on a case.

    Raises `VerifierFailed`, `UnknownStrategy`, `BadCorpus`, `BadCase`.
    """
    cases, minutes = request.counted, request.minutes
    until = inf if minutes is None else monotonic() + 60 * minutes
    first = [] if request.corpus is None else read_corpus(request.corpus)
    wanted = f"{cases:,} cases" if minutes is None else f"cases for {minutes:g} minutes"
    total = cases if minutes is None else None
    with VerifierProcess(command) as verifier, stage(f"judging {wanted} twice", total) as advance:
        found = compare_verifiers(
            verifier.judge,
            cases,
            request.seed,
            request.strategies or None,
            lambda done, _most: advance(done, total),
            first=first,
            stop=lambda: monotonic() >= until,
        )
    table("cases by our first verdict", ("verdict", "cases"), found.by_verdict.most_common())
    groups = {group: len(each) for group, each in sorted(found.differences.items())}
    if groups:
        table("differences", ("what each says", "cases"), groups.items())
    written = keep(found, request.out)
    if written:
        files("the smallest difference of each kind:", ((path, "") for path in written))
    missing = [verdict.value for verdict in Verdict if verdict.value not in found.judged]
    if missing:
        say(f"not judged by the other verifier: {', '.join(missing)}")
    say(f"{found.cases:,} cases judged by both; {found.differing:,} differ")
    judged = {"cases": found.cases, "by_verdict": dict(found.by_verdict), "judged": sorted(found.judged)}
    return Result(
        {**judged, "differing": found.differing, "groups": groups, "files": written}, FINDINGS if groups else 0
    )
