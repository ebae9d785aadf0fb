"""The help of the program, and of the commands of the event systems."""

from support.plumbing.command import help_of
from support.plumbing.snapshots import Snapshot

from interchain_events.extension import EXTENSION


def test_the_help_of_every_command_of_the_event_systems(snapshot: Snapshot) -> None:
    snapshot("help", help_of("", *EXTENSION.commands))
