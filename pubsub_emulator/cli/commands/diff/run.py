"""`pubsub diff`: the first difference of two records."""

from pathlib import Path

from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.cli.screen import say
from pubsub_emulator.spark_audit.compare import compare

MOST = 12


def run_diff(a: Path, b: Path) -> Result:
    """Show the first difference of two histories or folders of fixtures, down to the trie node."""
    result = compare(a, b)
    say(f"A: {a}", f"B: {b}", f"{result.compared:,} blocks compared")
    if result.genesis:
        say("different genesis: these are different networks (another seed or configuration), so every block differs")
        for line in result.genesis:
            say(f"  {line}")
    if result.first is not None:
        say("the first block that differs:")
        for line in result.first.lines():
            say(f"  {line}")
    _some("also different", result.others)
    _some("without a counterpart", result.unmatched)
    if result.equal:
        say("equal: every block, verdict, proof, callback and state root")
    document = {
        "a": a,
        "b": b,
        "equal": result.equal,
        "compared": result.compared,
        "different_genesis": result.genesis,
        "first": None if result.first is None else result.first.lines(),
        "others": result.others,
        "unmatched": result.unmatched,
    }
    return Result(document, 0 if result.equal else FINDINGS)


def _some(title: str, names: list[str]) -> None:
    if not names:
        return
    say(f"{title}: {len(names)}")
    for name in names[:MOST]:
        say(f"  {name}")
    if len(names) > MOST:
        say(f"  and {len(names) - MOST} more")
