"""The invariants of a world after its faults have ended and it has settled."""

import json
from collections.abc import Iterator

from pubsub_emulator.distributor.core import rows
from pubsub_emulator.distributor.core.arrivals import matches
from pubsub_emulator.distributor.event import Event
from pubsub_emulator.distributor.simulation.world import World


def surprises(world: World, originals: dict[str, list[Event]]) -> list[str]:
    """The violated invariants, one sentence each. `originals` has every content that was ever published."""
    found = list(world.watch.surprises)
    if not world.quiet():
        found.append("4: there is still work to do")
    for rule in (_everywhere, _once, _effects, _ordered, _published_sets):
        found += rule(world)
    return [*found, *_acknowledged(world, originals), *_content(world, originals)]


def ids(world: World) -> list[str]:
    """Every id on any network."""
    return sorted({notice.id for network in world.networks.values() for notice in network.log if notice.id})


def _untold(world: World, name: str, event_id: str) -> bool:
    """Whether an id of a legacy log was never shown: it is not the newest of its entity, and its notice was lost."""
    network = world.networks[name]
    if not network.legacy:
        return False
    shown = {notice.number for notice in network.page(0, 0, 0).notices}
    numbers = [notice.number for notice in network.log if notice.id == event_id]
    stored = world.look()
    return not any(each in shown or stored.get(rows.numbers(name), str(each)) is not None for each in numbers)


def _believed(world: World, name: str, event_id: str) -> bool:
    """Whether a legacy adapter lied of an id: its yes is believed where a newer event of the entity hides the truth."""
    return world.networks[name].legacy and (name, event_id) in world.lied


def _unknown(world: World, event_id: str) -> bool:
    """Whether an id is only where it was never shown, and no client published it; hearsay does not count."""
    homes = [name for name, network in world.networks.items() if network.has(event_id)]
    stored = rows.get_event(world.look(), event_id)
    return (stored is None or bool(stored.hearsay)) and all(_untold(world, name, event_id) for name in homes)


def _is_dead(world: World, target: str, event_id: str) -> bool:
    return rows.get_dead(world.look(), rows.letter_of(target, event_id)) is not None


def _everywhere(world: World) -> Iterator[str]:
    for event_id in ids(world):
        for name, network in world.networks.items():
            lacking = not network.has(event_id) and not _is_dead(world, rows.on_network(name), event_id)
            if lacking and not _unknown(world, event_id) and not _believed(world, name, event_id):
                yield f"1: {event_id} is not on {name}, and no dead letter says why"


def doubts(world: World, name: str, event_id: str) -> int:
    """The number of calls of an id that ended without a yes or no."""
    return world.calls[name, event_id] - world.timely[name, event_id]


def _once(world: World) -> Iterator[str]:
    for name, network in world.networks.items():
        for event_id in ids(world):
            most = 1 if network.unique else 1 + doubts(world, name, event_id) + world.strangers[name, event_id]
            if network.count(event_id) > most:
                yield f"2: {event_id} is {network.count(event_id)} times on {name}, at most {most} are allowed"


def _effects(world: World) -> Iterator[str]:
    """Publications: one for an id and network, more only after a doubt, a revocation or a dead letter."""
    for (name, event_id), calls in world.calls.items():
        again = world.watch.revoked[name, event_id]
        again += world.watch.buried[rows.DEAD, rows.letter_of(rows.on_network(name), event_id)]
        if calls > 1 + doubts(world, name, event_id) + again:
            yield f"4: {event_id} was published {calls} times on {name}"


def _acknowledged(world: World, originals: dict[str, list[Event]]) -> Iterator[str]:
    """Of several contents of one id any may be told, as an interest hears of one that later counts for nothing."""
    for subscription, endpoint in world.subscriptions.items():
        interest = rows.Interest(*json.loads(world.watch.read_row(rows.SUBSCRIPTIONS, subscription)))
        subscriber = world.endpoints[endpoint]
        names = {found for _, found, _ in subscriber.got}
        for event_id in sorted({*ids(world), *names}):
            stored = rows.get_event(world.look(), event_id)
            if stored is None:
                if not _unknown(world, event_id):
                    yield f"5: {event_id} was never read"
                continue
            wanted = matches(interest.types, interest.metadata, stored.fields())
            count = subscriber.acknowledged(event_id)
            key = subscription, event_id
            allowed = any(matches(interest.types, interest.metadata, each) for each in originals.get(event_id, ()))
            most = int(allowed) + world.posts[key] - world.answered_posts[key]
            if count > most:
                yield f"5: {subscription} acknowledged {event_id} {count} times, at most {most} are allowed"
            late = stored.seen < interest.created or not interest.active
            if wanted and not count and not late and not _is_dead(world, rows.to_subscription(subscription), event_id):
                yield f"5: {subscription} never got {event_id}"
            if len({webhook for webhook, found, _ in subscriber.got if found == event_id}) > 1:
                yield f"5: {event_id} had several webhook ids for {subscription}"


def _ordered(world: World) -> Iterator[str]:
    """First deeds and first acknowledgements follow the order in which jobs were stored, where every yes was true."""
    for (target, entity), order in world.watch.order.items():
        kind, _, name = target.partition(":")
        if kind == "n":
            log = [notice.id for notice in world.networks[name].log]
            untrue = {each for each in order if world.watch.revoked[name, each]}
            untrue |= {each for each in order if (name, each) in world.lied | world.taken_back}
            done = [each for each in order if each in log and each not in untrue]
            places = [log.index(each) for each in done if world.calls[name, each] and not world.strangers[name, each]]
        else:
            if name not in world.subscriptions:
                continue
            got = [found for _, found, answer in world.endpoints[world.subscriptions[name]].got if answer == 200]
            places = [got.index(each) for each in order if each in got]
        given_up = any(world.watch.buried[rows.DEAD, rows.letter_of(target, event_id)] for event_id in order)
        if not given_up and places != sorted(places):
            yield f"8: events of {entity} are out of order on {target}"


def _published_sets(world: World) -> Iterator[str]:
    """Once all is quiet, a published set is what is on the network."""
    for name, network in world.networks.items():
        on_it = {notice.id for notice in network.log if notice.id}
        marked = set(world.store.members(rows.published(name), limit=1_000_000))
        for event_id in sorted(on_it ^ marked):
            if not _believed(world, name, event_id) and not (event_id in on_it and _untold(world, name, event_id)):
                yield f"7: {event_id} is in only one of the published set of {name} and its log"


def _content(world: World, originals: dict[str, list[Event]]) -> Iterator[str]:
    for name, network in world.networks.items():
        for notice in network.log:
            if notice.id and notice.event.digest() not in {event.digest() for event in originals[notice.id]}:
                yield f"3: {notice.id} has content on {name} that nobody published"
