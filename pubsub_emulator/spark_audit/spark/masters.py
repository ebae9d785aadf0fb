"""A quick check whether a Spark master answers, by opening a connection to it.

Spark itself would try for a minute or longer, and then print a page of Java errors.
"""

import os
import socket
from typing import Final
from urllib.parse import urlsplit

from pubsub_emulator.spark_audit.engine.engine import EngineLost

CONNECT_SECONDS: Final = 12
"""Seconds to wait for all addresses of a master together."""
_YARN_FOLDERS: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Variables of the environment that name folders with YARN's configuration."""
_HTTPS: Final = 443


class SparkUnavailable(EngineLost):
    """A Spark context could not be started, or was lost."""


def check_master(master: str) -> None:
    """Raise `SparkUnavailable` if a master does not answer, or YARN is not configured.

    YARN's own client finds the resource manager; `context` limits the time that it takes.
    """
    if master.startswith("spark://"):
        _reach("Spark master", master, master.removeprefix("spark://").split(","))
    elif master.startswith("k8s://"):
        _reach("Kubernetes", master, [_api(master)])
    elif master == "yarn" and not any(map(os.environ.get, _YARN_FOLDERS)):
        raise SparkUnavailable(
            f"no YARN is configured: neither {' nor '.join(_YARN_FOLDERS)} is set"
        )


def _reach(server: str, master: str, addresses: list[str]) -> None:
    """Raise `SparkUnavailable` unless a server accepts connections at one of the addresses.

    `server` and `master` name it in the message.
    """
    problems = []
    seconds = CONNECT_SECONDS / len(addresses)
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
        except TimeoutError:
            problems.append(f"{address}: no answer in {seconds:g} seconds")
        except (OSError, ValueError, OverflowError) as error:
            problems.append(f"{address}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    raise SparkUnavailable(f"no {server} answers at {master}: {'; '.join(problems)}")


def _api(master: str) -> str:
    """Return host and port of a Kubernetes API. The default port is that of https."""
    url = master.removeprefix("k8s://")
    parts = urlsplit(url if "://" in url else f"https://{url}")
    try:
        port = parts.port or (80 if parts.scheme == "http" else _HTTPS)
    except ValueError:
        # The connection to this port fails, and the error names the address.
        port = 0
    return f"{parts.hostname or ''}:{port}"
