"""The invariants of a world that must hold when its faults have ended and its work is done.

Each violation is a sentence that begins with the invariant's number. Legacy adapters hide events
and are believed in some cases, so some invariants have exceptions for them.
"""

from collections.abc import Iterator

from interchain_events.distributor.core import rows
from interchain_events.distributor.core.arrivals import matches
from interchain_events.distributor.event import Event
from interchain_events.distributor.simulation.world import World


def surprises(world: World, originals: dict[str, list[Event]]) -> list[str]:
    """Return the violated invariants of a world.

    `originals` has every content that was ever published, by id.
    """
    found = list(world.watch.surprises)
    if not world.quiet():
        found.append("4: there is still work to do")
    for rule in (_everywhere, _once, _effects, _ordered, _published_sets):
        found += rule(world)
    return [*found, *_acknowledged(world, originals), *_content(world, originals)]


def ids(world: World) -> list[str]:
    """Return every id that is on any network."""
    published: set[str] = set()
    for network in world.networks.values():
        published.update(notice.id for notice in network.log if notice.id)
    return sorted(published)


def _untold(world: World, name: str, event_id: str) -> bool:
    """Return whether a legacy adapter never showed an id.

    The id is then not the newest of its entity, and its notification was lost.
    """
    network = world.networks[name]
    if not network.legacy:
        return False
    shown = {notice.number for notice in network.page(0, 0, 0).notices}
    numbers = [notice.number for notice in network.log if notice.id == event_id]
    stored = world.look()
    return not any(
        each in shown or stored.get(rows.numbers(name), str(each)) is not None for each in numbers
    )


def _believed(world: World, name: str, event_id: str) -> bool:
    """Return whether a legacy adapter has lied about an id in a way that nobody can find out.

    It named a second in which another event of the entity could hide that the event is missing, or
    the last second of its log, after which nothing has happened.
    """
    network = world.networks[name]
    if not network.legacy or (name, event_id) not in world.lied:
        return False
    second = world.lie_seconds[name, event_id]
    stored = rows.get_event(world.look(), event_id)
    entity = "" if stored is None else stored.fields().order
    if network.log and network.log[-1].time == second:
        return True
    return any(each.time == second and each.event.order == entity for each in network.log)


def _unknown(world: World, event_id: str) -> bool:
    """Return whether the distributor cannot know an id.

    The id is only on networks that never showed it, and clients have not published it. A
    notification for an interest does not count.
    """
    homes = [name for name, network in world.networks.items() if network.has(event_id)]
    stored = rows.get_event(world.look(), event_id)
    return (stored is None or bool(stored.hearsay)) and all(
        _untold(world, name, event_id) for name in homes
    )


def _is_dead(world: World, target: str, event_id: str) -> bool:
    """Return whether a target has a dead letter for an event."""
    return rows.get_dead(world.look(), rows.letter_of(target, event_id)) is not None


def _everywhere(world: World) -> Iterator[str]:
    """Yield violations of invariant 1: every event is on every network."""
    for event_id in ids(world):
        for name, network in world.networks.items():
            lacking = not network.has(event_id) and not _is_dead(
                world, rows.on_network(name), event_id
            )
            if lacking and not _unknown(world, event_id) and not _believed(world, name, event_id):
                yield f"1: {event_id} is not on {name}, and no dead letter says why"


def doubts(world: World, name: str, event_id: str) -> int:
    """Return the number of an id's calls that ended without a clear answer."""
    return world.calls[name, event_id] - world.timely[name, event_id]


def _forgotten(world: World, name: str) -> bool:
    """Return whether a store that lost rows cannot be told what is on a network.

    A legacy adapter hides all but the newest event of each entity.
    """
    return world.lost and world.networks[name].legacy


def _once(world: World) -> Iterator[str]:
    """Yield violations of invariant 2: an event is on each network once.

    A network that accepts ids twice may have one more for each doubt and each stranger.
    """
    for name, network in world.networks.items():
        if _forgotten(world, name):
            continue
        for event_id in ids(world):
            most = (
                1
                if network.unique
                else 1 + doubts(world, name, event_id) + world.strangers[name, event_id]
            )
            if network.count(event_id) > most:
                yield (
                    f"2: {event_id} is {network.count(event_id)} times on {name}, at most {most}"
                    " are allowed"
                )


