"""`pubsub import-relay-proofs`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options


@click.command(
    "import-relay-proofs",
    epilog="\b\nExample:\n  pubsub import-relay-proofs proofs/*.json --out out/imported\n  pubsub audit out/imported "
    "--out out/imported-audit\n",
)
@click.argument("files", type=options.ANY, nargs=-1, required=True)
@click.option("--out", type=options.OUT, required=True, help="History to add them to; created if missing.")
def command(files: tuple[Path, ...], out: Path) -> None:
    """Import real `parachainSystem.setValidationData` data into a history for `pubsub audit`.

    FILES are JSON files, or folders of them.
    """
    from pubsub_emulator.cli.commands.import_relay_proofs.run import import_proofs

    import_proofs(files, out)
