"""`pubsub import-relay-proofs`: its arguments and help."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.primitives.words import counted

if TYPE_CHECKING:
    from pubsub_emulator.spark_audit.real_proofs.relay_proofs import Imported


@click.command(
    "import-relay-proofs",
    cls=Command,
    needs=(Need("audit"),),
    epilog=(
        "\b\nExample:\n  pubsub import-relay-proofs proofs/*.json --out out/imported\n  pubsub"
        " audit out/imported --out out/imported-audit\n"
    ),
)
@click.argument("files", type=options.ANY, nargs=-1, required=True)
@option(
    "--out", type=options.OUT, required=True, help="History to add them to; created if missing."
)
def command(files: tuple[Path, ...], out: Path) -> None:
    """Import real `parachainSystem.setValidationData` data into a history for `pubsub audit`.

    FILES are JSON files, or folders of them.
    """
    from pubsub_emulator.cli.screen import say
    from pubsub_emulator.spark_audit.real_proofs.relay_proofs import import_relay_proofs

    show_import(import_relay_proofs(files, out))
    say("written:", f"  {out}  a history, for `pubsub audit`")


def import_bundled(out: Path) -> "Imported":
    """Import the proofs that come with the project."""
    from importlib.resources import as_file, files

    from pubsub_emulator.spark_audit.real_proofs.relay_proofs import import_relay_proofs

    with as_file(files("pubsub_emulator.spark_audit").joinpath("mainnet")) as folder:
        return import_relay_proofs(sorted(folder.glob("*.json")), out)


def show_import(imported: "Imported") -> None:
    """Print the numbers of imported proofs and nodes in one line."""
    from pubsub_emulator.cli.screen import say

    verb = "was" if imported.already_there == 1 else "were"
    known = f", {imported.already_there} {verb} already present" if imported.already_there else ""
    networks = ", ".join(imported.networks)
    proofs = counted(imported.proofs, "relay proof")
    say(f"{proofs} of {counted(imported.nodes, 'node')} imported ({networks}){known}")
