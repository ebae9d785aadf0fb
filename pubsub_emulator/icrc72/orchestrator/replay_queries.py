"""The query for replays (RP-12)."""

from collections.abc import Mapping
from typing import Any

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.ic.principal import Principal
from pubsub_emulator.eventplane.icrc72 import keys
from pubsub_emulator.eventplane.icrc72.messages import ByNat, ReplayStatus
from pubsub_emulator.eventplane.icrc72.namespaces import matches
from pubsub_emulator.eventplane.icrc72.orchestrator.state import Registry, Replay
from pubsub_emulator.eventplane.icrc72.role import Query
from pubsub_emulator.eventplane.icrc72.settings import Settings
from pubsub_emulator.eventplane.icrc72.values import Pairs, nat


class ReplayQueries:
    """The query for replays, paged and filtered by slices."""

    def __init__(self, state: Registry, settings: Settings) -> None:
        self.state = state
        self.settings = settings

    def queries(self) -> Mapping[str, Query]:
        """Queries by name."""
        return {"icrc77_get_replays": self._get}

    def _get(self, _caller: Principal, _time: int, page: ByNat) -> Any:
        take = self.settings.page if page.take is None else min(page.take, self.settings.page_most)
        slices = () if page.filter is None else page.filter.slice
        found = [
            each
            for number, each in sorted(self.state.replays.items())
            if (page.prev is None or number > page.prev) and all(self._satisfies(each, one) for one in slices)
        ]
        statistics = Variant("All") if page.filter is None else page.filter.statistics
        return tuple(self._shown(each, statistics) for each in found[:take])

    @staticmethod
    def _satisfies(replay: Replay, slice_: Variant) -> bool:
        tag, value = slice_
        if tag == "BySubscriber":
            return bool(replay.subscriber == value)
        if tag == "ByPublisher":
            return bool(replay.publisher == value)
        if tag == "ByBroadcaster":
            return replay.path is not None and value in replay.path
        return matches(value, replay.namespace)

    def _shown(self, replay: Replay, statistics: Variant) -> ReplayStatus:
        inside: Any = {"completed": replay.count, "canceled": replay.count, "errored": replay.text}.get(replay.state)
        prefix = "icrc77:replay:stats:"
        stats: Pairs = ()
        if statistics.tag != "None":
            sums = {name: self._sum(replay.id, name) for name in keys.STATISTICS[prefix]}
            sums["published"] = replay.accepted or sums["published"]
            pairs = tuple((prefix + name, nat(number)) for name, number in sums.items())
            stats = pairs if statistics.tag == "All" else tuple(p for p in pairs if p[0] in statistics.value)
        state = Variant(replay.state, inside)
        return ReplayStatus(replay.id, replay.namespace, replay.config, stats, (replay.start, replay.end), state)

    def _sum(self, number: int, name: str) -> int:
        key = f"icrc77:replay:{number}:{name}"
        return sum(each.stats.get(key, 0) for each in self.state.brokers.values())
