"""Hints in errors about unknown names."""

from collections.abc import Iterable
from difflib import get_close_matches


def near_to(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return "did you mean …?" with the known names that resemble `name`, or else `otherwise`."""
    near = get_close_matches(name, list(known), n=3)
    return f"did you mean {' or '.join(near)}?" if near else otherwise
