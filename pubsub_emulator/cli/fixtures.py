"""`pubsub fixtures`: writes the executable fixtures to a folder."""

from collections import Counter
from pathlib import Path

import click

from pubsub_emulator.cli.output import new_folder
from pubsub_emulator.cli.screen import files, stage, table
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.laboratory.fixture_set import README_FILE, SCENARIO, SCHEMA_FILE, make_vectors, write_vectors


def run_fixtures(out: Path) -> None:
    """Write the project's fixtures into a new folder."""
    blocks = load_bundled(SCENARIO).relay_blocks
    with new_folder(out) as folder:
        with stage(f"running {SCENARIO}: {blocks} relay blocks", blocks) as advance:
            fixtures = make_vectors(advance)
        write_vectors(fixtures, folder)
    verdicts = Counter(fixture.expected.verdict or "accepted" for fixture in fixtures)
    table(f"{len(fixtures)} fixtures", ("verdict", "files"), sorted(verdicts.items()))
    files(
        "written:",
        (
            (out, "one block per file; `pubsub replay` plays them again"),
            (out / SCHEMA_FILE, "the JSON Schema of these files"),
            (out / README_FILE, "what each file shows"),
        ),
    )
    click.echo("docs/fixtures.md says how another implementation replays them")
