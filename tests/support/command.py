"""Runs a command of `pubsub` in the process of the tests."""

import sys

import pytest

from pubsub_emulator.cli.main import main


def pubsub(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Run a command in this process and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["pubsub", *map(str, arguments)])
    try:
        main()
    except SystemExit as leaving:
        return int(leaving.code or 0)
    return 0
