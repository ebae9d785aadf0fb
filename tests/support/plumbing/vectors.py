"""Golden vectors, held to as `pubsub vectors check` reads them, for the tests of the rooms that
they are of.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pubsub_emulator.primitives.vectors import Case, Format

VECTORS = Path(__file__).parents[2] / "vectors"


def cases(pattern: str, formats: Sequence[Format]) -> Iterator[Case]:
    """Return every case in the files below `tests/vectors` that match a pattern.

    Each case is returned in the one format that it fits.
    """
    for path in sorted(VECTORS.glob(pattern)):
        document = json.loads(path.read_text(encoding="utf-8"))
        (form,) = [each for each in formats if each.fits(document)]
        yield from ((f"{path.stem}: {name}", check) for name, check in form.cases(document))


def each_case(pattern: str, formats: Sequence[Format]) -> pytest.MarkDecorator:
    """Return a decorator for a test that gets the `check` of each case."""
    found = list(cases(pattern, formats))
    return pytest.mark.parametrize(
        "check", [check for _, check in found], ids=[name for name, _ in found]
    )
