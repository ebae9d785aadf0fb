"""`pubsub diff`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.result import Result, with_json_option
from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.primitives.words import counted

MOST = 12


@click.command(
    "diff",
    cls=Command,
    needs=(Need("audit"),),
    epilog=(
        "\b\nExamples:\n  pubsub diff out/one/history out/two/history\n  pubsub diff out/fixtures"
        " their/fixtures\n\n\b\nExit codes:\n  0 equal, 1 different\n"
    ),
)
@click.argument("a", type=options.FOLDER)
@click.argument("b", type=options.FOLDER)
@with_json_option
def command(a: Path, b: Path) -> Result:
    """Find the first block, storage key and trie node in which A and B differ.

    A and B are histories or folders of fixtures.
    """
    from pubsub_emulator.cli.screen import say
    from pubsub_emulator.spark_audit.compare import compare

    result = compare(a, b)
    say(f"A: {a}", f"B: {b}", f"{counted(result.compared, 'block')} compared")
    if result.genesis:
        say(
            "different genesis: these are different networks (another seed or configuration), so"
            " every block differs"
        )
        say(*(f"  {line}" for line in result.genesis))
    first = None if result.first is None else result.first.lines()
    if first is not None:
        say("the first block that differs:", *(f"  {line}" for line in first))
    names_by_title = {"also different": result.others, "without a counterpart": result.unmatched}
    for title, names in names_by_title.items():
        if names:
            say(f"{title}: {len(names)}", *(f"  {name}" for name in names[:MOST]))
        if len(names) > MOST:
            say(f"  and {len(names) - MOST} more")
    if result.equal:
        say("equal: every block, verdict, proof, callback and state root")
    document = {"a": a, "b": b, "equal": result.equal, "compared": result.compared}
    differing = {"different_genesis": result.genesis, "first": first, "others": result.others}
    return Result(
        {**document, **differing, "unmatched": result.unmatched}, 0 if result.equal else FINDINGS
    )
