"""Who may do what, signed events, signed notifications, and addresses judged when they are
connected to.
"""

import asyncio
import base64
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from support.distributor.stage import Inbox, Stage, key_set, played, stage
from support.plumbing.told import alone, told

from interchain_events.distributor.core.messages import Post
from interchain_events.distributor.event import Notice
from interchain_events.distributor.service import access
from interchain_events.distributor.service.access import Keys, Verifier, hash_token
from interchain_events.distributor.service.addresses import is_public
from interchain_events.distributor.service.config import AccessConfig, make_access
from interchain_events.distributor.service.poster import Poster, signature
from interchain_events.distributor.service.serve import served
from interchain_events.distributor.simulation.stories import event_of
from pubsub_emulator.files.settings import SettingsError

ID, EVENT = event_of(1)
EVERYWHERE = "0.0.0.0"  # noqa: S104  # what is tested
KEYS: dict[str, Any] = {
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
    "RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
}


JWKS = {"keys.json": key_set(*((name, name, key) for name, key in KEYS.items()))}
RIGHTS = ("publish", "subscribe", "read", "admin")


def _sign(claims: dict[str, Any], algorithm: str = "ES256", **headers: str) -> str:
    return jwt.encode(claims, KEYS[algorithm], algorithm, headers={"kid": algorithm, **headers})


async def _told(made: Stage, token: str) -> int:
    """The status of a signed event."""
    how = {"data": token.encode(), "headers": {"Content-Type": "application/jwt"}}
    return (await made.ask("POST", "/api/v2/publishEvent", **how))[0]


ROUTES = {
    "POST /api/v2/publishEvent": "publish",
    "POST /api/v2/subscribe": "subscribe",
    "DELETE /api/v2/subscribe/x": "subscribe",
    "GET /api/v2/subscribe": "read",
    "GET /api/v2/events": "read",
    "GET /metrics": "read",
    "GET /api/v2/dead-letters": "admin",
    "POST /api/v2/dead-letters/x/redrive": "admin",
}


@played(
    access={
        "tokens": [
            {"name": name, "sha256": hash_token(name * 8), "rights": [name]} for name in RIGHTS
        ]
    }
)
async def test_id13_each_route_needs_its_right(made: Stage) -> None:
    for path, right in ROUTES.items():
        method, _, route = path.partition(" ")
        for token in RIGHTS:
            status, _, _ = await made.ask(
                method, route, headers={"Authorization": f"Bearer {token * 8}"}
            )
            assert (status == 403) is (token != right), (path, token)
        for header in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "Basic cHVibGlzaA=="},
        ):
            status, body, headers = await made.ask(method, route, headers=header)
            assert (status, body["type"], headers["WWW-Authenticate"]) == (
                401,
                "urn:ied:unauthorized",
                "Bearer",
            )
    assert (await made.ask("GET", "/health"))[0] == 200


@played(files=JWKS, access={"jwt": {"jwks": "keys.json", "issuer": "https://idp.example"}})
async def test_id13_a_jwt_s_scope_is_its_rights(made: Stage) -> None:
    now = int(time.time())
    for claims, status in (
        ({"scope": "read publish", "iss": "https://idp.example", "exp": now + 60}, 200),
        ({"scope": "publish", "iss": "https://idp.example", "exp": now + 60}, 403),
        ({"scope": "read", "iss": "https://other.example", "exp": now + 60}, 401),
        ({"scope": "read", "iss": "https://idp.example", "exp": now - 60}, 401),
    ):
        header = {"Authorization": f"Bearer {_sign(claims, 'RS256')}"}
        assert (await made.ask("GET", "/api/v2/events", headers=header))[0] == status


def test_id13_nobody_is_let_in_from_elsewhere_unless_told(tmp_path: Path) -> None:
    for host in (EVERYWHERE, "::", "192.0.2.1"):
        with pytest.raises(SettingsError, match="others can reach"):
            make_access(AccessConfig(), host, tmp_path)
    make_access(AccessConfig(open=True), EVERYWHERE, tmp_path)
    for host in ("127.0.0.1", "::1", "localhost"):
        make_access(AccessConfig(), host, tmp_path)


@played(files=JWKS, events={"jwks": "keys.json"})
async def test_id23_a_signed_event_is_unpacked_if_its_signature_holds(made: Stage) -> None:
    now, fields = int(time.time()), EVENT.body()
    good = _sign(fields)
    none = jwt.encode(fields, "", "none", headers={"kid": "ES256"})
    public = json.loads(JWKS["keys.json"])["keys"][2]["n"]
    confused = jwt.encode(
        fields, base64.b64encode(public.encode() * 2).decode(), "HS256", headers={"kid": "RS256"}
    )
    for token, status in (
        (none, 401),
        (confused, 401),
        (good[:-8] + "AAAAAAAA", 401),
        (_sign(fields, "ES256", kid="unknown"), 401),
        (_sign({**fields, "exp": now - 60}, "EdDSA"), 401),
        (_sign({**fields, "nbf": now + 60}, "RS256"), 401),
        ("no token", 401),
        (good, 201),
        (_sign({**fields, "exp": now + 60}, "EdDSA"), 200),
        (_sign({**fields, "nbf": now - 60}, "RS256"), 200),
    ):
        assert await _told(made, token) == status, token
    assert made.ledgers["a"].network.count(ID) == 1


