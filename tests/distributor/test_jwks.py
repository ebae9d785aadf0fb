"""ID-23: keys come from a real HTTP server: rotated, in pieces, too long, redirected, away for a while."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from support.distributor import stage
from support.told import alone, told

from pubsub_emulator.distributor.service import access
from pubsub_emulator.distributor.service.access import Keys, Verifier
from pubsub_emulator.distributor.service.serve import served
from pubsub_emulator.distributor.simulation.stories import event_of

SECRETS = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("old", "new")}


def _public(*names: str) -> dict[str, Any]:
    algorithm = jwt.get_algorithm_by_name("ES256")
    return {
        "keys": [{**json.loads(algorithm.to_jwk(SECRETS[name].public_key())), "kid": name} for name in names]
        + [{"kty": "oct", "k": "c2VjcmV0", "kid": "shared"}, {"kty": "unknown"}]
    }


def _sign(name: str) -> str:
    return jwt.encode(event_of(1)[1].body(), SECRETS[name], "ES256", headers={"kid": name})


class Provider:
    """A server of a key set."""

    def __init__(self) -> None:
        self.asked = 0
        self.status = 200
        self.body = json.dumps(_public("old")).encode()
        self.gate: asyncio.Event | None = None

    async def get(self, request: web.Request) -> web.StreamResponse:
        """The key set, a byte or so at a time."""
        self.asked += 1
        if self.gate is not None:
            await self.gate.wait()
        headers = {"Location": "/elsewhere"} if self.status == 302 else {}
        response = web.StreamResponse(status=self.status, headers=headers)
        await response.prepare(request)
        for at in range(0, len(self.body), max(len(self.body) // 5, 1)):
            await response.write(self.body[at : at + max(len(self.body) // 5, 1)])
            await asyncio.sleep(0.01)  # so that it arrives in pieces
        return response

    async def elsewhere(self, _request: web.Request) -> web.Response:
        """Where nobody may be sent."""
        return web.json_response(_public("new"))


def _with(what: Callable[[Provider, Keys], Awaitable[None]]) -> None:
    async def run() -> None:
        provider, app = Provider(), web.Application()
        app.router.add_get("/keys", provider.get)
        app.router.add_get("/elsewhere", provider.elsewhere)
        async with served(app, "127.0.0.1", 0) as url:
            await what(provider, Keys(url=f"{url}/keys"))

    asyncio.run(run())


provided = told(_with, made=2)


@provided
async def test_a_set_that_arrives_in_pieces_is_read_whole_and_once_for_all_who_wait(
    provider: Provider, keys: Keys
) -> None:
    verifier = Verifier(keys)
    found = await asyncio.gather(*(verifier.claims(_sign("old")) for _ in range(5)))
    assert [claims["entityId"] for claims in found] == [event_of(1)[1].entity] * 5
    assert provider.asked == 1
    assert await keys.find("shared") is None


@provided
async def test_a_rotated_key_is_fetched_and_one_that_was_taken_away_is_refused(
    provider: Provider, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier = Verifier(keys)
    await verifier.claims(_sign("old"))
    provider.body = json.dumps(_public("new")).encode()
    with pytest.raises(jwt.InvalidKeyError):
        await verifier.claims(_sign("new"))  # asked a moment ago: strangers must not make it ask each time
    assert provider.asked == 1
    monkeypatch.setattr(access, "REFRESH_SECONDS", 0.0)
    await verifier.claims(_sign("new"))
    with pytest.raises(jwt.InvalidKeyError):
        await verifier.claims(_sign("old"))


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b"{}"),
        (302, b""),
        (200, b"no json"),
        (200, b"[]"),
        (200, b"[" * 100_000),
        (200, b" " * (access.MOST_KEYS + 1)),
    ],
)
@provided
async def test_where_the_server_fails_the_known_keys_go_on_to_count(
    provider: Provider, keys: Keys, monkeypatch: pytest.MonkeyPatch, status: int, body: bytes
) -> None:
    verifier = Verifier(keys)
    await verifier.claims(_sign("old"))
    monkeypatch.setattr(access, "REFRESH_SECONDS", 0.0)
    provider.status, provider.body = status, body
    await verifier.claims(_sign("old"))
    assert provider.asked == 2
    with pytest.raises(jwt.InvalidKeyError):
        await verifier.claims(_sign("new"))


@alone
async def test_a_server_that_is_away_refuses_nobody_else_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    keys = Keys(url="http://127.0.0.1:1/keys")
    assert await keys.find("old") is None
    assert [record.message for record in caplog.records] == ["the keys cannot be fetched"]


@provided
async def test_a_signed_event_is_published_with_keys_of_a_server(provider: Provider, keys: Keys, tmp_path: Any) -> None:
    async with stage(tmp_path, events={"jwks": keys._url}) as made:  # where the server is
        for name, status in (("new", 401), ("old", 201)):
            how = {"data": _sign(name).encode(), "headers": {"Content-Type": "application/jwt"}}
            assert (await made.ask("POST", "/api/v2/publishEvent", **how))[0] == status
    assert provider.asked == 1
