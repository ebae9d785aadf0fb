"""`pubsub tour`: plays all acts, and prints what they tell."""

from contextlib import ExitStack

from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.screen import say
from pubsub_emulator.files.program import callable_here
from pubsub_emulator.laboratory.tour import begin
from pubsub_emulator.moved import renamed
from pubsub_emulator.primitives.hexadecimal import hexed

__getattr__ = renamed(
    __name__,
    dict.fromkeys(("Act", "Tour", "TourFailed", "must"), "pubsub_emulator.laboratory.tour"),
)


def take_tour() -> Result:
    """Play all acts, and print the digest of them. Raises `TourFailed`."""
    with ExitStack() as stack:
        tour, acts = begin(stack)
        results = []
        for number, (title, play, further) in enumerate(acts, start=1):
            say(f"{number}. {title}")
            lines = []
            for line in play():
                say(f"   {line}")
                lines.append(line)
            say(f"   try next: {callable_here(further)}", "")
            results.append({"act": title, "told": lines, "next": further})
        digest = hexed(tour.digest())
        say("the digest is one hash over all acts: the same on every machine")
        say(f"digest: {digest}")
        return Result({"acts": results, "digest": digest})
