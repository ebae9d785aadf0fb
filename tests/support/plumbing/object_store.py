"""An S3 server in a process of its own, set up for pyarrow by the variables that AWS's own tools
read.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from pyarrow import fs

BUCKET = "audits"

_SERVER = """
import sys
import threading
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
moto, turn = DomainDispatcherApplication(create_backend_app), threading.Lock()
def application(environment, start_response):
    with turn:
        return list(moto(environment, start_response))
server = make_server("127.0.0.1", 0, application, threaded=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("127.0.0.1", server.server_port, flush=True)
sys.stdin.read()
"""
"""Serves until its standard input ends, one request at a time: moto looks whether a file is there
and writes it in two steps, where an object store does both at once.

Moto leaves temporary files open: warnings, in the tests' own process.
"""


@contextmanager
def s3_server(monkeypatch: pytest.MonkeyPatch, log: Path | None = None) -> Iterator[str]:
    """Run an object store and yield the address of an empty bucket.

    While the server runs, the environment has its address and keys. Requests are logged to `log`.
    """
    with (
        log.open("wb") if log else nullcontext() as errors,
        subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as server,
    ):
        assert server.stdout is not None
        host, port = server.stdout.readline().split()
        try:
            for name, value in {
                "AWS_ENDPOINT_URL": f"http://{host}:{port}",
                "AWS_ACCESS_KEY_ID": "tests",
                "AWS_SECRET_ACCESS_KEY": "do-not-show-me",
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true",
            }.items():
                monkeypatch.setenv(name, value)
            place = {"endpoint_override": f"{host}:{port}", "scheme": "http", "request_timeout": 60}
            fs.S3FileSystem(**place, allow_bucket_creation=True).create_dir(BUCKET)
            yield f"s3://{BUCKET}"
        finally:
            server.kill()
