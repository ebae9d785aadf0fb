"""`pubsub run`: from a scenario to a history, a summary and a digest.

It can run again whenever a file changes.
"""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import sleep
from typing import Final

from pubsub_emulator.cli.base.figures import show_differences
from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.screen import files, say, stage, table
from pubsub_emulator.emulator.observers.summary import Summary
from pubsub_emulator.emulator.scenario.file import (
    find_scenario,
    parse_document,
)
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.user_file import read_rules
from pubsub_emulator.files.extras import brings
from pubsub_emulator.files.output import MARKER, new_folder
from pubsub_emulator.pages.words import percent, size
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runs.figures import lines_of, of_run
from pubsub_emulator.runs.run import ARROW, EXPLORER, HISTORY, Run, is_a_run, simulate
from pubsub_emulator.runtime.rules import SHIPPED, Rules

_POLL_SECONDS: Final = 0.3

DIGEST_MEANS: Final = (
    "one hash over every relay block, candidate, verdict and delivery: equal runs have equal"
    " digests"
)


def run_scenario(
    name: str,
    out: Path,
    history_out: str | Path | None = None,
    *,
    explorer: bool = False,
    keep: bool = False,
    rules: Rules = SHIPPED,
) -> Result:
    """Run a scenario or a saved session, write its files, and print its figures.

    `name` is a scenario, or the path of a session file, which ends with `.json`. Unless `keep` is
    set, `out` may be the folder of an earlier run, which is replaced. Without Arrow, no history is
    written. That is an error only if `history_out` asks for one.
    """
    session = Path(name) if name.endswith(".json") else None
    if session is None:
        scenario = find_scenario(name, rules)
    else:
        from pubsub_emulator.session.saved import read_document

        scenario = parse_document(read_document(session)["scenario"], name, rules)
    history = history_out is not None or find_spec(ARROW) is not None
    with new_folder(out, replace=not keep and is_a_run(out)) as folder:
        run = simulate(
            scenario,
            folder,
            explorer=explorer,
            history=history,
            history_out=history_out,
            session=session,
            rules=rules,
            stage=stage,
        )
    show_run(run)
    place: str | Path = history_out or out / HISTORY
    written: list[tuple[str | Path, str]] = (
        [(place, "every block, for `pubsub audit`")] if history else []
    )
    written.append((out / MARKER, "the figures above"))
    if explorer:
        written.append((out / EXPLORER, "every block and its proof, for a browser"))
    files("written:", written)
    if not history:
        say(f"no history was written: it needs {ARROW}, {brings('audit')}")
    show_digest(run.digest.hex(), DIGEST_MEANS)
    page = {"explorer": out / EXPLORER} if explorer else {}
    return Result(
        {**run.document(), "history": place if history else None, "summary": out / MARKER, **page}
    )


def run_again_and_again(scenario: str, rules: Rules, run: Callable[[Rules], Result]) -> Result:
    """Run again after each change of the scenario or the rules, and compare with the last run.

    An interrupt ends it and returns the last result. Errors are printed, and the next change is
    awaited.
    """
    file = Path(rules.path) if rules.path else None
    watched = [path for path in (Path(scenario), file) if path is not None and path.is_file()]
    if not watched:
        raise PubsubError(f"{scenario}: there is no file to watch")
    states = _states(watched)
    last = run(rules)
    try:
        while True:
            say(f"watching {', '.join(map(str, watched))}; Ctrl-C ends it")
            while states == _states(watched):
                sleep(_POLL_SECONDS)
            states = _states(watched)
            try:
                if file is not None:
                    rules = read_rules(file)
                result = run(rules)
            except (PubsubError, OSError) as error:
                say(f"pubsub: {error}")
                continue
            lines = lines_of([of_run(last.document), of_run(result.document)])
            show_differences(("last run", "this run"), [line for line in lines if line.differs])
            last = result
    except KeyboardInterrupt:
        return last


def _states(paths: list[Path]) -> list[bytes | None]:
    """Return the contents of the files, `None` for a file that an editor is replacing."""
    return [path.read_bytes() if path.is_file() else None for path in paths]


def show_digest(digest: str, means: str) -> None:
    """Print a digest and its meaning."""
    say(f"the digest is {means}")
    say(f"digest: 0x{digest}")