def _effects(world: World) -> Iterator[str]:
    """Yield violations of invariant 4: an id is published once on each network.

    Further publications need a doubt, a revocation or a dead letter. A store that lost rows may
    have lost a revocation of an acceptance that was untrue or that a rewind undid, or a refusal.
    """
    undone = world.lied | world.taken_back | world.refused
    for (name, event_id), calls in world.calls.items():
        again = world.watch.revoked[name, event_id]
        again += world.watch.buried[rows.DEAD, rows.letter_of(rows.on_network(name), event_id)]
        if (world.lost and (name, event_id) in undone) or _forgotten(world, name):
            continue
        if calls > 1 + doubts(world, name, event_id) + again:
            yield f"4: {event_id} was published {calls} times on {name}"


def _acknowledged(world: World, originals: dict[str, list[Event]]) -> Iterator[str]:
    """Yield violations of invariant 5: each subscriber gets each matching event once.

    If an id has several contents, any may be delivered: an interest can be notified of a content
    that later does not count.

    A store that lost rows may have lost subscriptions, and what it knew of acknowledgements.

    An event of a log's history that is older than the subscription is not for it, even if the log
    is only read afterwards.
    """
    for subscription, endpoint in world.subscriptions.items():
        interest = rows.get_interest(world.look(), subscription)
        if interest is None and world.lost:
            continue
        if interest is None:
            yield f"5: the subscription {subscription} is lost"
            continue
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
            allowed = any(
                matches(interest.types, interest.metadata, each)
                for each in originals.get(event_id, ())
            )
            # A POST whose answer was lost may be repeated.
            most = int(allowed) + world.posts[key] - world.answered_posts[key]
            most += int(world.lost)
            if count > most:
                yield (
                    f"5: {subscription} acknowledged {event_id} {count} times, at most {most} are"
                    " allowed"
                )
            late = stored.seen < interest.created or not interest.active
            late |= event_id in world.watch.old and stored.time * 1000 + 999 < interest.created
            if (
                wanted
                and not count
                and not late
                and not _is_dead(world, rows.to_subscription(subscription), event_id)
            ):
                yield f"5: {subscription} never got {event_id}"
            if len({webhook for webhook, found, _ in subscriber.got if found == event_id}) > 1:
                yield f"5: {event_id} had several webhook ids for {subscription}"


def _ordered(world: World) -> Iterator[str]:
    """Yield violations of invariant 8: the events of an entity stay in order.

    The order is that in which their jobs were stored. Events with an untrue acceptance or a rewind
    are published again and do not count, nor do those of which a store that lost rows had the jobs.
    Neither do targets with a dead letter.
    """
    for (target, entity), order in world.watch.order.items():
        kind, _, name = target.partition(":")
        if kind == "n":
            log = [notice.id for notice in world.networks[name].log]
            untrue = {each for each in order if world.watch.revoked[name, each]}
            untrue |= {each for each in order if (name, each) in world.lied | world.taken_back}
            untrue |= {each for each in order if (name, each) in world.before_loss}
            done = [each for each in order if each in log and each not in untrue]
            places = [
                log.index(each)
                for each in done
                if world.calls[name, each] and not world.strangers[name, each]
            ]
        else:
            if name not in world.subscriptions:
                continue
            got = [
                found
                for _, found, answer in world.endpoints[world.subscriptions[name]].got
                if answer == 200
            ]
            places = [
                got.index(each)
                for each in order
                if each in got and (name, each) not in world.before_loss
            ]
        given_up = any(
            world.watch.buried[rows.DEAD, rows.letter_of(target, event_id)] for event_id in order
        )
        if not given_up and places != sorted(places):
            yield f"8: events of {entity} are out of order on {target}"


def _published_sets(world: World) -> Iterator[str]:
    """Yield violations of invariant 7: the published set of a network has the ids of its log."""
    for name, network in world.networks.items():
        on_it = {notice.id for notice in network.log if notice.id}
        marked = set(world.store.members(rows.published(name), limit=1_000_000))
        for event_id in sorted(on_it ^ marked):
            if not _believed(world, name, event_id) and not (
                event_id in on_it and _untold(world, name, event_id)
            ):
                yield f"7: {event_id} is in only one of the published set of {name} and its log"


def _content(world: World, originals: dict[str, list[Event]]) -> Iterator[str]:
    """Yield violations of invariant 3: an event on a network has a published content."""
    for name, network in world.networks.items():
        for notice in network.log:
            if notice.id and notice.event.digest() not in {
                event.digest() for event in originals[notice.id]
            }:
                yield f"3: {notice.id} has content on {name} that nobody published"
