"""Limits of the HTTP interface, each exceeded; callers, tokens and answers as attackers make
them.
"""

import asyncio
import base64
import contextlib
import gzip
import ssl
import time
import tracemalloc
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from support.distributor.stage import Stage, key_set, play, played, served, web
from support.plumbing.certificates import certificate

from interchain_events.distributor.core.messages import Post
from interchain_events.distributor.event import Notice
from interchain_events.distributor.service import engine, interface, requests
from interchain_events.distributor.service.access import hash_token
from interchain_events.distributor.service.addresses import MOST_URL
from interchain_events.distributor.service.poster import Poster
from interchain_events.distributor.simulation.stories import event_of

ID, EVENT = event_of(1)
MOST = 4
"""Requests that are served at once here."""


async def _unfinished(made: Stage, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A POST whose body never ends."""
    host, _, port = made.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length:"
        " 99\r\n\r\n{"
    )
    writer.write(head.encode())
    await writer.drain()
    return reader, writer


async def _status(reader: asyncio.StreamReader) -> int:
    return int((await reader.readline()).split()[1])


@played(most_requests=MOST)
async def test_id13_a_wrong_key_is_refused_before_the_body_is_here(made: Stage) -> None:
    paths = ["/internal/eventNotification/a/wrong", "/internal/desmosNotification/a/none/wrong"]
    opened = [await _unfinished(made, path) for path in paths * MOST]
    assert [await _status(reader) for reader, _ in opened] == [401] * len(opened)
    assert (await made.ask("GET", "/api/v2/events"))[0] == 200
    for _, writer in opened:
        writer.close()


@played(access={"tokens": [{"name": "t", "sha256": hash_token("t"), "rights": ["publish"]}]})
async def test_id13_without_the_right_a_body_is_not_waited_for(made: Stage) -> None:
    reader, writer = await _unfinished(made, "/api/v2/publishEvent")
    assert await _status(reader) == 401
    writer.close()
    assert (await made.ask("GET", "/health"))[0] == 200


@played(most_requests=MOST)
async def test_endless_bodies_keep_nobody_out_and_are_given_up(
    made: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = [await _unfinished(made, "/api/v2/publishEvent") for _ in range(3 * MOST)]
    assert (await made.ask("GET", "/api/v2/events"))[0] == 200
    monkeypatch.setattr(interface, "BODY_SECONDS", 0.05)
    late = await _unfinished(made, "/api/v2/publishEvent")
    assert await _status(late[0]) == 408
    for _, writer in (*opened, late):
        writer.close()


@played(most_requests=MOST)
async def test_more_requests_than_are_served_at_once_get_429(
    made: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "ANSWER_SECONDS", 0.5)
    for ledger in made.ledgers.values():
        ledger.network.up = False
    waiting = [
        made.ask("POST", "/api/v2/publishEvent", json=event_of(each)[1].body())
        for each in range(2 * MOST)
    ]
    found = await asyncio.gather(*waiting)
    assert [status for status, _, _ in found].count(429) == MOST
    status, body, headers = next(each for each in found if each[0] == 429)
    assert (status, body["type"], headers["Retry-After"]) == (429, "urn:ied:too-many-requests", "1")
    assert (await made.ask("GET", "/health"))[0] == 200


def _secret(length: int) -> str:
    return base64.b64encode(bytes(length)).decode()


def _url(length: int) -> str:
    return "http://n.example/".ljust(length, "x")


@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        ("/api/v2/subscribe", {"eventTypes": ["t"] * 64}, {"eventTypes": ["t"] * 65}),
        ("/api/v2/subscribe", {"eventTypes": ["t" * 255]}, {"eventTypes": ["t" * 256]}),
        ("/api/v2/subscribe", {"metadata": ["m"] * 16}, {"metadata": ["m"] * 17}),
        ("/api/v2/subscribe", {"metadata": ["m" * 256]}, {"metadata": ["m" * 257]}),
        ("/api/v2/subscribe", {"secret": _secret(128)}, {"secret": _secret(129)}),
        (
            "/api/v2/subscribe",
            {"notificationEndpoint": _url(MOST_URL)},
            {"notificationEndpoint": _url(MOST_URL + 1)},
        ),
        ("/api/v2/publishEvent", {"eventType": "t" * 255}, {"eventType": "t" * 256}),
        (
            "/api/v2/publishEvent",
            {"relevantMetadata": ["m"] * 32},
            {"relevantMetadata": ["m"] * 33},
        ),
    ],
)
@played()
async def test_a_field_at_its_limit_is_taken_and_one_beyond_is_refused(
    made: Stage, path: str, good: dict[str, Any], bad: dict[str, Any]
) -> None:
    wish = {"eventTypes": ["t"], "notificationEndpoint": "http://n.example/"}
    base = EVENT.body() if path.endswith("Event") else wish
    assert (await made.ask("POST", path, json={**base, **bad}))[0] == 400
    assert (await made.ask("POST", path, json={**base, **good}))[0] == 201


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        pytest.param(
            {"limit": str(requests.MOST_LIMIT)},
            {"limit": str(requests.MOST_LIMIT + 1)},
            id="limit",
        ),
        pytest.param(
            {"endDate": str(requests.MOST_MS)},
            {"endDate": str(requests.MOST_MS + 1)},
            id="end date",
        ),
        pytest.param(
            {"envM": "m" * 256},
            {"envM": "m" * 257},
            id="environment",
        ),
        pytest.param(
            {"after": "e30"},
            {"after": "e30" + "A" * requests.MOST_CURSOR},
            id="cursor",
        ),
    ],
)
@played()
async def test_a_parameter_is_taken_at_its_limit_alone(
    made: Stage, good: dict[str, str], bad: dict[str, str]
) -> None:
    assert (await made.ask("GET", "/api/v2/events", params=good))[0] == 200
    assert (await made.ask("GET", "/api/v2/events", params=bad))[0] == 400


KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
JWKS = {"keys.json": key_set(("k", "RS256", KEY))}


def _part(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _forged(secret: bytes) -> str:
    """An HS256 token under the name of the RS256 key: its public half is the secret."""
    head, body = (
        _part('{"alg":"HS256","typ":"JWT","kid":"k"}'),
        _part('{"scope":"read","exp":99999999999}'),
    )
    made = jwt.get_algorithm_by_name("HS256").sign(f"{head}.{body}".encode(), secret)
    return f"{head}.{body}.{base64.urlsafe_b64encode(made).decode().rstrip('=')}"


@pytest.mark.parametrize("without_exp", [False, True])
def test_id13_a_jwt_that_does_not_expire_is_refused_unless_it_is_allowed(
    tmp_path: Path, *, without_exp: bool
) -> None:
    token = jwt.encode({"scope": "read"}, KEY, "RS256", headers={"kid": "k"})

    async def what(made: Stage) -> None:
        found = await made.ask(
            "GET", "/api/v2/events", headers={"Authorization": f"Bearer {token}"}
        )
        assert found[0] == (200 if without_exp else 401)

    play(
        tmp_path,
        what,
        files=JWKS,
        access={"jwt": {"jwks": "keys.json", "without_exp": without_exp}},
    )


@played(files=JWKS, access={"jwt": {"jwks": "keys.json"}})
async def test_id13_e3_what_is_no_token_gets_401_and_no_defect(
    made: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    pem = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    der = KEY.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    deep = "[" * 2_000 + "]" * 2_000
    tokens = [
        *(_forged(secret) for secret in (pem, pem.strip(), der, b"")),
        "\xff\xfe", "ü", "a.b.c", ".", "..", "...", "\x85",
        f"{_part(deep)}.e30.x",
        f"{_part('[]')}.e30.x",
        f"{_part('{}')}.e30.x",
        f"{_part('null')}.e30.x",
        _part('{"alg":"RS256","kid":["k"]}') + ".e30.x",
        _part('{"alg":["RS256"],"kid":"k"}') + ".e30.x",
        _part('{"alg":"RS256","kid":"k","crit":["x"]}') + ".e30.x",
        jwt.encode({"scope": "read", "exp": 99999999999}, "", "none", headers={"kid": "k"}),
        *(jwt.encode({"scope": "read", "exp": exp}, KEY, "RS256", headers={"kid": "k"})
          for exp in (0, -1, "soon", None, float("inf"), float("nan"), int(time.time()) - 60)),
    ]  # fmt: skip

    host, _, port = made.url.removeprefix("http://").partition(":")
    for token in tokens:
        reader, writer = await asyncio.open_connection(host, int(port))
        head = (
            f"GET /api/v2/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
        )
        writer.write(head.encode("latin-1"))
        assert await _status(reader) == 401, token[:80]
        writer.close()
    assert "a defect" not in caplog.messages


def test_id42_answers_of_a_subscriber_cost_little_and_count_by_their_status_alone() -> None:
    """A body that unpacks to 256 MiB, one without end, a redirect inwards, a long header, hints
    without end.
    """
    bomb = gzip.compress(bytes(2**28), 9)

    async def packed(_request: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip", "Set-Cookie": "a=b"})

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(bytes(2**16))

    async def elsewhere(_request: web.Request) -> web.Response:
        return web.Response(status=308, headers={"Location": "http://169.254.169.254/latest"})

    async def long_head(_request: web.Request) -> web.Response:
        return web.Response(headers={"X": "x" * 2**20})

    async def hints(request: web.Request) -> web.StreamResponse:
        while request.transport is not None and not request.transport.is_closing():
            request.transport.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)
            await asyncio.sleep(0)
        return web.Response()

    answers = {
        "packed": packed,
        "endless": endless,
        "elsewhere": elsewhere,
        "long_head": long_head,
        "hints": hints,
    }
    expected = {"packed": 200, "endless": 200, "elsewhere": 308, "long_head": None, "hints": None}

    async def what() -> dict[str, int | None]:
        app, poster = web.Application(), Poster(private=True, timeout=1.0)
        for name, answer in answers.items():
            app.router.add_post(f"/{name}", answer)
        async with served(app, "127.0.0.1", 0) as url:
            found = {}
            for name in answers:
                told = Post(
                    "s",
                    ID,
                    f"{url}/{name}",
                    secret=None,
                    webhook="msg_1",
                    notice=Notice(1, 1, EVENT, ID, "0x"),
                    before=0,
                )
                found[name] = (await poster.post(told)).status
            await poster.close()
        return found

    tracemalloc.start()
    try:
        assert asyncio.run(what()) == expected
        assert tracemalloc.get_traced_memory()[1] < 32 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "kind", ["no greeting", "a certificate of its own", "a byte of the head at a time"]
)
def test_id42_slow_or_false_tls_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    tls = certificate(tmp_path)
    own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    own.load_cert_chain(tls.certificate, tls.key)
    if kind == "a byte of the head at a time":
        monkeypatch.setenv("SSL_CERT_FILE", str(tls.certificate))
        monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", ssl.create_default_context())
    heads: list[bytes] = []
    left = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            if kind != "no greeting":
                heads.append(await reader.readline())
                for each in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1000:
                    writer.write(bytes([each]))
                    await writer.drain()
                    await asyncio.sleep(0.05)
            await reader.read()
        writer.transport.abort()
        left.set()

    async def what() -> int | None:
        server = await asyncio.start_server(
            drip, "127.0.0.1", 0, ssl=None if kind == "no greeting" else own
        )
        poster = Poster(private=True, timeout=1.0)
        place = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/in"
        sent = await poster.post(
            Post(
                "s",
                ID,
                place,
                secret=None,
                webhook="msg_1",
                notice=Notice(1, 1, EVENT, ID, "0x"),
                before=0,
            )
        )
        await poster.close()
        if kind != "a certificate of its own":  # nobody gets as far as `drip` there
            await left.wait()
        server.close()
        await server.wait_closed()
        return sent.status

    assert asyncio.run(what()) is None
    assert bool(heads) == (kind == "a byte of the head at a time")