def show_run(run: Run) -> None:
    """Print tables of chains, caught cheats and byte usage."""
    summary = run.summary
    _show_subscribers(run.scenario, summary)
    _show_publishers(summary)
    if summary.verdicts:
        caught = (
            (strategy, verdict, count)
            for (strategy, verdict), count in sorted(summary.cheats.items())
        )
        table(
            f"cheats caught: {summary.verdicts.total()}", ("strategy", "verdict", "blocks"), caught
        )
    if summary.idle:
        idle = ", ".join(
            f"{name} in {counted(count, 'block')}" for name, count in sorted(summary.idle.items())
        )
        say(f"cheats that changed nothing: {idle}")
    if summary.undetected:
        say(f"NOT caught: {counted(summary.undetected, 'block')}")


def _show_subscribers(scenario: Scenario, summary: Summary) -> None:
    """Print a table of each subscriber's blocks and deliveries, and one of its bytes."""
    rows: list[tuple[object, ...]] = []
    shares: list[tuple[str, ...]] = []
    for subscriber in scenario.subscribers:
        if subscriber.para in summary.chains:
            name = f"{subscriber.para} {subscriber.name}"
            chain = summary.chains[subscriber.para]
            counts = (chain.blocks, chain.refused, chain.delivered, chain.removed, chain.stops)
            rows.append((name, subscriber.cache, *counts, size(chain.messages_bytes)))
            blocks = max(chain.blocks, 1)
            used = (chain.budget_bytes // blocks, chain.used_bytes // blocks)
            proofs = (chain.largest_proof, chain.proof_bytes, chain.unpruned_bytes)
            saved = percent(chain.unpruned_bytes - chain.proof_bytes, chain.unpruned_bytes)
            state = map(size, (chain.own_state_bytes, chain.cache_state_bytes))
            weight = (f"{chain.ref_time / blocks / 1e6:,.1f} µs", size(chain.proof_size // blocks))
            shares.append((name, *map(size, (*used, *proofs)), saved, *state, *weight))
    header = (
        "subscriber",
        "cache",
        "blocks",
        "refused",
        "delivered",
        "removed",
        "stops",
        "messages",
    )
    table(f"{scenario.name}: {counted(summary.relay_blocks, 'relay block')}", header, rows)
    columns = (
        "bytes",
        "budget/block",
        "used/block",
        "largest proof",
        "all proofs",
        "unpruned",
        "saved",
    )
    others = ("own state read", "cache's part of it", "ref_time/block", "proof_size/block")
    table("use of bytes", (*columns, *others), shares)


def _show_publishers(summary: Summary) -> None:
    """Print the sums, and a table of publishers with refused publishes."""
    publishers = summary.publishers
    published = sum(publisher.published for publisher in publishers.values())
    expired = sum(publisher.expired for publisher in publishers.values())
    deleted = sum(publisher.deleted for publisher in publishers.values())
    failed = sum(publisher.failed.total() for publisher in publishers.values())
    say(
        f"{counted(published, 'key')} published, {expired:,} expired, {deleted:,} deleted;"
        f" {counted(failed, 'publish', 'publishes')} failed",
        "",
    )
    refused = [
        (
            str(para),
            publisher.published,
            publisher.failed.total(),
            publisher.cut_short,
            _counted(publisher.failed),
        )
        for para, publisher in sorted(publishers.items())
        if publisher.failed or publisher.cut_short
    ]
    if refused:
        header = ("publisher", "published", "failed", "truncated messages", "why")
        table("publishes that the relay chain refused", header, refused)
        say("a message ends at its first refused publish; the rest of the message is lost", "")
    if summary.failed_calls:
        say(
            f"{counted(summary.failed_calls.total(), 'call')} on the relay chain failed:"
            f" {_counted(summary.failed_calls)}",
            "",
        )
    weight = summary.weight
    heaviest = summary.heaviest
    blocks = max(summary.relay_blocks, 1)
    # Reference times are in picoseconds and are shown in microseconds.
    times = (
        f"{ref_time / 1e6:,.1f}"
        for ref_time in (weight.ref_time, weight.ref_time / blocks, heaviest.ref_time)
    )
    sizes = (weight.proof_size, weight.proof_size // blocks, heaviest.proof_size)
    rows = (("ref_time, µs", *times), ("proof_size, bytes", *sizes))
    table(
        "weight of the relay chain", ("dimension", "all blocks", "a block", "heaviest block"), rows
    )
    if summary.lost_downward:
        lost = counted(summary.lost_downward, "downward message")
        verb = "was" if summary.lost_downward == 1 else "were"
        say(f"{lost} {verb} lost, because the queue was full", "")


def _counted(counts: dict[str, int]) -> str:
    """Return names with their counts in words, in alphabetical order."""
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
