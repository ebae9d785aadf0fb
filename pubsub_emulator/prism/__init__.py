"""PRISM: DID operations that a chain anchors, their ledger, and subscriptions to it."""

from pubsub_emulator.primitives.face import face

__getattr__, __dir__ = face(__name__)
