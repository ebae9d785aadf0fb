"""Alerts have one form on both sides: the receiver reads the facts that the sender planned."""

import operator
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interchain_events.icrc72 import facts as f
from interchain_events.icrc72.alerts import BrokerAlert, MemberAlert
from interchain_events.icrc72.ic import stable
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.values import Skip

IDS = st.integers(0, 2**64)
NAMES = st.sampled_from(["org.example.a", "org.example.b", "icrc72:publisher:sys:aaaaa-aa"])
WHO = st.binary(min_size=1, max_size=29).map(Principal)
FILTERS = st.none() | st.sampled_from(["n == 1", "a.b ~= x"])
SKIPS = st.none() | st.builds(Skip, st.integers(1, 9), st.just(0))
BROKER_ADDS = [
    (st.builds(f.SubscriberFact, NAMES, WHO), st.just(())),
    (st.builds(f.PublisherFact, NAMES, WHO), st.just(())),
    (st.builds(f.RelayerFact, NAMES, WHO), st.just(())),
    (
        st.builds(f.RelayFact, NAMES, WHO, WHO | st.just(f.EVERYBODY)),
        st.builds(f.Width, FILTERS, SKIPS),
    ),
    (
        st.builds(f.ReplayFact, IDS),
        st.builds(
            f.Delivering, NAMES, WHO, WHO, filter=FILTERS, skip=SKIPS, publisher=st.none() | WHO
        ),
    ),
    (st.builds(f.ReplayRelayFact, IDS), st.builds(f.Forwarding, NAMES, WHO, WHO, FILTERS, SKIPS)),
    (st.builds(f.ReplayRelayerFact, IDS), st.builds(f.Handing, NAMES, WHO)),
]
MEMBER_ADDS = [
    (st.builds(f.EntriesFact, IDS), st.lists(WHO, min_size=1, max_size=4).map(tuple)),
    (st.builds(f.ExitFact, IDS, WHO), st.just(True)),
    (st.builds(f.DueFact, IDS), st.builds(f.Due, NAMES, IDS, st.none() | IDS, WHO)),
    (st.builds(f.BegunFact, IDS), WHO),
]
TROUBLES = st.builds(
    f.Trouble, IDS, st.sampled_from([0, 7, 13]), NAMES | st.just(""), st.none() | IDS
)


def adds(kinds: list[tuple[st.SearchStrategy, st.SearchStrategy]]) -> st.SearchStrategy:
    """Return dictionaries of facts with their values, by class as they are written."""
    parts = [st.dictionaries(fact, value, max_size=3) for fact, value in kinds]
    return st.tuples(*parts).map(lambda found: reduce(operator.or_, found))


def removes(kinds: list[tuple[st.SearchStrategy, st.SearchStrategy]]) -> st.SearchStrategy:
    """Return tuples of facts, by class as they are written."""
    parts = [st.lists(fact, max_size=3) for fact, _ in kinds]
    return st.tuples(*parts).map(lambda found: tuple(reduce(operator.add, found)))


@given(adds(BROKER_ADDS), removes(BROKER_ADDS))
def test_ic_38_a_broadcaster_reads_the_facts_that_were_planned(
    added: dict[f.Fact, f.FactValue], removed: tuple[f.Fact, ...]
) -> None:
    alert = BrokerAlert(added, removed)
    assert BrokerAlert.read(alert.data()) == alert
    assert MemberAlert.read(alert.data()) == MemberAlert({}, ())
    assert stable.decode(stable.encode(alert)) == alert


@given(
    adds(MEMBER_ADDS),
    removes(MEMBER_ADDS),
    st.lists(TROUBLES, max_size=3).map(tuple),
    st.sampled_from(["publisher", "subscriber"]),
)
def test_ic_38_a_member_reads_the_facts_and_errors_that_were_planned(
    added: dict[f.MemberFact, f.MemberValue],
    removed: tuple[f.MemberFact, ...],
    errors: tuple[f.Trouble, ...],
    role: str,
) -> None:
    alert = MemberAlert(added, removed, errors)
    assert MemberAlert.read(alert.data(role)) == alert
    assert BrokerAlert.read(alert.data(role)) == BrokerAlert({}, ())
    assert stable.decode(stable.encode(alert)) == alert


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(
            (f.SubscriberFact("a", f.EVERYBODY), f.PublisherFact("a", f.EVERYBODY)),
            id="subscriber and publisher",
        ),
        pytest.param(
            (f.PublisherFact("a", f.EVERYBODY), f.RelayerFact("a", f.EVERYBODY)),
            id="publisher and relayer",
        ),
        pytest.param(
            (f.ReplayFact(1), f.ReplayRelayFact(1), f.ReplayRelayerFact(1)),
            id="replay and its relays",
        ),
        pytest.param(
            (f.EntriesFact(1), f.DueFact(1), f.BegunFact(1)),
            id="entries, due and begun",
        ),
        pytest.param(
            (f.PairCause(1, f.EVERYBODY), f.PublisherCause(1, f.EVERYBODY)),
            id="causes",
        ),
    ],
)
def test_facts_of_different_classes_are_different_keys(facts: tuple[f.Fact, ...]) -> None:
    assert len(dict.fromkeys(facts)) == len(facts)


def test_a_publication_whose_entries_change_has_only_the_new_ones() -> None:
    old, new = Principal(b"a"), Principal(b"b")
    alert = MemberAlert({f.EntriesFact(2): (old, new)}, (f.EntriesFact(1), f.EntriesFact(2)))
    assert alert.entries() == {1: (), 2: (old, new)}
