"""`pubsub demo`: its arguments and help."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import ON_SPARK, Command, Need
from pubsub_emulator.cli.base.options import option

AUDIT = "audit"
DIGEST_MEANS: Final = (
    "one hash over two: the run's (blocks, proofs, deliveries) and the audit's (its rows)"
)


@click.command(
    "demo",
    cls=Command,
    needs=(Need("audit"), *ON_SPARK),
    epilog=(
        "\b\nExamples:\n  pubsub demo\n  pubsub demo --engine python\n  pubsub demo --out"
        " out/again\n"
    ),
)
@option("--out", type=options.OUT, default=Path("out/demo"), help="Folder for history and audit.")
@options.master
@options.engine
def command(out: Path, master: str | None, engine: str) -> None:
    """Run the demonstration network, then audit its history and real relay proofs.

    Publishers, subscribers and cheating collators, for hundreds of relay blocks. The last line
    printed is one digest over state roots, proofs and the audit's rows: the same on every machine.
    With several cores the audit follows the network.
    """
    from pubsub_emulator.cli.commands.audit.run import AuditOptions, judge, show_audit
    from pubsub_emulator.cli.commands.audit.run import written as audit_written
    from pubsub_emulator.cli.commands.import_relay_proofs import import_bundled, show_import
    from pubsub_emulator.cli.commands.report import FOLDER, can_draw, make_report, report_written
    from pubsub_emulator.cli.commands.run.run import show_digest, show_run
    from pubsub_emulator.cli.screen import files, say, stage
    from pubsub_emulator.emulator.observers.digest import combine
    from pubsub_emulator.emulator.scenario.file import find_scenario
    from pubsub_emulator.files.output import MARKER, new_folder
    from pubsub_emulator.files.program import program
    from pubsub_emulator.runs.run import EXPLORER, HISTORY, simulate
    from pubsub_emulator.runtime.parachain.block import Verdict
    from pubsub_emulator.spark_audit.audit.run import FINDINGS, INCOMPLETE
    from pubsub_emulator.spark_audit.choice import choose_engine
    from pubsub_emulator.spark_audit.report import PAGE

    scenario = find_scenario("demo")
    with new_folder(out, replace=True) as folder:
        with _followed(folder / HISTORY, folder / AUDIT, choose_engine(engine, master, units=2)):
            run = simulate(scenario, folder, explorer=True, stage=stage)
        imported = import_bundled(folder / HISTORY)
        result = judge(
            AuditOptions(folder / HISTORY, folder / AUDIT, master, engine, name=out / HISTORY)
        )
        if can_draw():
            make_report(folder / AUDIT)
    show_run(run)
    show_import(imported)
    show_audit(result)
    written = (
        (out / HISTORY, "every block and every real proof"),
        (out / MARKER, "the run in figures"),
        (out / EXPLORER, "every block and its proof, for a browser"),
        *audit_written(out / AUDIT),
        *(report_written(out / AUDIT / FOLDER) if can_draw() else ()),
    )
    files("written:", written)
    if result.exit_code >= INCOMPLETE:
        sys.exit(result.exit_code)
    verdicts = {verdict.value for verdict in Verdict}
    known = dict(run.summary.verdicts)
    found = {code: count for code, count in result.codes.items() if code in verdicts}
    if known != found:
        say(f"pubsub: the network knows of {known}, the audit found {found}", aside=True)
        sys.exit(FINDINGS)
    say(
        f"the audit found the {sum(found.values())} refused blocks that the network knows of, and"
        " no others"
    )
    pubsub = program()
    report = (
        ((f"open {out / AUDIT / FOLDER / PAGE}", "what the audit found, as a page"),)
        if can_draw()
        else ()
    )
    commands = (
        (f"open {out / EXPLORER}", "every block, its proof drawn as a trie"),
        *report,
        (
            f"{pubsub} evidence {out / AUDIT}",
            "the findings; --finding ID --out FILE writes one that anybody can check",
        ),
        (f"{pubsub} step oracle", "build blocks one by one, publish, cheat, look"),
        (f"{pubsub} new mine.toml", "a network of your own"),
        (f"{pubsub} tour", "the other systems: PRISM, ICRC-72, replay, the distributor"),
    )
    files("next:", commands)
    show_digest(combine(run.digest, bytes.fromhex(result.digest)).hex(), DIGEST_MEANS)


@contextmanager
def _followed(history: Path, audit: Path, engine: str) -> Generator[None]:
    """Audit the history in a process of its own while the context writes it.

    The later audit judges only the segments that this process has not judged. Only the engine
    `pool` has cores to spare for it; with another engine this does nothing.
    """
    if engine != "pool":
        yield
        return
    import subprocess

    history.mkdir()
    follow = ("audit", history, "--out", audit, "--follow", "--engine", "python")
    command = (sys.executable, "-m", "pubsub_emulator", *follow)
    silent = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent) as following:  # noqa: S603  # this program
        try:
            yield
        finally:
            following.terminate()
