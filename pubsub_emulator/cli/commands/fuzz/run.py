"""`pubsub fuzz`: runs a campaign of cheats against our verifier, and perhaps another one, too."""

from collections import Counter
from math import inf
from time import monotonic

from pubsub_emulator.cli.base.interrupts import Interrupts
from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.commands.fuzz.campaigns import Campaign
from pubsub_emulator.cli.exits import FINDINGS, INTERRUPTED
from pubsub_emulator.cli.screen import files, say, stage, table
from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.laboratory.campaign import NO_EFFECT, CampaignResult, campaign, corpus
from pubsub_emulator.laboratory.novelty import read_corpus
from pubsub_emulator.laboratory.surprises import SurpriseKind
from pubsub_emulator.laboratory.verifier import VerifierProcess, compare_verifiers, keep
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.parachain.block import Verdict

MANY = {2: "two at once", 3: "three at once"}
"""The titles of the rows for cases with several strategies, by their number."""


def run_fuzz(request: Campaign) -> Result:
    """Run the campaign and print its result.

    Ctrl-C ends it after the case that is being judged.
    """
    kept_cases = [case for _, case in corpus()]
    cases = request.most
    corpus_folder = request.corpus
    began = monotonic()
    interrupts = Interrupts()
    amount = (
        counted(cases, "cheat") if cases is not None else f"cheats for {request.minutes:g} minutes"
    )
    title = f"replaying {len(kept_cases)} kept cases, then trying {amount}"
    with stage(title, cases) as advance, interrupts.taken():
        result = campaign(
            cases,
            request.seed,
            request.strategies or None,
            on_progress=lambda done, most: advance(done, most, "trying cheats"),
            out=request.out,
            first=kept_cases,
            minutes=request.minutes,
            kept=corpus_folder,
            stop=lambda: interrupts.noted,
            rules=request.rules,
        )
    show_campaign(result, len(kept_cases), monotonic() - began)
    if result.files:
        files(
            "the smallest case of each group, for `pubsub replay`:",
            ((path, "") for path in result.files),
        )
    if corpus_folder is not None:
        stored = len(read_corpus(corpus_folder, request.rules))
        files(
            "corpus:",
            (
                (
                    corpus_folder,
                    f"{stored:,} cases that showed something new; --corpus continues from them",
                ),
            ),
        )
    if interrupts.noted:
        say("pubsub: interrupted; the figures cover the cases tried until then", aside=True)
        code = INTERRUPTED
    else:
        code = FINDINGS if result.found.total else 0
    return Result({"kept_cases": len(kept_cases), **_document(result)}, code)


def _document(result: CampaignResult) -> dict[str, object]:
    """Return a campaign's result for `--json`, its surprises by group."""
    surprises = result.found
    groups = []
    for key, group in surprises.ordered():
        verdicts = {"kind": key.kind.value, "due": list(key.due), "found": list(key.found)}
        groups.append({**verdicts, "place": key.place, "cases": group.count, "file": group.file})
    totals = {
        "cases": result.cases,
        "honest_blocks": result.honest,
        "stopped_for_their_budget": result.stopped,
    }
    rightly = {"refused": result.rejected, "valid_because_canonical": result.accepted_equal}
    wrongly = {
        "surprising": surprises.total,
        "accepted_wrongly": surprises.count(SurpriseKind.ACCEPTED),
    }
    by_strategy = {"never_tried": list(result.missed), "by_strategy": result.by_strategy}
    return {**totals, **rightly, **wrongly, "groups": groups, "files": result.files, **by_strategy}


