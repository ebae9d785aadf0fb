"""The drafts' own text against the registry: configurations, memos, queries, and what is registered
again.
"""

from typing import Any

import pytest
from support.icrc72.canister_apps import NAME, Lab

from interchain_events.icrc72 import keys
from interchain_events.icrc72 import messages as m
from interchain_events.icrc72.client import FILTER, SKIP, App
from interchain_events.icrc72.errors import ConfigError
from interchain_events.icrc72.ic.candid.did import parse, parse_types
from interchain_events.icrc72.ic.candid.encode import Encoder
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import BOUNDED, CANISTER_ERROR
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.orchestrator.queries import MOST_SLICES
from interchain_events.icrc72.services import codec, interface
from interchain_events.icrc72.values import (
    Pairs,
    Skip,
    array,
    first,
    nat,
    of,
    option,
    skip_of,
    text,
)

NAMED = Variant("namespace", NAME)


def publication(lab: Lab) -> Pairs:
    (found,) = lab.ask("icrc72_get_publications", m.ByText())
    return tuple(found.config)


def raw(lab: Lab, who: Principal, method: str, arg: bytes) -> Any:
    """Let a probe call a method of the orchestrator with bytes of its own."""
    lab.probed(who).todo.append((lab.orchestrator, method, arg, BOUNDED, 1_000_000))
    lab.step(10)
    answer = lab.probed(who).answers.pop(1_000_000)
    assert answer.ok, answer
    return codec(method).rets.decode(answer.data)[0]


def test_s000_059_061_the_drafts_publication_shows_its_memo_and_controllers(lab: Lab) -> None:
    owner = lab.probe()
    memo = b"Initial registration of MyApp events"
    assert len(memo) == 36
    assert (
        lab.publish(
            owner, (keys.list_key("publishers:allowed"), [b""]), (keys.MODE, "fifo"), memo=memo
        ).tag
        == "Ok"
    )
    shown = publication(lab)
    assert first(shown, keys.MEMO) == ("Blob", memo)
    assert first(shown, keys.CONTROLLERS_ADD) == of([bytes(owner)])
    change = (m.PublicationUpdate(NAMED, (keys.TRUSTED, of(True)), b"again"),)
    lab.answer(owner, lab.orchestrator, "icrc72_update_publication", change)
    assert first(publication(lab), keys.MEMO) == ("Blob", b"again")


def test_s000_085_a_subscription_shows_its_memo_and_controllers(lab: Lab) -> None:
    reader = lab.probe(1)
    assert lab.subscribe(reader, memo=b"mine").tag == "Ok"
    (found,) = lab.ask("icrc72_get_subscriptions", m.ByNat())
    assert first(found.config, keys.SUBSCRIPTION_MEMO) == ("Blob", b"mine")
    assert first(found.config, keys.SUBSCRIPTION_ADD) == of([bytes(reader)])


@pytest.mark.parametrize(
    ("written", "skip"),
    [
        pytest.param(
            array([nat(5), option(nat(1))]),
            Skip(5, 1),
            id="optional offset",
        ),
        pytest.param(
            array([nat(5), option(None)]),
            Skip(5),
            id="no offset",
        ),
        pytest.param(
            array([option(nat(5))]),
            Skip(5),
            id="optional modulus",
        ),
        pytest.param(
            option(array([nat(5), nat(4)])),
            Skip(5, 4),
            id="optional array",
        ),
    ],
)
def test_s000_083_091_s001_067_a_skip_may_have_its_parts_in_options(
    written: Any, skip: Skip
) -> None:
    assert skip_of(written) == skip


@pytest.mark.parametrize("reading", ["map", "nested", "both"])
def test_s000_088_090_an_update_may_have_a_map_and_an_id_inside_id(reading: str, lab: Lab) -> None:
    owner = lab.probe()
    number = lab.publish(owner).value
    method = "icrc72_update_publication"
    encoder = Encoder(interface("readings").methods[f"{method}__{reading}"].arguments)
    which = ("publicationId", number) if reading == "map" else ("id", ("publicationId", number))
    config: Any = (keys.TRUSTED, of(True))
    if reading != "nested":
        config = (config, ("own", of(1)))
    assert raw(lab, owner, method, encoder.encode(((which, config, None),))) == (("Ok", True),)
    assert first(publication(lab), keys.TRUSTED) == ("Bool", True)
    assert (first(publication(lab), "own") is None) == (reading == "nested")


def test_s000_102_103_registering_again_with_another_configuration_says_so(lab: Lab) -> None:
    owner, reader = lab.probe(), lab.probe(1)
    one = lab.publish(owner, (keys.MODE, "priority"))
    assert lab.publish(owner, (keys.MODE, "priority")) == one
    assert lab.publish(owner) == one
    other = lab.publish(owner, (keys.MODE, "fifo"))
    assert other.value.tag == "ImproperConfig"
    assert f"publication {one.value} is registered with another configuration" in other.value.value
    two = lab.subscribe(reader, (FILTER, "n > 1"))
    assert lab.subscribe(reader, (FILTER, "n > 1")) == two
    assert "another configuration" in lab.subscribe(reader, (FILTER, "n > 2")).value.value