@played(events={"check": False})
async def test_id23_off_by_flag_anybody_may_sign(made: Stage) -> None:
    assert await _told(made, jwt.encode(EVENT.body(), "", "none")) == 201


def test_id42_the_signature_is_standard_webhooks() -> None:
    """The example of the specification of Standard Webhooks."""
    made = signature(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", EVERYWHERE,
        "224.0.0.1", "100.64.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0",
        "fc00::1", "ff02::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1",
        "2002:7f00:1::", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1", "64:ff9b:1::101:101",
        "fec0::1", "feff::1", "::7f00:1", "::101:101", "4000::1", "2001::1",
    ],
)  # fmt: skip
def test_id42_special_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "64:ff9b::101:101"]
)
def test_id42_others_are(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    ("host", "private", "status"),
    [
        ("127.0.0.1", True, 200),
        ("localhost", True, 200),
        ("127.0.0.1", False, None),
        ("localhost", False, None),
    ],
)
@alone
async def test_id42_scenario_34_the_address_connected_to_decides(
    host: str, private: bool, status: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    """A name that leads to this machine is refused when it is connected to, whatever it led to
    before.
    """
    inbox = Inbox()
    app = web.Application()
    app.router.add_post("/in", inbox.post)
    poster = Poster(private=private)
    async with served(app, "127.0.0.1", 0) as url:
        endpoint = url.replace("127.0.0.1", host) + "/in"
        told = Post(
            "s",
            ID,
            endpoint,
            secret=None,
            webhook="msg_1",
            notice=Notice(1, 1, EVENT, ID, "0x"),
            before=0,
        )
        found = (await poster.post(told)).status
    await poster.close()
    assert found == status
    assert len(inbox.got) == (status == 200)
    said = [str(record.__dict__["fields"]) for record in caplog.records]
    assert private or ("'subscription': 's'" in said[0] and "private_endpoints = true" in said[0])


@alone
async def test_id42_redirects_are_not_followed() -> None:
    followed = []

    async def redirect(_request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": "/other"})

    async def other(_request: web.Request) -> web.Response:
        followed.append(1)
        return web.Response()

    app = web.Application()
    app.router.add_post("/in", redirect)
    app.router.add_post("/other", other)
    poster = Poster(private=True)
    async with served(app, "127.0.0.1", 0) as url:
        told = Post(
            "s",
            ID,
            f"{url}/in",
            secret=None,
            webhook="msg_1",
            notice=Notice(1, 1, EVENT, ID, "0x"),
            before=0,
        )
        assert (await poster.post(told)).status == 307
    assert not followed
    await poster.close()


# ID-23: keys come from a real HTTP server: rotated, in pieces, too long, redirected, away for a
# while.

SECRETS = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("old", "new")}


def _public(name: str) -> bytes:
    """The key set with one of the secrets, and with keys that are none of ours."""
    others = [{"kty": "oct", "k": "c2VjcmV0", "kid": "shared"}, {"kty": "unknown"}]
    return json.dumps(
        {"keys": json.loads(key_set((name, "ES256", SECRETS[name])))["keys"] + others}
    ).encode()


def _sign_event(name: str) -> str:
    return jwt.encode(event_of(1)[1].body(), SECRETS[name], "ES256", headers={"kid": name})


class Provider:
    """A server of a key set."""

    def __init__(self) -> None:
        self.asked = 0
        self.status = 200
        self.body = _public("old")
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
        return web.Response(body=_public("new"))


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
async def test_a_key_set_arriving_in_pieces_is_read_once_for_all_waiters(
    provider: Provider, keys: Keys
) -> None:
    verifier = Verifier(keys)
    found = await asyncio.gather(*(verifier.claims(_sign_event("old")) for _ in range(5)))
    assert [claims["entityId"] for claims in found] == [event_of(1)[1].entity] * 5
    assert provider.asked == 1
    assert await keys.find("shared") is None


@provided
async def test_a_rotated_key_is_fetched_and_a_removed_one_is_refused(
    provider: Provider, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier = Verifier(keys)
    await verifier.claims(_sign_event("old"))
    provider.body = _public("new")
    with pytest.raises(jwt.InvalidKeyError):
        await verifier.claims(
            _sign_event("new")
        )  # asked a moment ago: strangers must not make it ask each time
    assert provider.asked == 1
    monkeypatch.setattr(access, "REFRESH_SECONDS", 0.0)
    await verifier.claims(_sign_event("new"))
    with pytest.raises(jwt.InvalidKeyError):
        await verifier.claims(_sign_event("old"))


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
    await verifier.claims(_sign_event("old"))
    monkeypatch.setattr(access, "REFRESH_SECONDS", 0.0)
    provider.status, provider.body = status, body
    await verifier.claims(_sign_event("old"))
    assert provider.asked == 2
    with pytest.raises(jwt.InvalidKeyError):
        await verifier.claims(_sign_event("new"))


@alone
async def test_a_server_that_is_away_refuses_nobody_else_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    keys = Keys(url="http://127.0.0.1:1/keys")
    assert await keys.find("old") is None
    assert [record.message for record in caplog.records] == ["the keys cannot be fetched"]


@provided
async def test_a_signed_event_is_published_with_keys_of_a_server(
    provider: Provider, keys: Keys, tmp_path: Any
) -> None:
    async with stage(tmp_path, events={"jwks": keys._url}) as made:  # where the server is
        for name, status in (("new", 401), ("old", 201)):
            assert await _told(made, _sign_event(name)) == status
    assert provider.asked == 1
