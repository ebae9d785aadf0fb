"""`pubsub fixtures`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.primitives.words import counted


@click.command(
    "fixtures",
    epilog="\b\nExamples:\n  pubsub fixtures --out out/fixtures\n  pubsub replay out/fixtures\n",
)
@options.new_out
def command(out: Path) -> None:
    """Write test vectors for any implementation, one block each.

    Each has the block's pre-state, proof, verdict and post-state.
    """
    from collections import Counter

    from pubsub_emulator.cli.screen import files, say, stage, table
    from pubsub_emulator.emulator.scenario.file import load_bundled
    from pubsub_emulator.files.output import new_folder
    from pubsub_emulator.laboratory.fixture_set import (
        README_FILE,
        SCENARIO,
        SCHEMA_FILE,
        make_vectors,
        write_vectors,
    )

    blocks = load_bundled(SCENARIO).relay_blocks
    with new_folder(out) as folder:
        with stage(f"running {SCENARIO}: {counted(blocks, 'relay block')}", blocks) as advance:
            fixtures = make_vectors(advance)
        write_vectors(fixtures, folder)
    verdicts = Counter(fixture.expected.verdict or "accepted" for fixture in fixtures)
    table(counted(len(fixtures), "fixture"), ("verdict", "files"), sorted(verdicts.items()))
    written = (
        (out, "one block per file; `pubsub replay` replays them"),
        (out / SCHEMA_FILE, "the JSON Schema of these files"),
        (out / README_FILE, "what each file shows"),
    )
    files("written:", written)
    say("docs/fixtures.md says how another implementation replays them")
