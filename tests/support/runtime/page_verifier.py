"""The verifier of `examples/verifier`, which shares no code with the emulator, as a second
opinion.
"""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from support.runtime.world import PLENTY, Relay, Subscriber

from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec

FILE = Path(__file__).resolve().parents[3] / "examples" / "verifier" / "verifier.py"
INFO_ROW = 12 + 160
"""The charge of the row that counts a publisher's cached nodes."""


@cache
def verifier() -> ModuleType:
    """Load the page's program as a module."""
    spec = importlib.util.spec_from_file_location("page_verifier", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def cost(node: bytes) -> int:
    """Return the cost of a node, computed independently of the project's code."""
    return len(node) + (1 if len(node) < 1 << 6 else 2 if len(node) < 1 << 14 else 4)


class SecondOpinion:
    """A subscriber as the page's program executes it: walks, blocks, calls and upgrades."""

    def __init__(self, real: Subscriber) -> None:
        self.entries = dict(real.storage.iter_prefix(b""))
        self.page: Any = verifier()
        self.spec = self.page.read_spec(self.entries[b":code"])

    def walk(self, relay: Relay, budget: int = PLENTY) -> Any:
        """Walk over all nodes of a relay state."""
        walk = self.page.Walk(
            self.page.State(self.entries), self.spec, relay.root, list(relay.nodes.values()), 0
        )
        walk.budget, walk.last_start = budget, budget - self.spec.max_item() - self.page.ROW
        walk.run([])
        return walk

    def block(self, relay: Relay, walk: Any) -> list[tuple[int, bytes, str, bytes | None]]:
        """Apply a walk and return the deliveries."""
        made = self._execution(relay, walk)
        made.subscriber()
        self.entries = dict(made.state)
        values = [
            each.entry for each in walk.changes if walk.publishers[each.para].disabled is None
        ]
        return [
            (each.publisher, each.key, each.kind, entry and entry[0])
            for each, entry in zip(made.deliveries, values, strict=True)
        ]

    def call(self, name: str, para: int) -> bool:
        """Execute a root call and return whether it had an effect."""
        made = self._execution()
        made.call(("clear_publisher_cache", "redeliver", "enable_publisher").index(name), para)
        self.entries = dict(made.state)
        return bool(made.events)

    def upgrade(self, spec: RuntimeSpec) -> None:
        """Change the runtime, even if the change is not possible on a real chain."""
        made = self._execution()
        with_any = self.page.possible
        self.page.possible = lambda *_: True
        made.set_code(self.page.read_spec(spec.encode()))
        self.page.possible = with_any
        self.entries = dict(made.state)

    def _execution(self, relay: Relay | None = None, walk: Any = None) -> Any:
        block = relay and type("Block", (), {"relay_number": relay.number})
        return self.page.Execution(self.page.State(self.entries), self.spec, None, block, walk)
