"""`pubsub import-relay-proofs`: imports real relay proofs into a history."""

from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from pubsub_emulator.cli.screen import say
from pubsub_emulator.spark_audit.real_proofs.relay_proofs import Imported, import_relay_proofs


def import_proofs(paths: Sequence[Path], out: Path) -> None:
    """Add relay proofs in files to a history, and show what was added."""
    imported = import_relay_proofs(paths, out)
    show_import(imported)
    say("written:", f"  {out}  a history, for `pubsub audit`")


def import_bundled(out: Path) -> Imported:
    """Import the proofs that come with the project."""
    with as_file(files("pubsub_emulator.spark_audit").joinpath("mainnet")) as folder:
        return import_relay_proofs(sorted(folder.glob("*.json")), out)


def show_import(imported: Imported) -> None:
    """One line."""
    known = f", {imported.already_there} were already present" if imported.already_there else ""
    networks = ", ".join(imported.networks)
    say(f"{imported.proofs} relay proofs of {imported.nodes:,} nodes imported ({networks}){known}")
