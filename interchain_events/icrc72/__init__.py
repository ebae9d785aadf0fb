"""Publish-subscribe between canisters (ICRC-72) and replay of events (ICRC-77).

The roles of orchestrator, broadcaster, publisher and subscriber run on an emulated Internet
Computer. The names of the package are listed in `__init__.pyi`.
"""

from pubsub_emulator.lazy import face

__getattr__, __dir__ = face(__name__)
