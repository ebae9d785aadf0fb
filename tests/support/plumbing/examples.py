"""How many random examples a test draws that is slower, or needs more of them, than others."""

from typing import Final

from hypothesis import settings

USUAL: Final = 50
"""Examples of a test under the profiles `dev` and `ci`."""


def scaled(count: int) -> int:
    """Return the number of examples under this profile of a test that draws `count` of them under
    `dev` and `ci`.
    """
    return max(1, settings().max_examples * count // USUAL)
