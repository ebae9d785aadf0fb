"""`pubsub conform`: the report."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.commands.log.run import para_url
from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.cli.screen import say, table
from pubsub_emulator.client.conform import RULES, Trial, conform, read_mapping


def run_conform(url: str, file: Path | None, paras: Sequence[str], rules: Sequence[str]) -> Result:
    """Test a chain and print a row for each rule. Raises `ClientError`, `SettingsError`."""
    for name in rules:
        if name not in RULES:
            raise click.UsageError(f"--rule {name}: not one of {', '.join(RULES)}")
    with Trial(url, read_mapping(file), dict(map(para_url, paras))) as trial:
        findings = conform(trial, rules)
    table("rules", ("rule", "result", "what it says"), ((each.rule, each.verdict, each.sentence) for each in findings))
    for each in findings:
        if each.verdict == "broken":
            say(f"{each.rule}: block {each.block}: expected {each.expected}", f"  and seen was {each.seen}")
        elif each.reason:
            say(f"{each.rule}: not testable here: {each.reason}")
    counts = Counter(each.verdict for each in findings)
    say(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    document = {"url": url, "counts": dict(sorted(counts.items())), "rules": [asdict(each) for each in findings]}
    return Result(document, FINDINGS if counts["broken"] else 0)