def test_a_wrong_configuration_raises_in_python_and_names_the_subscription(lab: Lab) -> None:
    with pytest.raises(ConfigError, match=r"org\.example: the filter ends"):
        App(lab.orchestrator, subscriptions={"org.example": {FILTER: "n =="}})
    with pytest.raises(ConfigError, match=r"org\.example: skip has the modulus 0"):
        App(lab.orchestrator, subscriptions={"org.example": {SKIP: [0, 5]}})
    with pytest.raises(ConfigError, match="publication:partitons"):
        App(lab.orchestrator, publications={"org.example": {"icrc72:publication:partitons": 2}})


def test_s000_166_a_query_with_many_slices_or_rows_is_refused_at_once(lab: Lab) -> None:
    owner = lab.probe()
    names = [m.PublicationRegistration(f"org.n{at}", ()) for at in range(60)]
    lab.answer(owner, lab.orchestrator, "icrc72_register_publication", tuple(names))
    for _ in range(3):
        lab.subscribe(lab.probe(1), name="org.*")

    def asked(count: int) -> Any:
        slices = tuple(
            Variant("ByNamespace", f"org.x{at}" if at else "org.n1") for at in range(count)
        )
        page = m.ByNat(None, None, m.OrchestrationFilter(Variant("None"), slices))
        arg = codec("icrc72_get_subscriptions").args.encode(page)
        return lab.network.query(ANONYMOUS, lab.orchestrator, "icrc72_get_subscriptions", arg)

    assert asked(MOST_SLICES).ok
    refused = asked(20_000)
    assert refused.code == CANISTER_ERROR
    assert f"at most {MOST_SLICES} different slices, not 20000" in refused.message
    for method in ("icrc72_get_publications", "icrc77_get_replays"):
        slices = tuple(Variant("ByNamespace", f"org.n{at}") for at in range(MOST_SLICES + 1))
        page: Any = m.ByText if "publications" in method else m.ByNat
        arg = codec(method).args.encode(
            page(None, None, m.OrchestrationFilter(Variant("None"), slices))
        )
        assert (
            "different slices"
            in lab.network.query(ANONYMOUS, lab.orchestrator, method, arg).message
        )


def test_s000_166_rows_are_counted(monkeypatch: pytest.MonkeyPatch, lab: Lab) -> None:
    lab.publish(lab.probe())
    for _ in range(3):
        lab.subscribe(lab.probe(1))
    monkeypatch.setattr("interchain_events.icrc72.orchestrator.queries.MOST_STEPS", 2)
    page = m.ByNat(
        None, None, m.OrchestrationFilter(Variant("None"), (Variant("ByPublisher", ANONYMOUS),))
    )
    arg = codec("icrc72_get_subscriptions").args.encode(page)
    answer = lab.network.query(ANONYMOUS, lab.orchestrator, "icrc72_get_subscriptions", arg)
    assert "too many rows" in answer.message
    assert len(lab.ask("icrc72_get_subscriptions", m.ByNat())) == 3


def test_s000_121_a_page_that_does_not_fit_is_shorter_and_none_is_lost(
    lab: Lab,
) -> None:
    owner, other = lab.probe(), lab.probe()
    large = (("own", text("x" * 15_000)),)
    for who in (owner, other):
        for start in range(0, 90, 30):
            items = tuple(
                m.PublicationRegistration(f"org.{who.text}.n{start + at}", large)
                for at in range(30)
            )
            lab.answer(who, lab.orchestrator, "icrc72_register_publication", items)
    found: list[str] = []
    while True:
        page = lab.ask("icrc72_get_publications", m.ByText(found[-1] if found else None, 200))
        if not page:
            break
        assert len(page) < 180
        found += [each.namespace for each in page]
    assert len(found) == len(set(found)) == 180


def test_s001_040_a_principal_as_prev_of_replays_is_read_as_null(
    lab: Lab,
) -> None:
    types = parse(
        "type F = record { statistics : variant { None; All; List : vec text };"
        " slice : vec variant { ByText : text } }; service : {}"
    ).types
    (page,) = parse_types(
        "(record { prev : opt principal; take : opt nat; filter : opt F })", types
    )
    asked = [Encoder((page,)).encode((prev, None, None)) for prev in (None, lab.orchestrator)]
    answers = [
        lab.network.query(ANONYMOUS, lab.orchestrator, "icrc77_get_replays", arg) for arg in asked
    ]
    assert answers[0].ok
    assert answers[0].data == answers[1].data


def test_s001_072_the_capability_is_advertised_under_both_keys(lab: Lab) -> None:
    lab.publish(lab.probe(), (keys.CAPABLE, True))
    assert (
        first(publication(lab), keys.CAPABLE)
        == first(publication(lab), keys.REPLAY)
        == ("Bool", True)
    )
