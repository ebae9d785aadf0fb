"""`pubsub prove`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import option, repeatable
from pubsub_emulator.cli.base.result import Result, with_json_option
from pubsub_emulator.client.places import is_url


def is_folder(source: str | None) -> bool:
    """Return whether a source is a folder: a history, which only Arrow reads."""
    return source is not None and Path(source).is_dir()


@click.command(
    "prove",
    cls=Command,
    needs=(
        Need("client", "source", is_url),
        Need("client", "request", is_url),
        Need("client", "metadata", is_url),
        Need("plot", "plot"),
        Need("audit", "source", is_folder),
    ),
    epilog=(
        "\b\nExamples:\n"
        "  pubsub prove ws://127.0.0.1:9944 --top System.Number --child 1000 0x0011…\n"
        "  pubsub prove wss://relay.example --request wss://para.example --para 2000\n"
        "  pubsub prove wss://relay.example --request request.toml --blocks 50 --plot cost.svg\n"
        "  pubsub prove state.json --top System.Number --out proof.json\n"
        "  pubsub prove --verify proof.json --root 0x1f46…\n"
        "\n\b\nExit codes:\n  0 proven, 1 with --verify: the proof has nodes that no key needs,\n"
        "  2 wrong usage, request or proof, 4 the node does not answer or lies,\n"
        "  or a file cannot be written\n"
    ),
)
@click.argument("source", required=False, shell_complete=options.complete_scenario)
@option(
    "--request",
    metavar="REQUEST",
    help=(
        "The request: SCALE as 0x…, a TOML file with `top` and `child`, or the URL of the"
        " parachain's node, whose runtime function keys_to_prove is called."
    ),
)
@repeatable("--top", "top", metavar="KEY", says="A key of the top trie: 0x…, or a name")
@repeatable(
    "--child",
    "children",
    nargs=2,
    metavar="TRIE KEY",
    says="A key of a child trie; TRIE is a publisher's id, or a storage key as 0x…",
)
@option("--para", type=click.IntRange(0, 2**32 - 1), help="Add the static keys of this parachain.")
@option(
    "--blocks",
    metavar="N|A-B",
    help="The newest N blocks, or blocks A to B, instead of one block.",
)
@option(
    "--metadata",
    metavar="FILE|URL",
    help="Metadata that resolves names; by default that of SOURCE's node.",
)
@option("--out", type=options.NEW_FILE, help="File to write the proof of the newest block to.")
@option("--markdown", is_flag=True, help="Print the tables as Markdown on standard output.")
@option("--plot", type=options.NEW_FILE, help="File to draw the costs to, SVG or PNG.")
@option("--verify", type=options.FILE, help="Verify this proof offline instead; needs --root.")
@option("--root", metavar="0x…", help="The state root for --verify.")
@option("--timeout", type=click.IntRange(1, 3600), default=20, help="Seconds for each answer.")
@option("--cache", type=options.OUT, help="Folder of kept answers instead of the user's cache.")
@option("--no-cache", is_flag=True, help="Neither use nor keep answers.")
@with_json_option
def command(source: str | None, verify: Path | None, root: str | None, **given: object) -> Result:
    """Show what a request for relay keys costs under the relay state of SOURCE, key by key.

    SOURCE is a relay node's URL, optionally with @ and a block's number or hash, a state file, a
    saved session, a history or the folder of a run, or a scenario. Keys are 0x…, or names such as
    System.Number and Paras.Heads(1000), which the node's metadata resolves.

    A node's answers are verified by their hashes, and kept for the next call.
    """
    if verify is not None:
        if source is not None or root is None:
            raise click.UsageError("--verify takes --root and no SOURCE")
        from pubsub_emulator.cli.commands.prove.run import verify as verify_proof

        return verify_proof(verify, root)
    if not source or root is not None:
        raise click.UsageError("give a SOURCE, or --verify with --root")
    from pubsub_emulator.cli.commands.prove.run import prove_source

    return options.filled(prove_source, {"source": source, **given})
