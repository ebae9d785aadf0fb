"""ICRC-72 publish-subscribe and ICRC-77 replay: orchestrator, broadcaster, publisher, subscriber."""

from pubsub_emulator.primitives.face import face

__getattr__, __dir__ = face(__name__)
