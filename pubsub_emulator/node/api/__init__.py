"""Runtime APIs: what a runtime answers about one block of a chain, as `state_call` asks for it."""

from pubsub_emulator.node.api.calls import FUNCTIONS, ApiFailed, UnknownFunction, call, dry_run
from pubsub_emulator.node.at import At, runtime_version

__all__ = ["FUNCTIONS", "ApiFailed", "At", "UnknownFunction", "call", "dry_run", "runtime_version"]
