"""A publisher's log in an archive of others, of which only the ICRC-3 methods are known: RP-7c."""

from dataclasses import replace
from typing import Any, ClassVar

import pytest
from support.icrc72.canister_apps import NAME, Asker, Lab, Source, keeping

from interchain_events.icrc72 import REPLAY, App, plain
from interchain_events.icrc72.client import Context, EventNotification
from interchain_events.icrc72.errors import ConfigError
from interchain_events.icrc72.ic.candid.decode import Decoder
from interchain_events.icrc72.ic.candid.did import parse
from interchain_events.icrc72.ic.candid.encode import Encoder
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.publisher.foreign import event_of
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.icrc72.values import (
    Value,
    blob,
    from_icrc3,
    icrc3_value,
    integer,
    map_,
    nat,
    text,
)

Reader = keeping(lambda note: plain(note.data)["n"], Asker)

# The callback of ICRC-3 is a reference to a function. Readers skip whatever is there.
ICRC3 = """
type Value = variant {
  Blob : blob; Text : text; Nat : nat; Int : int;
  Array : vec Value; Map : vec record { text; Value };
};
type GetBlocksArgs = vec record { start : nat; length : nat };
type GetBlocksResult = record {
  log_length : nat; blocks : vec record { id : nat; block : Value };
  archived_blocks : vec record { args : GetBlocksArgs; callback : principal };
};
service : {
  icrc3_get_blocks : (GetBlocksArgs) -> (GetBlocksResult) query;
  icrc3_get_archives : (record { from : opt principal }) ->
    (vec record { canister_id : principal; start : nat; end : nat }) query;
};
"""
METHODS = parse(ICRC3).methods


class Follower(App):
    """Somebody else's archive: it subscribes, and has a block for each event and for other things.

    `data` has the blocks. Those before `moved` are in the canister `further`.
    """

    subscriptions: ClassVar[dict[str, dict[str, object]]] = {NAME: {}}
    moved = 0
    further: Principal | None = None

    def start(self) -> Any:
        return [map_({"btype": text("1mint"), "tx": map_({"amt": nat(5)})})]

    def on_event(self, _ctx: Context, event: EventNotification) -> None:
        tx: dict[str, Value] = {
            "eventId": nat(event.eventId),
            "namespace": text(event.namespace),
            "source": blob(event.source),
            "timestamp": nat(made_at(event)),
            "data": event.data,
            "headers": map_((event.headers or ())[:1]),
        }
        if event.prevEventId is not None:
            tx["prevEventId"] = nat(event.prevEventId)
        self.data.append(icrc3_value(map_({"btype": text("72event"), "tx": map_(tx)})))
        self.data.append(icrc3_value(map_({"btype": text("other"), "tx": text("words")})))

    def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
        (asked,) = Decoder(METHODS[method].arguments).decode(arg)
        if method == "icrc3_get_archives":
            assert self.further is not None
            answer: Any = ((self.further, 0, self.moved - 1),)
        else:
            ((start, count),) = asked  # type: ignore[misc]
            blocks = list(enumerate(self.data))[start : start + count]
            kept = tuple(each for each in blocks if each[0] >= self.moved)
            elsewhere = ((((start, count),), ctx.me),) if len(kept) < len(blocks) else ()
            answer = (len(self.data), kept, elsewhere)
        ctx.reply(Encoder(METHODS[method].results).encode(answer))


def made_at(event: EventNotification) -> int:
    """The publisher's time is in a header that the broadcaster appended."""
    return next(
        value.value
        for key, value in event.headers or ()
        if key == "icrc72:event:timestamp" and value.tag == "Nat"
    )


def archived(events: int, follower: type[Follower] = Follower) -> tuple[Lab, Principal, Principal]:
    """A publisher, and an archive that has followed its events."""
    lab = Lab(settings=replace(DEFAULTS, replay_events=7, batch_notifications=4))
    archive = lab.install(follower, 0)
    app = Source(
        lab.orchestrator,
        lab.settings,
        publications={NAME: {REPLAY: True}},
        foreign_archive=archive,
        keep=2,
    )
    source = lab.network.create(0, app)
    lab.step(60)
    for n in range(1, events + 1, 3):
        lab.call(source, NAME, b"%d %d %d" % (n, n + 1, n + 2))
        lab.step(2)
    lab.step(600)
    return lab, source, archive


