"""A distributor or an adapter as a process, built from its settings."""

import contextlib
import gc
import json
import logging
import secrets
import socket
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp
from aiohttp import web

from interchain_events.distributor.once import open_store
from interchain_events.distributor.service.adapters import Adapter, HttpAdapter, Profile
from interchain_events.distributor.service.config import Config, make_access, make_verifier
from interchain_events.distributor.service.engine import Engine, EngineSettings
from interchain_events.distributor.service.http import DistributorHttp
from interchain_events.distributor.service.poster import Poster
from interchain_events.distributor.service.public import PublicAdapter
from pubsub_emulator.files.shown import whole
from pubsub_emulator.serving.listening import listening

log = logging.getLogger("pubsub.distributor")

SHUTDOWN_SECONDS: Final = 5.0
"""How long open requests may take when the server stops."""


@dataclass
class Running:
    """A distributor that is running."""

    engine: Engine
    url: str
    """The URL at which it listens."""


class JsonLines(logging.Formatter):
    """Formats a log record as a line of JSON.

    A dict passed as `extra={"fields": …}` is merged into the line, without its empty values.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{seconds}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            line.update({name: value for name, value in fields.items() if value != ""})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return whole(json.dumps(line, ensure_ascii=False, default=str))


def log_lines() -> None:
    """Write the program's logs to standard error as JSON lines, from level INFO on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger("pubsub")
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    root.propagate = False


def tune_collector() -> None:
    """Make the garbage collector run less often, and never visit the objects that exist now.

    The process has many rows in memory, all of which a full run visits, but creates few cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@contextlib.asynccontextmanager
async def served(app: web.Application, host: str, port: int) -> AsyncIterator[str]:
    """Serve an application inside of the context, and yield its URL."""
    async with listening(app, host, port, SHUTDOWN_SECONDS) as (name, bound):
        is_ipv6 = ":" in name
        url_host = f"[{name}]" if is_ipv6 else name
        yield f"http://{url_host}:{bound}"


@contextlib.asynccontextmanager
async def running(config: Config, folder: Path) -> AsyncIterator[Running]:
    """Run a distributor inside of the context.

    Paths in the settings are relative to `folder`. When the context ends, the server stops first,
    then the effects, and then the store is closed. Raises `SettingsError` and `StoreError`.
    """
    if misfit := config.port_misfit():
        log.warning("adapters cannot reach this distributor", extra={"fields": {"error": misfit}})
    rules = config.rules(owner=f"{socket.gethostname()}-{secrets.token_hex(8)}")
    access = make_access(config.access, config.host, folder)
    verifier = None if config.events is None else make_verifier(config.events, "events", folder)
    profiles = {
        name: Profile(
            adapter.chain_id,
            tuple(adapter.environments),
            adapter.token(f"adapters.{name}", folder),
            timeout=config.call_timeout,
        )
        for name, adapter in config.adapters.items()
    }
    # The stack closes in reverse order: the server first, then the engine, then its connections.
    async with contextlib.AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(), connector=aiohttp.TCPConnector(limit=0)
            )
        )
        adapters: dict[str, Adapter] = {}
        for name, adapter in config.adapters.items():
            make_adapter = PublicAdapter if adapter.profile == "legacy" else HttpAdapter
            adapters[name] = make_adapter(adapter.url, profiles[name], session)
        private = config.private_endpoints
        poster = Poster(private=private)
        stack.push_async_callback(poster.close)
        settings = EngineSettings(
            tuple(config.subscriptions.types),
            tuple(config.subscriptions.metadata),
            {
                name: adapter.chain_id
                for name, adapter in config.adapters.items()
                if adapter.profile == "legacy"
            },
            grace=config.grace,
        )
        engine = Engine(rules, open_store(config.store), adapters, poster, settings)
        await engine.start()
        stack.push_async_callback(engine.stop)
        http = DistributorHttp(
            engine,
            access,
            verifier=verifier,
            private=private,
            most=config.most_requests,
            names=config.names(),
            signed_only=config.signed_only,
        )
        url = await stack.enter_async_context(served(http.application(), config.host, config.port))
        yield Running(engine, url)
