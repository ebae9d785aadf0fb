"""Scenarios of tests, each a file in `scenarios/`."""

from pathlib import Path


def scenario(name: str) -> str:
    """Return the text of a scenario."""
    return Path(__file__).with_suffix("").joinpath(f"{name}.toml").read_text()