def replayed(lab: Lab) -> tuple[list[int], str, str]:
    """What a subscriber gets that asks for events 2 to 11, and how its replay ended."""
    reader = lab.install(Reader, 1, subscriptions={NAME: {}})
    lab.step(80)
    lab.call(reader, "ask", b"2 12")
    lab.step(300)
    (replay,) = lab.system.registry.state.replays.values()
    return lab.app(reader).data, replay.state, replay.text


def test_rp_7c_a_log_is_read_from_a_foreign_icrc_3_archive() -> None:
    lab, source, _ = archived(15)
    log = lab.app(source).publisher.state.log
    assert [row.archived for row in log] == [True] * 12 + [False] * 3
    assert replayed(lab) == (list(range(2, 12)), "completed", "")


def test_rp_7c_blocks_that_moved_to_a_further_archive_are_read_there() -> None:
    lab, source, archive = archived(15)
    further = lab.install(Follower, 0, subscriptions={})
    lab.app(further).data = list(lab.app(archive).data)
    lab.app(archive).moved = 11
    lab.app(archive).further = further
    assert replayed(lab) == (list(range(2, 12)), "completed", "")
    assert all(row.archived for row in lab.app(source).publisher.state.log[:12])


def test_rp_7c_a_publisher_goes_on_with_a_foreign_archive_after_an_upgrade() -> None:
    lab, source, archive = archived(15)
    app = Source(
        lab.orchestrator,
        lab.settings,
        publications={NAME: {REPLAY: True}},
        foreign_archive=archive,
        keep=2,
    )
    lab.network.stop(source)
    lab.step(30)
    assert lab.network.upgrade(source, app)
    lab.network.start(source)
    assert replayed(lab) == (list(range(2, 12)), "completed", "")


def test_rp_7c_an_archive_that_loses_or_alters_an_event_is_not_trusted() -> None:
    class Forgetful(Follower):
        def on_event(self, ctx: Context, event: EventNotification) -> None:
            if event.eventId == 5:
                event = event._replace(data=map_({"n": nat(500)}))
            if event.eventId != 10:
                super().on_event(ctx, event)

    lab, source, _ = archived(15, Forgetful)
    log = lab.app(source).publisher.state.log
    # The block with event 5 stays in the log, and so do those behind it.
    assert [row.archived for row in log] == [True] * 3 + [False] * 12
    assert replayed(lab) == (list(range(2, 12)), "completed", "")


def test_rp_7c_an_archive_that_alters_events_later_ends_the_replay() -> None:
    lab, _, archive = archived(15)
    blocks = lab.app(archive).data
    index = next(at for at, each in enumerate(blocks) if event_id(each, lab) == 6)
    blocks[index] = nat(1)
    handled, state, words = replayed(lab)
    assert (handled, state, words) == (
        [2, 3, 4, 5],
        "errored",
        "the archive lacks event 6",
    )


def event_id(block: Value, lab: Lab) -> int | None:
    """The id of the event in a block, whoever published it."""
    (source,) = [host.id for host in lab.network.hosts() if isinstance(host.code, Source)]
    event = event_of(block, source)
    return None if event is None else event.eventId


def test_an_app_has_one_archive() -> None:
    lab = Lab(subnets=1, broadcasters=(0,))
    with pytest.raises(ConfigError, match="an app has one archive"):
        Source(
            lab.orchestrator,
            publications={NAME: {}},
            archive=Principal(b"a"),
            foreign_archive=Principal(b"b"),
        )


@pytest.mark.parametrize(
    ("tag", "inside"),
    [
        ("Bool", nat(2)),
        ("Nat8", nat(256)),
        ("Int8", integer(128)),
        ("Int8", integer(-129)),
        ("Principal", blob(bytes(30))),
        ("Float", blob(bytes(7))),
        ("Floats", blob(bytes(9))),
        ("Nothing", nat(1)),
    ],
)
def test_a_malformed_icrc_3_form_is_refused(tag: str, inside: Value) -> None:
    form = map_({f"icrc16:{tag}": inside})
    with pytest.raises(ConfigError):
        from_icrc3(form)
    assert event_of(map_({"tx": form}), Principal()) is None
