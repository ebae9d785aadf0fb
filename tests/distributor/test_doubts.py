"""What is believed of probes, of hearsay and of adapters that show only the newest event of an entity."""

from pubsub_emulator.distributor.core import rows
from pubsub_emulator.distributor.core.messages import Answered, Call, Effects, Input, Noticed, Probed, Yes
from pubsub_emulator.distributor.event import Event, Notice
from pubsub_emulator.distributor.service.adapters import Place
from pubsub_emulator.distributor.service.public import shown_among
from pubsub_emulator.distributor.simulation.network import SimulatedNetwork
from pubsub_emulator.distributor.simulation.stories import event_of
from pubsub_emulator.distributor.simulation.world import World

NAME, EVENT = event_of(1)
DESMOS = "https://desmos.example/0"


def _world(*networks: SimulatedNetwork) -> World:
    world = World(0, {network.name: network for network in networks})
    world.start()
    world.run(500)
    return world


def _tell(world: World, told: Input) -> Effects:
    found = world.tell(world.processes[0], told)
    assert found is not None
    return found[0]


def _calls(effects: Effects) -> int:
    return sum(isinstance(effect, Call) for effect in effects)


def test_id34_an_answer_to_a_probe_from_before_the_yes_revokes_nothing() -> None:
    world = _world(SimulatedNetwork("a", offers=()), SimulatedNetwork("b"))
    asked = world.now
    world.publish(NAME, EVENT)
    world.run(300)
    assert NAME in world.store.members(rows.published("a"))
    assert not _calls(_tell(world, Probed("a", NAME, there=False, asked_at=asked)))
    assert NAME in world.store.members(rows.published("a"))
    assert _calls(_tell(world, Probed("a", NAME, there=False, asked_at=world.now))) == 1


def test_id30_an_answer_to_a_probe_of_an_earlier_lease_does_not_call_again() -> None:
    world = _world(SimulatedNetwork("a", delay=50_000), SimulatedNetwork("b"))
    world.publish(NAME, EVENT)
    world.run(25_000)
    job = rows.get_job(_Reader(world), "n:a", NAME)  # type: ignore[arg-type]
    assert job is not None
    assert job.until > world.now
    begun = job.until - world.rules.lease
    assert not _calls(_tell(world, Probed("a", NAME, there=False, asked_at=begun - 1)))
    assert _calls(_tell(world, Probed("a", NAME, there=False, asked_at=begun))) == 1


def test_id34_a_probe_does_not_make_an_id_seen_whose_number_is_not_known() -> None:
    """The log is taken back after a probe found the id and before a read did: it is published again."""
    network = SimulatedNetwork("a", offers=())
    world = _world(network, SimulatedNetwork("b"))
    world.publish(NAME, EVENT)
    world.run(300)
    _tell(world, Probed("a", NAME, there=True, asked_at=world.now))
    world.cut("a", 0)
    world.publish_on("a", event_of(2, 2)[1])
    world.run(300_000)
    assert network.count(NAME) == 1


def test_id34_an_id_that_is_twice_in_a_log_is_not_asked_for_for_ever() -> None:
    network = SimulatedNetwork("a", unique=False)
    world = _world(network, SimulatedNetwork("b"))
    for _ in range(2):
        world.publish_on("a", EVENT)
    world.run(100_000)
    world.cut("a", 1)
    assert world.settle(400_000)
    assert world.store.rows(rows.UNSEEN) == []


def _conflicting() -> Event:
    return EVENT._replace(entity="0x" + "77" * 32)


def _hearsay() -> World:
    """An interest was told of an event by an adapter whose log never shows it."""
    world = _world(SimulatedNetwork("a"), SimulatedNetwork("b"))
    subscription, _ = world.subscribe(DESMOS)
    world.run(500)
    interest = rows.get_interest(_Reader(world), subscription)  # type: ignore[arg-type]
    assert interest is not None
    _tell(world, Noticed("a", interest.key, Notice(1, 1_700_000_001, EVENT, NAME, ""), subscription))
    return world


class _Reader:
    def __init__(self, world: World) -> None:
        self._world = world

    def get(self, table: str, key: str) -> str | None:
        return dict(self._world.store.rows(table)).get(key)


def test_id22_what_only_an_interest_told_of_fixes_no_content() -> None:
    world = _hearsay()
    world.publish_on("b", _conflicting())
    world.run(3_000)
    assert [notice.event.entity for notice in world.networks["a"].log] == [_conflicting().entity]
    assert world.notes["conflict"] == 0
    other = _hearsay()
    request = other.publish(NAME, _conflicting())
    other.run(3_000)
    assert request.status == 201
    assert other.publish(NAME, EVENT).status == 409


def test_id30_a_legacy_adapter_that_hides_an_event_leaves_a_doubt() -> None:
    """In doubt it is published again; a yes is believed."""
    notices = (Notice(2, 2, event_of(2)[1], event_of(2)[0], ""),)
    assert shown_among(notices, NAME, EVENT.order) == Place(there=False, hidden=True)
    assert shown_among(notices, NAME, "0x" + "77" * 32) == Place(there=False, hidden=False)
    assert shown_among(notices, event_of(2)[0], EVENT.order) == Place(there=True)
    world = _world(SimulatedNetwork("a", legacy=True, unique=False, lists=False, offers=()), SimulatedNetwork("b"))
    world.publish(NAME, EVENT)
    world.run(300)
    _tell(world, Answered("a", NAME, Yes(1)))
    world.publish_on("a", event_of(2)[1])
    assert world.settle()
    assert world.networks["a"].count(NAME) == 1
    assert world.notes["revoked"] == 0
