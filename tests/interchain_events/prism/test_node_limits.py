"""What strangers may ask of a node, and what each limit answers beyond it (PR-54)."""

from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from support.plumbing.certificates import certificate
from support.plumbing.command import pubsub
from support.prism.prism_chain import Running, play, played, refused, until
from support.prism.wallet import ANY, Wallet

from interchain_events.events.errors import EventsError
from interchain_events.events.log.sql_store import SqlStore
from interchain_events.events.subscriptions.callers import (
    EVERYBODY,
    Callers,
    UnknownCaller,
    check_reach,
    read_callers,
)
from interchain_events.events.subscriptions.grpc_server import MOST_BYTES
from interchain_events.prism.client import NodeError, PrismClient
from interchain_events.prism.core.filters import Filter
from interchain_events.prism.make import atala_object
from interchain_events.prism.protocol import prism_pb2 as pb
from interchain_events.prism.service.rpc import MOST_FILTERS, NAME
from interchain_events.prism.service.service import PrismLimits
from pubsub_emulator.primitives.hashing import token_hash

BOTH: dict[str, Any] = {
    "callers": Callers({token_hash("mine"): "me", token_hash("other's"): "other"}),
    "token": "mine",
}


async def answer(node: Running, method: str, raw: bytes) -> grpc.StatusCode:
    """The status of a call with any bytes."""
    options = (("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1))
    async with grpc.aio.insecure_channel(node.address, options) as channel:
        try:
            await channel.unary_unary(f"/{NAME}/{method}")(raw)
        except grpc.aio.AioRpcError as error:
            return error.code()
    return grpc.StatusCode.OK


@played()
async def test_a_request_beyond_its_size_is_refused_and_no_one_else_waits(node: Running) -> None:
    empty = b"\x0a\x00"
    most = empty * (MOST_BYTES // len(empty))
    assert (
        await answer(node, "NewSubscription", most) is grpc.StatusCode.INVALID_ARGUMENT
    )  # too many filters
    assert await answer(node, "NewSubscription", most + empty) is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (
        await answer(node, "NewSubscription", empty * (8 << 19))
        is grpc.StatusCode.RESOURCE_EXHAUSTED
    )


@played()
async def test_filters_and_statuses_are_counted_before_they_are_listed(
    node: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed(*_given: object) -> list[Filter]:
        raise AssertionError("a filter was read")

    monkeypatch.setattr("interchain_events.prism.service.rpc._read_filter", listed)
    assert (
        await answer(node, "NewSubscription", b"\x0a\x00" * (MOST_FILTERS + 1))
        is grpc.StatusCode.INVALID_ARGUMENT
    )


@played()
async def test_a_filter_names_few_statuses(node: Running) -> None:
    for count, code in (
        (MOST_FILTERS, grpc.StatusCode.OK),
        (MOST_FILTERS + 1, grpc.StatusCode.INVALID_ARGUMENT),
    ):
        wide = pb.SubscriptionFilter(
            type=pb.CREATE_DID_FILTER, statuses=[pb.OUTCOME_APPLIED] * count
        )
        request = pb.NewSubscriptionRequest(filters=[wide])
        assert await answer(node, "NewSubscription", request.SerializeToString()) is code


@pytest.mark.parametrize(
    "method", ["NewSubscription", "CancelOperation", "GetSubscriptionEventsStream"]
)
@played()
async def test_bytes_that_are_no_message_are_an_invalid_argument(
    node: Running, method: str
) -> None:
    assert await answer(node, method, b"\xff\xff\xff") is grpc.StatusCode.INVALID_ARGUMENT


@played()
async def test_operations_beyond_an_object_are_refused_unread(node: Running) -> None:
    action = node.client.schedule([b"\xff" * 8_000] * 3)
    await refused(action, grpc.StatusCode.INVALID_ARGUMENT, "at most 16384")


@played(limits=PrismLimits(schedules_per_minute=3), **BOTH)
async def test_a_client_schedules_so_many_operations_a_minute(node: Running) -> None:
    first = [Wallet(f"{at}").created.raw for at in range(3)]
    await node.client.schedule(first)
    more = node.client.schedule([Wallet("more").created.raw])
    await refused(more, grpc.StatusCode.RESOURCE_EXHAUSTED, "3 operations a minute")
    async with PrismClient(node.address, token="other's") as other:  # noqa: S106  # a test's
        await other.schedule([Wallet("more").created.raw])
    node.service._schedules = {
        name: [each - 61 for each in times] for name, times in node.service._schedules.items()
    }
    await node.client.schedule([Wallet("later").created.raw])
    assert set(node.service._schedules) == {"me"}


@played(callers=Callers({token_hash("mine"): "me"}), token="mine")  # noqa: S106  # a test's
async def test_callers_without_a_token_of_the_node_are_unauthenticated(node: Running) -> None:
    await node.client.subscribe([ANY])
    for token in ("", "wrong"):
        async with PrismClient(node.address, token=token) as stranger:
            await refused(stranger.subscribe([ANY]), grpc.StatusCode.UNAUTHENTICATED)
            await refused(anext(stranger.statuses(bytes(32))), grpc.StatusCode.UNAUTHENTICATED)


@pytest.mark.parametrize("with_tls", [False, True])
def test_a_stream_that_nobody_reads_ends_but_counts_until_its_client_leaves(
    log: SqlStore, tmp_path: Path, *, with_tls: bool
) -> None:
    """A message of 100 operations has some 30 KB; gRPC itself takes about 6 MB for a client that
    does not read.
    """

    async def story(node: Running) -> None:
        for at in range(0, 60, 20):
            raw = [Wallet(f"{each}").created.raw for each in range(at, at + 20)]
            await node.processed(node.chain.build(atala_object(raw)))
        wide = _Wide(node)
        where = await node.client.subscribe([ANY], batches=True, everything=True)
        request = pb.GetSubscriptionEventsStreamRequest(subscription_token=where.token)
        little = (("grpc.http2.lookahead_bytes", 1),)
        secrets = grpc.ssl_channel_credentials(roots)
        async with (
            grpc.aio.secure_channel(node.address, secrets, little)
            if with_tls
            else grpc.aio.insecure_channel(node.address, little)
        ) as channel:
            call = channel.unary_stream(f"/{NAME}/GetSubscriptionEventsStream")(
                request.SerializeToString()
            )
            await until(
                lambda: wide.count and not any(each.reads_all for each in node.service.events._held)
            )
            assert node.service.events.open_streams == 1
            with pytest.raises(NodeError, match="1 streams"):
                await anext(node.client.events(where, reconnect=False))
            call.cancel()
        await until(lambda: node.service.events.open_streams == 0)

    tls = certificate(tmp_path) if with_tls else None
    roots = None if tls is None else tls.certificate.read_bytes()
    limits = PrismLimits(unread_seconds=0.5, streams_per_client=1)
    play(log, story, limits=limits, tls=tls, roots=roots)


class _Wide:
    """Makes each row that is streamed a wide one, again and again, so that a stream never ends by
    itself.
    """

    def __init__(self, node: Running) -> None:
        self.count = 0
        real = node.service.events.log.read

        def read(*given: Any, **options: Any) -> Any:
            self.count += 1
            page = real(*given, **options)
            for row in page.rows:
                row.event = row.event._replace(content=bytes(1 << 20))  # type: ignore[attr-defined]  # PRISM's rows
            return page

        node.service.events.log.read = read  # type: ignore[method-assign]


def test_a_node_with_tls_answers_clients_that_know_its_certificate(
    log: SqlStore, tmp_path: Path
) -> None:
    tls = certificate(tmp_path)

    async def story(node: Running) -> None:
        where = await node.client.subscribe([ANY])
        assert (await anext(node.client.events(where))).live
        async with PrismClient(node.address) as plain:
            with pytest.raises(NodeError):
                await plain.subscribe([ANY])

    play(log, story, tls=tls, roots=tls.certificate.read_bytes())


def test_an_address_that_others_can_reach_needs_tls_and_tokens() -> None:
    some = Callers({token_hash("x"): "me"})
    for host in ("127.0.0.1", "::1", "localhost"):
        check_reach(host, EVERYBODY, has_tls=False, is_open=False)
    check_reach("0.0.0.0", some, has_tls=True, is_open=False)  # noqa: S104  # what is refused without
    check_reach("0.0.0.0", EVERYBODY, has_tls=False, is_open=True)  # noqa: S104
    for callers, has_tls in ((EVERYBODY, True), (some, False), (EVERYBODY, False)):
        with pytest.raises(EventsError, match="others can reach"):
            check_reach("0.0.0.0", callers, has_tls=has_tls, is_open=False)  # noqa: S104


def test_a_file_of_tokens_names_callers_by_hashes(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# callers\nthe wallet {token_hash('mine').hex()}\n\n")
    assert read_callers(file).name("Bearer mine", "1.2.3.4") == "the wallet"
    assert read_callers(None).name("", "1.2.3.4") == "1.2.3.4"
    for given in ("", "Bearer", "Bearer wrong", "Basic mine", "Bearer \udc80"):
        with pytest.raises(UnknownCaller):
            read_callers(file).name(given, "1.2.3.4")
    for text in ("x\n", "me 12\n", f"{'0' * 64}\n", f"me {'x' * 64}\n", "", "\n"):
        file.write_text(text)
        with pytest.raises(EventsError, match="tokens"):
            read_callers(file)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--host", "0.0.0.0"), "others can reach 0.0.0.0"),  # noqa: S104  # what is refused
        (("--host", "example.org", "--tokens", "tokens"), "others can reach example.org"),
        (("--tls-key", "tokens"), "--tls-certificate and --tls-key go together"),
        (("--tokens", "empty"), "empty: there is no token"),
    ],
)
def test_a_node_that_strangers_could_call_does_not_start(
    options: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tokens").write_text(f"me {token_hash('mine').hex()}\n")
    Path("empty").write_text("")
    serve = ("prism", "serve", "--chain", "ws://127.0.0.1:9", "--db", "p.db", "--port", "0")
    assert pubsub(monkeypatch, *serve, *options) == 2
    assert words in capsys.readouterr().err
    assert not Path("p.db").exists()
