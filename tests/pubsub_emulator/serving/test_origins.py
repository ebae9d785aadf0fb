"""Pages of named origins call a server and read its answers, as browsers ask it to (CORS)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import click
import pytest
from aiohttp import web
from click.testing import CliRunner
from support.node.nodes import story

from pubsub_emulator.cli.base import options
from pubsub_emulator.serving.guard import Names, guard, let_read
from pubsub_emulator.serving.listening import listening
from pubsub_emulator.serving.origins import ORIGIN

WALLET = "http://localhost:3000"
ALLOW = "Access-Control-Allow-Origin"
METHOD = "Access-Control-Request-Method"


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("http://localhost:3000", True),
        ("http://[::1]:3000", True),
        ("https://wallet.example", True),
        ("chrome-extension://abcdefgh", True),
        ("*", True),
        ("http://localhost:3000/", False),
        ("http://Localhost:3000", False),
        ("https://user@wallet.example", False),
        ("https://wallet.example:443", False),
        ("http://wallet.example:80", False),
        ("http://wallet.example:443", True),
        ("https://", False),
        ("localhost:3000", False),
        ("file:///", False),
        ("null", False),
        ("", False),
    ],
)
def test_an_origin_is_written_as_browsers_send_it(text: str, is_one: bool) -> None:
    assert bool(ORIGIN.fullmatch(text)) is is_one

    @click.command
    @options.page_origins
    def command(origins: tuple[str, ...]) -> None:
        click.echo(origins[0])

    result = CliRunner().invoke(command, ["--origin", text])
    assert (result.exit_code == 0) is is_one
    if not is_one:
        assert "is not an origin such as http://localhost:3000" in result.output


def application(names: Names) -> web.Application:
    async def tell(_: web.Request) -> web.Response:
        return web.Response(text="it")

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"it")
        return response

    app = web.Application(middlewares=[guard(names)])
    let_read(app, names)
    app.router.add_get("/one", tell)
    app.router.add_get("/stream", stream)
    return app


@asynccontextmanager
async def served(app: web.Application) -> AsyncIterator[str]:
    """The URL of an application that is served."""
    async with listening(app, "127.0.0.1", 0, grace=1) as (host, port):
        yield f"http://{host}:{port}"


@story
async def test_a_page_of_a_named_origin_reads_answers_streams_and_errors() -> None:
    app = application(Names(origins=(WALLET,)))
    async with served(app) as url, aiohttp.ClientSession() as http:
        for path, status in (("/one", 200), ("/stream", 200), ("/none", 404)):
            async with http.get(url + path, headers={"Origin": WALLET}) as answer:
                assert (answer.status, answer.headers[ALLOW]) == (status, WALLET)
                assert answer.headers["Vary"] == "Origin"
            async with http.get(url + path) as answer:
                assert (answer.status, answer.headers.get(ALLOW)) == (status, None)
            async with http.get(url + path, headers={"Origin": "http://localhost:3001"}) as answer:
                assert (answer.status, answer.headers.get(ALLOW)) == (403, None)


@story
async def test_a_browser_asks_before_it_sends_what_forms_do_not() -> None:
    app = application(Names(origins=(WALLET,)))
    async with served(app) as url, aiohttp.ClientSession() as http:
        asks = {"Origin": WALLET, METHOD: "POST"}
        async with http.options(url + "/one", headers=asks) as answer:
            assert (answer.status, answer.headers[ALLOW]) == (204, WALLET)
            assert "POST" in answer.headers["Access-Control-Allow-Methods"]
            assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]
        async with http.options(
            url + "/one", headers={**asks, "Origin": "https://e.example"}
        ) as no:
            assert no.status == 403
        async with http.options(url + "/one", headers={METHOD: "POST"}) as answer:
            assert answer.status == 405


@story
async def test_without_named_origins_nothing_is_said_to_browsers() -> None:
    async with served(application(Names())) as url, aiohttp.ClientSession() as http:
        async with http.get(url + "/one", headers={"Origin": url}) as answer:
            assert (answer.status, answer.headers.get(ALLOW)) == (200, None)
        async with http.options(url + "/one", headers={"Origin": WALLET, METHOD: "GET"}) as answer:
            assert answer.status == 403
