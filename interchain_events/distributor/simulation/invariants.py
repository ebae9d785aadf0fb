"""The invariants of a world that must hold when its faults have ended and its work is done.

Each violation is a sentence that begins with the invariant's number. Some invariants have
exceptions for legacy adapters, which hide events and cannot always be checked.
"""

from collections.abc import Iterator

from interchain_events.distributor.core import rows
from interchain_events.distributor.core.arrivals import matches
from interchain_events.distributor.event import Event
from interchain_events.distributor.simulation.world import World


def surprises(world: World, originals: dict[str, list[Event]]) -> list[str]:
    """Return the violated invariants of a world.

    `originals` has all contents that were published, by id.
    """
    violations = list(world.watch.surprises)
    if not world.quiet():
        violations.append("4: there is still work to do")
    for rule in (_everywhere, _once, _effects, _ordered, _published_sets):
        violations += rule(world)
    return [*violations, *_acknowledged(world, originals), *_content(world, originals)]


def ids(world: World) -> list[str]:
    """Return every id that is on any network."""
    published: set[str] = set()
    for network in world.networks.values():
        published.update(notice.id for notice in network.log if notice.id)
    return sorted(published)


def _never_shown(world: World, name: str, event_id: str) -> bool:
    """Return whether a legacy adapter has never shown an id.

    This is the case if the id is not the newest of its entity and its notification was lost.
    """
    network = world.networks[name]
    if not network.legacy:
        return False
    shown = {notice.number for notice in network.page(0, 0, 0).notices}
    numbers = [notice.number for notice in network.log if notice.id == event_id]
    stored = world.look()
    return not any(
        number in shown or stored.get(rows.numbers(name), str(number)) is not None
        for number in numbers
    )


def _believed(world: World, name: str, event_id: str) -> bool:
    """Return whether a legacy adapter has lied about an id in a way that cannot be found out.

    It named a second in which it shows another event of the entity, which could hide the id. Or it
    named the last second of its log, whose events it need not show yet.
    """
    network = world.networks[name]
    if not network.legacy or (name, event_id) not in world.lied:
        return False
    second = world.lie_seconds[name, event_id]
    stored = rows.get_event(world.look(), event_id)
    entity = "" if stored is None else stored.fields().order
    if network.log and network.log[-1].time == second:
        return True
    return any(notice.time == second and notice.event.order == entity for notice in network.log)


def _unknown(world: World, event_id: str) -> bool:
    """Return whether the distributor cannot know an id.

    Clients have not published it, and the networks that have it have never shown it. A notification
    for an interest does not count.
    """
    stored = rows.get_event(world.look(), event_id)
    if stored is not None and not stored.hearsay:
        return False
    homes = [name for name, network in world.networks.items() if network.has(event_id)]
    return all(_never_shown(world, name, event_id) for name in homes)


def _is_dead(world: World, target: str, event_id: str) -> bool:
    """Return whether a target has a dead letter for an event."""
    return rows.get_dead(world.look(), rows.letter_of(target, event_id)) is not None


def _everywhere(world: World) -> Iterator[str]:
    """Yield violations of invariant 1: every event is on every network."""
    for event_id in ids(world):
        for name, network in world.networks.items():
            if network.has(event_id) or _is_dead(world, rows.on_network(name), event_id):
                continue
            if not _unknown(world, event_id) and not _believed(world, name, event_id):
                yield f"1: {event_id} is not on {name}, and no dead letter says why"


def doubts(world: World, name: str, event_id: str) -> int:
    """Return the number of an id's calls that ended without a clear answer."""
    return world.calls[name, event_id] - world.timely[name, event_id]


def _forgotten(world: World, name: str) -> bool:
    """Return whether the store has lost rows that a network cannot tell it again.

    This concerns legacy networks, whose adapters hide all but the newest event of each entity.
    """
    return world.lost and world.networks[name].legacy


