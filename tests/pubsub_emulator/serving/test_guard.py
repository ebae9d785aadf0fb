"""Every HTTP server asks the same guard who may call it (ND-28)."""

import asyncio
import gzip
import re
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from support.node.nodes import story
from support.plumbing.pages import ROOT
from support.plumbing.web import served

from pubsub_emulator.node.server.options import Options
from pubsub_emulator.serving.body import PATIENCE, read_body
from pubsub_emulator.serving.guard import LOCAL, Names, guard


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        (None, True),
        ("http://localhost:3000", True),
        ("http://127.0.0.1", True),
        ("http://[::1]:8080", True),
        ("https://polkadot.js.org", True),
        ("https://own.example", True),
        ("https://evil.example", False),
        ("https://polkadot.js.org.evil.example", False),
        ("http://localhost.evil.example", False),
        ("null", False),
        ("http://[", False),
    ],
)
def test_pages_of_this_machine_and_named_ones_may_call(origin: str | None, allowed: bool) -> None:
    assert Options(origins=("https://own.example",)).names.has_origin(origin) is allowed


@pytest.mark.parametrize(
    ("origin", "host", "allowed"),
    [
        (None, "127.0.0.1:9944", True),
        ("http://127.0.0.1:9944", "127.0.0.1:9944", True),
        ("http://LocalHost:9944", "localhost:9944", True),
        ("https://lab.example", "lab.example", True),
        ("http://127.0.0.1:9945", "127.0.0.1:9944", False),
        ("http://127.0.0.1", "127.0.0.1:9944", False),
        ("http://localhost:9944", "127.0.0.1:9944", False),
        ("ftp://127.0.0.1:9944", "127.0.0.1:9944", False),
        ("http://127.0.0.1:9944.evil.example", "127.0.0.1:9944", False),
        ("http://localhost:3000", "127.0.0.1:9944", True),
        ("https://polkadot.js.org", "127.0.0.1:9944", True),
        ("null", "null", False),
    ],
)
def test_with_dev_only_the_own_page_and_named_ones_may_call(
    origin: str | None, host: str, allowed: bool
) -> None:
    names = Options(dev=True, origins=("http://localhost:3000",)).names
    assert names.has_origin(origin, host) is allowed


@pytest.mark.parametrize(
    ("host", "listening", "allowed"),
    [
        ("localhost:9944", "127.0.0.1", True),
        ("127.0.0.1:9944", "127.0.0.1", True),
        ("[::1]:9944", "::1", True),
        ("evil.example:9944", "127.0.0.1", False),
        ("10.0.0.7:9944", "127.0.0.1", False),
        ("10.0.0.7:9944", "0.0.0.0", True),  # noqa: S104  # only compared
        ("evil.example", "0.0.0.0", False),  # noqa: S104  # only compared
        ("node.lan:9944", "node.lan", True),
        (None, "127.0.0.1", False),
        ("[", "127.0.0.1", False),
    ],
)
def test_a_page_cannot_rebind_its_name_to_a_server(
    host: str | None, listening: str, allowed: bool
) -> None:
    assert Options(host=listening).names.has_host(host) is allowed


def test_names_are_added_and_callers_with_keys_use_any() -> None:
    assert Names(names=("events.lan",)).has_host("Events.lan:8080")
    assert not Names().has_host("events.lan:8080")
    assert Names(any_host=True).has_host("events.lan:8080")
    assert not Names(any_host=True).has_origin("https://events.lan")


def test_a_page_of_another_port_of_this_machine_is_elsewhere() -> None:
    for origin in ("http://localhost:3000", "http://127.0.0.1:3000", "http://[::1]:3000"):
        assert not LOCAL.has_origin(origin, "127.0.0.1:8090")
        assert not Names(names=("localhost",)).has_origin(origin, "127.0.0.1:8090")
        assert Names(origins=(origin,)).has_origin(origin, "127.0.0.1:8090")
    assert LOCAL.has_origin("http://127.0.0.1:8090", "127.0.0.1:8090")
    assert Names(origins=("*",)).has_origin("https://wallet.example", "127.0.0.1:8090")


@story
async def test_a_body_has_a_type_and_a_time() -> None:
    async def take(request: web.Request) -> web.Response:
        return web.Response(body=await read_body(request, 0.05))

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    assert read_body.__defaults__ == (PATIENCE,)
    app = web.Application(middlewares=[guard(LOCAL)])
    app.router.add_route("*", "/", take)
    json, evil = {"Content-Type": "application/json"}, "https://evil.example"
    cases = (
        (200, {"data": b"{}", "headers": json}),
        (200, {}),
        (403, {"headers": {"Origin": evil}}),
        (403, {"headers": {"Host": "evil.example"}}),
        (415, {"data": b"{}", "headers": {"Content-Type": "text/plain"}}),
        (415, {"data": b"{}", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}),
        (415, {"data": gzip.compress(b"{}"), "headers": {**json, "Content-Encoding": "gzip"}}),
        (408, {"data": never(), "headers": json}),
    )
    async with served(app) as url, aiohttp.ClientSession() as http:
        for status, wanted in cases:
            async with http.post(url, **wanted) as answer:
                assert answer.status == status, wanted


@story
async def test_a_damaged_body_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async def take(_: web.Request) -> web.Response:
        pytest.fail("it was let in")

    app = web.Application(middlewares=[guard(LOCAL)])
    app.router.add_post("/", take)
    async with served(app) as url:
        for coding in (b"gzip", b"deflate"):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            head = (
                b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type:"
                b" application/json\r\nContent-Length: 700\r\n"
            )
            writer.write(head + b"Content-Encoding: " + coding + b"\r\n\r\n" + b"garbage" * 100)
            assert b" 415 " in (await reader.read())[:20]
            writer.close()
    assert caplog.text == ""


def test_no_application_is_without_the_guard() -> None:
    paths = (
        *(ROOT / "pubsub_emulator").rglob("*.py"),
        *(ROOT / "interchain_events").rglob("*.py"),
    )
    texts = {path: path.read_text("utf-8") for path in paths}
    made = {path: text for path, text in texts.items() if "web.Application(" in text}
    assert len(made) == 5
    for path, text in made.items():
        assert text.count("web.Application(") == len(re.findall(r"\bguard\(", text)), path
    runners = [path for path, text in texts.items() if "web.AppRunner(" in text]
    assert len(runners) == 2
    assert all("logger=http_log" in texts[path] for path in runners)
