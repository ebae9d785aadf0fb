"""A store that watches what is written: the invariants that hold at every step (`ied.md`, section 7)."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable

from pubsub_emulator.distributor.core import rows
from pubsub_emulator.distributor.core.messages import Answered, Due, Input, Paged, Probed
from pubsub_emulator.distributor.once import MemoryStore
from pubsub_emulator.distributor.once.transaction import MEMBER, ROW, Row

_MAY_REVOKE = (Probed, Paged, Due)


class CheckedStore(MemoryStore):
    """The store of a world; `surprises` are sentences, one for each write that breaks an invariant.

    `acknowledged` says how often the endpoint of a subscription acknowledged an id; `record` takes what happened.
    """

    def __init__(
        self, clock: Callable[[], int], acknowledged: Callable[[str, str], int], record: Callable[..., None]
    ) -> None:
        super().__init__(clock)
        self._acknowledged = acknowledged
        self._record = record
        self.inputs: tuple[Input, ...] = ()
        self.touched: set[str] = set()
        """Ids of which something was written, and names of networks whose state was."""
        self.surprises: list[str] = []
        self.open_jobs = 0
        self.revoked: Counter[tuple[str, str]] = Counter()
        self.buried: Counter[tuple[str, str]] = Counter()
        self.order: dict[tuple[str, str], list[str]] = defaultdict(list)
        """Ids in the order in which their jobs were stored, by target and entity."""

    def read_row(self, table: str, key: str) -> str:
        """The text of a row that is there, `[]` where there is none."""
        return self.reader(ROW, table)(key) or "[]"

    def empty(self) -> None:
        """Lose everything."""
        self.parts.clear()
        self._lanes.clear()
        self.open_jobs = 0

    def _apply(self, kind: str, table: str, key: str, row: Row | None) -> None:
        old = self.parts[kind, table].get(key)
        self.touched.add(key.rpartition("|")[2])
        if kind == MEMBER:
            self._member(table, key, added=row is not None and old is None, removed=row is None and old is not None)
        elif table in {rows.JOBS, rows.UNSEEN}:
            self.open_jobs += (row is not None) - (old is not None)
            if table == rows.JOBS and old is None and row is not None:
                target, _, event_id = key.partition("|")
                self.order[target, rows.Job(*json.loads(row.value)).entity].append(event_id)
        elif table == rows.DEAD and row is not None:
            self.buried[table, key] += 1
        super()._apply(kind, table, key, row)

    def _member(self, table: str, member: str, *, added: bool, removed: bool) -> None:
        kind, _, name = table.partition(":")
        if kind == "publishedEvents" and removed:
            self.revoked[name, member] += 1
            if not all(isinstance(each, _MAY_REVOKE) for each in self.inputs):
                self.surprises.append(f"7: {member} left the published set of {name} by {self.inputs}")
        if kind == "notifiedEvents" and added and not self._acknowledged(name, member):
            self.surprises.append(f"6: {member} is in the notified set of {name} without a 2xx")
        if kind == "publishedEvents" and added and any(isinstance(each, Answered) for each in self.inputs):
            self._record("published", name, member)
