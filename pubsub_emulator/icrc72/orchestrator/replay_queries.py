"""The query for replays (RP-12)."""

from collections.abc import Mapping

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.ic.errors import Trap
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.messages import ALL, ByNat, ReplayStatus, Slice, Statistics, state_of
from pubsub_emulator.icrc72.namespaces import matches
from pubsub_emulator.icrc72.orchestrator.queries import MOST_SLICES
from pubsub_emulator.icrc72.orchestrator.state import Registry, Replay
from pubsub_emulator.icrc72.role import Query
from pubsub_emulator.icrc72.settings import Settings
from pubsub_emulator.icrc72.values import Pairs, nat


class ReplayQueries:
    """The query for replays, paged and filtered by slices."""

    def __init__(self, state: Registry, settings: Settings) -> None:
        self.state = state
        self.settings = settings

    def queries(self) -> Mapping[str, Query]:
        """Queries by name."""
        return {"icrc77_get_replays": self._get}

    def _get(self, _caller: Principal, _time: int, page: ByNat) -> tuple[ReplayStatus, ...]:
        take = self.settings.page if page.take is None else min(page.take, self.settings.page_most)
        slices = () if page.filter is None else tuple(dict.fromkeys(page.filter.slice))
        if len(slices) > MOST_SLICES:
            raise Trap(f"a query has at most {MOST_SLICES} different slices, not {len(slices)}")
        found = [
            each
            for number, each in sorted(self.state.replays.items())
            if (page.prev is None or number > page.prev) and all(self._satisfies(each, one) for one in slices)
        ]
        statistics = ALL if page.filter is None else page.filter.statistics
        return tuple(self._shown(each, statistics) for each in found[:take])

    @staticmethod
    def _satisfies(replay: Replay, slice_: Slice) -> bool:
        match slice_:
            case ("BySubscriber", who):
                return replay.subscriber == who
            case ("ByPublisher", who):
                return replay.publisher == who
            case ("ByBroadcaster", who):
                return replay.path is not None and who in replay.path
            case ("ByNamespace", name):
                return matches(name, replay.namespace)

    def _shown(self, replay: Replay, statistics: Statistics) -> ReplayStatus:
        prefix = "icrc77:replay:stats:"
        stats: Pairs = ()
        if statistics.tag != "None":
            sums = {name: self._sum(replay.id, name) for name in keys.STATISTICS[prefix]}
            sums["published"] = replay.accepted or sums["published"]
            pairs = tuple((prefix + name, nat(number)) for name, number in sums.items())
            stats = pairs if statistics.tag == "All" else tuple(p for p in pairs if p[0] in statistics.value)
        state = state_of(replay.state, replay.count, replay.text)
        return ReplayStatus(replay.id, replay.namespace, replay.config, stats, (replay.start, replay.end), state)

    def _sum(self, number: int, name: str) -> int:
        key = f"icrc77:replay:{number}:{name}"
        return sum(each.stats.get(key, 0) for each in self.state.brokers.values())
