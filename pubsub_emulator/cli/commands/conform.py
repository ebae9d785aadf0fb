"""`pubsub conform`: its arguments and help."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import option, repeatable
from pubsub_emulator.cli.base.result import Result, with_json_option
from pubsub_emulator.cli.exits import FINDINGS, INFRASTRUCTURE
from pubsub_emulator.primitives.words import counted

if TYPE_CHECKING:
    from pubsub_emulator.client.conform import Finding


@click.command(
    "conform",
    cls=Command,
    needs=(Need("client"),),
    epilog=(
        "\b\nExamples:\n  pubsub conform ws://127.0.0.1:9944\n  pubsub conform ws://127.0.0.1:9944"
        " --mapping chain.toml --rule PS-1 --rule PS-2\n  pubsub conform ws://127.0.0.1:9944 --para"
        " 2000=ws://127.0.0.1:9988\n\n\b\nExit codes:\n  0 every rule that can be tested holds, 1 a"
        " rule is broken, 2 wrong usage or mapping,\n  4 the node does not answer, or no rule could"
        " be tested because its answers cannot be read\n"
    ),
)
@click.argument("url")
@option(
    "--mapping",
    "file",
    type=options.FILE,
    help="TOML file with the chain's names and encodings, where they differ.",
)
@option(
    "--para",
    "paras",
    multiple=True,
    metavar="ID=URL",
    help="A parachain's node; by default URL/ID.",
)
@repeatable("--rule", "rules", metavar="NAME", says="Test this rule only")
@with_json_option
def command(url: str, file: Path | None, paras: tuple[str, ...], rules: tuple[str, ...]) -> Result:
    """Test the relay chain at URL and its parachains against the rules of publishing, one by one.

    Signs with development accounts: a parachain is registered, publishes, and is deregistered, so
    this is for test networks. Calls nothing that a Substrate node does not have.
    """
    from collections import Counter
    from dataclasses import asdict

    from pubsub_emulator.cli.screen import say, stage, table
    from pubsub_emulator.client.conform import RULES, Trial, conform, read_mapping
    from pubsub_emulator.files.near import near_to

    for name in rules:
        if name not in RULES:
            known = near_to(name, RULES, f"the rules are {', '.join(RULES)}")
            raise click.UsageError(f"--rule {name}: no such rule; {known}")
    total = len(set(rules)) or len(RULES)
    with (
        Trial(url, read_mapping(file), dict(map(options.para_url, paras))) as trial,
        stage(f"testing {counted(total, 'rule')}", total) as advance,
    ):
        findings = conform(trial, rules, lambda done, name: advance(done, total, name))
    table(
        "rules",
        ("rule", "result", "text"),
        ((finding.rule, finding.verdict, finding.sentence) for finding in findings),
    )
    for finding in findings:
        if finding.verdict == "broken":
            say(
                f"{finding.rule}: block {finding.block}: expected {finding.expected}",
                f"  but seen was {finding.seen}",
            )
        elif finding.reason:
            say(f"{finding.rule}: not testable here: {finding.reason}")
    counts = dict(sorted(Counter(finding.verdict for finding in findings).items()))
    say(", ".join(_counted(count, verdict) for verdict, count in counts.items()))
    document = {"url": url, "counts": counts, "rules": [asdict(finding) for finding in findings]}
    return Result(document, exit_code(findings))


def _counted(count: int, verdict: str) -> str:
    """Return a number of rules with its verb: `1 holds`, `28 hold`."""
    verb = "hold" if verdict == "holds" and count != 1 else verdict
    return f"{count} {verb}"


def exit_code(findings: list["Finding"]) -> int:
    """Return the exit code for the findings about all tested rules.

    A rule whose test met an unreadable answer is not a failure, unless no rule could be judged.
    A chain that is not one of pub-sub would otherwise seem to follow the rules.
    """
    verdicts = {finding.verdict for finding in findings}
    if "broken" in verdicts:
        return FINDINGS
    if "holds" not in verdicts and any(finding.is_unreadable for finding in findings):
        return INFRASTRUCTURE
    return 0