def show_campaign(result: CampaignResult, replayed: int, seconds: float) -> None:
    """Show the table by strategy and verdict, and the totals."""
    rows: dict[str, Counter[str]] = {}
    for names, verdicts in result.by_strategy.items():
        # The names of several strategies are joined by +. Such cases share a row.
        count = names.count("+") + 1
        title = MANY.get(count, names)
        rows.setdefault(title, Counter()).update(verdicts)
    shown = []
    for title in (*STRATEGIES, *MANY.values()):
        if title in rows:
            met = (f"{verdict} {cases:,}" for verdict, cases in rows[title].most_common())
            shown.append((title, rows[title].total(), ", ".join(met)))
    table("cheats by the first verdict that they met", ("strategy", "cases", "verdicts"), shown)
    rate = f", {counted(round(result.cases / seconds), 'case')} per second" if seconds > 1 else ""
    say(
        f"{counted(replayed, 'kept case')} replayed; {counted(result.cases, 'cheat')} tried;"
        f" honest blocks: {result.honest:,}, of which {result.stopped:,} stopped for their"
        f" budget{rate}",
        f"{result.rejected:,} refused; {result.accepted_equal:,} accepted rightly, because the"
        f" block is valid; {result.found.total} surprising",
    )
    idle = sum(count.get(NO_EFFECT, 0) for count in result.by_strategy.values())
    if idle:
        say(f"{idle:,} of those accepted had no effect: their steps lead to the honest block")
    if result.missed:
        say(
            "not tried, because there were too few cases or nothing to change:"
            f" {', '.join(result.missed)}"
        )
    if result.found.total:
        _show_surprises(result)


def _show_surprises(result: CampaignResult) -> None:
    """Print a row for each group of surprises, and say loudly if a block was accepted wrongly."""
    surprises = result.found
    wrongly = surprises.count(SurpriseKind.ACCEPTED)
    say()
    if wrongly:
        say(f"{wrongly:,} ACCEPTED WRONGLY: the verifier accepts blocks that it must refuse")
    rows = []
    for key, group in surprises.ordered():
        due = ", ".join(key.due) or "accepted"
        found = ", ".join(key.found) or "accepted"
        rows.append((key.kind.value, due, found, key.place, group.count))
    table("surprises by verdict and place", ("kind", "due", "found", "changed", "cases"), rows)


def list_strategies() -> Result:
    """Print all strategies with their aim and the verdicts that they must get."""
    rows = []
    document: dict[str, object] = {}
    for strategy in STRATEGIES.values():
        verdicts = [verdict.value for verdict in strategy.meets]
        rows.append((strategy.name, strategy.gain, ", ".join(verdicts) or "by the case"))
        document[strategy.name] = {"gain": strategy.gain, "meets": verdicts}
    table("strategies", ("name", "to gain", "meets"), rows)
    return Result(document)


def run_verifier(command: str, request: Campaign) -> Result:
    """Let another verifier judge the same cases, and store the differences.

    The exit code is 1 if there are differences. Raises `VerifierFailed`, `UnknownStrategy`,
    `BadCorpus`, `BadCase`.
    """
    cases = request.counted
    minutes = request.minutes
    until = inf if minutes is None else monotonic() + 60 * minutes
    stored_cases = [] if request.corpus is None else read_corpus(request.corpus, request.rules)
    amount = f"{cases:,} cases" if minutes is None else f"cases for {minutes:g} minutes"
    total = cases if minutes is None else None
    with VerifierProcess(command) as verifier, stage(f"judging {amount} twice", total) as advance:
        compared = compare_verifiers(
            verifier.judge,
            cases,
            request.seed,
            request.strategies or None,
            lambda done, _most: advance(done, total),
            first=stored_cases,
            stop=lambda: monotonic() >= until,
            rules=request.rules,
        )
    table("cases by our first verdict", ("verdict", "cases"), compared.by_verdict.most_common())
    groups = {
        group: len(differences) for group, differences in sorted(compared.differences.items())
    }
    if groups:
        table("differences", ("verdicts", "cases"), groups.items())
    written = keep(compared, request.out)
    if written:
        files("the smallest difference of each kind:", ((path, "") for path in written))
    missing = [verdict.value for verdict in Verdict if verdict.value not in compared.judged]
    if missing:
        say(f"not judged by the other verifier: {', '.join(missing)}")
    say(f"{counted(compared.cases, 'case')} judged by both; {compared.differing:,} differ")
    document = {
        "cases": compared.cases,
        "by_verdict": dict(compared.by_verdict),
        "judged": sorted(compared.judged),
        "differing": compared.differing,
        "groups": groups,
        "files": written,
    }
    return Result(document, FINDINGS if groups else 0)