def _once(world: World) -> Iterator[str]:
    """Yield violations of invariant 2: an event is on each network once.

    A network that accepts ids twice may have the event once more for each call without a clear
    answer and for each publication by others.
    """
    for name, network in world.networks.items():
        if _forgotten(world, name):
            continue
        for event_id in ids(world):
            most = 1
            if not network.unique:
                most += doubts(world, name, event_id) + world.strangers[name, event_id]
            if network.count(event_id) > most:
                yield (
                    f"2: {event_id} is {network.count(event_id)} times on {name}, at most {most}"
                    " are allowed"
                )


def _effects(world: World) -> Iterator[str]:
    """Yield violations of invariant 4: an id is published once on each network.

    Each further publication needs a call without a clear answer, a revocation or a dead letter. If
    the store has lost rows, those of a revocation or refusal may be among them.
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

    If an id has several contents, any of them may be delivered, because an interest can be notified
    of a content that later does not count. If the store has lost rows, subscriptions and
    acknowledgements may be among them. Events from before the subscription need not be delivered,
    even if their log is read later.
    """
    for subscription, endpoint in world.subscriptions.items():
        interest = rows.get_interest(world.look(), subscription)
        if interest is None and world.lost:
            continue
        if interest is None:
            yield f"5: the subscription {subscription} is lost"
            continue
        subscriber = world.endpoints[endpoint]
        names = {posted for _, posted, _ in subscriber.got}
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
                matches(interest.types, interest.metadata, content)
                for content in originals.get(event_id, ())
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
            webhooks = {webhook for webhook, posted, _ in subscriber.got if posted == event_id}
            if len(webhooks) > 1:
                yield f"5: {event_id} had several webhook ids for {subscription}"


def _ordered(world: World) -> Iterator[str]:
    """Yield violations of invariant 8: the events of an entity stay in order.

    The order is that in which their jobs were stored. Targets with a dead letter are exempt.
    """
    for (target, entity), order in world.watch.order.items():
        kind, _, name = target.partition(":")
        if kind == "n":
            places = _places_in_log(world, name, order)
        elif name in world.subscriptions:
            places = _places_of_posts(world, name, order)
        else:
            continue
        given_up = any(
            world.watch.buried[rows.DEAD, rows.letter_of(target, event_id)] for event_id in order
        )
        if not given_up and places != sorted(places):
            yield f"8: events of {entity} are out of order on {target}"


def _places_in_log(world: World, network: str, order: list[str]) -> list[int]:
    """Return the places of ids in a network's log.

    Ids that may have been published again are left out: those with an untrue acceptance, a rewind
    or a lost job. Ids that others published are left out, too.
    """
    log = [notice.id for notice in world.networks[network].log]
    repeated = world.lied | world.taken_back | world.before_loss
    return [
        log.index(event_id)
        for event_id in order
        if event_id in log
        and not world.watch.revoked[network, event_id]
        and (network, event_id) not in repeated
        and world.calls[network, event_id]
        and not world.strangers[network, event_id]
    ]


def _places_of_posts(world: World, subscription: str, order: list[str]) -> list[int]:
    """Return the places of ids among the acknowledged POSTs of a subscription.

    Ids whose job the store may have lost are left out.
    """
    got = [
        event_id
        for _, event_id, answer in world.endpoints[world.subscriptions[subscription]].got
        if answer == 200
    ]
    return [
        got.index(event_id)
        for event_id in order
        if event_id in got and (subscription, event_id) not in world.before_loss
    ]


def _published_sets(world: World) -> Iterator[str]:
    """Yield violations of invariant 7: the published set of a network has the ids of its log."""
    for name, network in world.networks.items():
        in_log = {notice.id for notice in network.log if notice.id}
        published = set(world.store.members(rows.published(name), limit=1_000_000))
        for event_id in sorted(in_log ^ published):
            hidden = event_id in in_log and _never_shown(world, name, event_id)
            if not hidden and not _believed(world, name, event_id):
                yield f"7: {event_id} is in only one of the published set of {name} and its log"


def _content(world: World, originals: dict[str, list[Event]]) -> Iterator[str]:
    """Yield violations of invariant 3: an event on a network has a content that was published."""
    for name, network in world.networks.items():
        for notice in network.log:
            if not notice.id:
                continue
            if notice.event.digest() not in {event.digest() for event in originals[notice.id]}:
                yield f"3: {notice.id} has content on {name} that nobody published"
