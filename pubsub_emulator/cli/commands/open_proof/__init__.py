"""`pubsub open-proof`: its arguments and help."""

import sys

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command
from pubsub_emulator.cli.base.options import option, repeatable
from pubsub_emulator.cli.exits import FINDINGS


@click.command(
    "open-proof",
    cls=Command,
    epilog=(
        "\b\nExamples:\n  pubsub open-proof proof.json --header header.json\n"
        "  pubsub open-proof proof.json --root 0x1f46… --child 1000 --json\n"
        "  pubsub open-proof proof.json --root 0x1f46… --request request.toml\n"
        "  pubsub open-proof session.jsonl --draw proof.svg\n"
        "\n\b\nExit codes:\n  0 opened, every node is needed, 1 some nodes are not needed\n"
    ),
)
@click.argument("files", type=options.FILE, nargs=-1, required=True)
@option("--header", type=options.FILE, help="The header of the proven block.")
@option("--root", metavar="0x…", help="The state root, instead of a header.")
@option(
    "--child", metavar="PARA", help="The proven child trie: a publisher's id, or a storage key."
)
@repeatable("--key", "keys", metavar="0x…", says="A requested key, of --child if it is given")
@repeatable("--top", "top", metavar="KEY", says="A requested key of the top trie: 0x… or a name")
@option(
    "--request",
    metavar="REQUEST",
    help="The whole request: SCALE of a RelayProofRequest as 0x…, or a TOML file.",
)
@option("--metadata", metavar="FILE|URL", help="Metadata of the chain, by which keys have names.")
@option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")
@option("--draw", "drawing_file", type=options.NEW_FILE, help="File to draw the proof to, as SVG.")
def command(**given: object) -> None:
    """Open a node's answer to `state_getReadProof` or `state_getChildReadProof`, key by key.

    It shows what uses the bytes of the proof.

    FILES hold JSON-RPC answers, including headers, in any order; docs/howto/audit-real-proofs.md
    shows how to get them. The requested keys are those of --request, --top and --key together, or
    else of the request in a file. Without any, they are inferred from the proof.
    """
    from pubsub_emulator.cli.commands.open_proof.run import open_files

    if not options.filled(open_files, given):
        sys.exit(FINDINGS)
