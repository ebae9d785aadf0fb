"""Runtime APIs: functions of a runtime at one block, as `state_call` calls them."""

from pubsub_emulator.node.api.calls import FUNCTIONS, ApiFailed, UnknownFunction, call, dry_run
from pubsub_emulator.node.at import At, runtime_version

__all__ = ["FUNCTIONS", "ApiFailed", "At", "UnknownFunction", "call", "dry_run", "runtime_version"]
