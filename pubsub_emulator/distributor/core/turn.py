"""One step under way: the rules, the transaction, and the effects so far."""

from pubsub_emulator.distributor.core.messages import Effect, Effects, Note
from pubsub_emulator.distributor.core.rules import Rules
from pubsub_emulator.distributor.once import Transaction


class Turn:
    """The context of one step."""

    __slots__ = ("effects", "now", "rules", "tx")

    def __init__(self, rules: Rules, tx: Transaction) -> None:
        self.rules = rules
        self.tx = tx
        self.now = tx.now
        """The store's clock, ms."""
        self.effects: Effects = []

    def emit(self, effect: Effect) -> None:
        """Add an effect that is carried out after the writes are stored."""
        self.effects.append(effect)

    def note(self, kind: str, place: str, event_id: str = "", detail: str = "") -> None:
        """Add a note for logs and metrics."""
        self.effects.append(Note(kind, place, event_id, detail))
