"""A quick check whether a Spark master answers.

Spark itself would try for a minute or without end, and then write a page of Java.
"""

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from pubsub_emulator.spark_audit.engine.engine import EngineLost

CONNECT_SECONDS: Final = 12
"""Seconds for all addresses of a master together."""
_YARN_FOLDERS: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Variables of the environment that name folders with YARN's configuration."""
_YARN_FILES: Final = ("core-site.xml", "yarn-site.xml")
_YARN: Final = "yarn.resourcemanager"
_YARN_PORT: Final = 8032
_YARN_HOST: Final = "0.0.0.0"  # noqa: S104  # YARN's own default, nothing is bound to it
"""YARN's default."""
_HTTPS: Final = 443
_STREAM_REQUEST, _STREAM_RESPONSE, _STREAM_FAILURE = 6, 7, 8
_FRAME_HEAD: Final = 9
"""Bytes of the head of a frame: its length and its type."""
_MOST_ANSWER: Final = 1024
"""Bytes of an answer that are read."""
_VARIABLE: Final = re.compile(r"\$\{([^}]+)\}")


class SparkUnavailable(EngineLost):
    """A Spark context could not be started, or was lost. The message says why."""


def check_master(master: str) -> None:
    """Raise `SparkUnavailable` if a master does not answer, or YARN is not configured."""
    if master.startswith("spark://"):
        _reach(
            "Spark master", master, master.removeprefix("spark://").split(","), speaks_spark=True
        )
    elif master.startswith("k8s://"):
        _reach("Kubernetes", master, [_api(master)])
    elif master == "yarn":
        folders = [Path(folder) for name in _YARN_FOLDERS if (folder := os.environ.get(name))]
        if not folders:
            raise SparkUnavailable(
                f"no YARN is configured: neither {' nor '.join(_YARN_FOLDERS)} is set"
            )
        _reach("resource manager", master, _resource_managers(_settings(folders)))


def _reach(what: str, master: str, places: list[str], *, speaks_spark: bool = False) -> None:
    """Raise `SparkUnavailable` unless a server answers at one of the places.

    With `speaks_spark`, it must also answer in Spark's protocol.
    """
    problems = []
    seconds = CONNECT_SECONDS / len(places)
    for place in places:
        host, _, port = place.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=seconds) as found:
                if not speaks_spark or _speaks_spark(found):
                    return
                problems.append(f"{place}: what answers there is no Spark master")
        except TimeoutError:
            problems.append(f"{place}: no answer in {seconds:g} seconds")
        except (OSError, ValueError, OverflowError) as error:
            problems.append(f"{place}: {getattr(error, 'strerror', None) or error}")
    raise SparkUnavailable(f"no {what} answers at {master}: {'; '.join(problems)}")


def _api(master: str) -> str:
    """Return host and port of a Kubernetes API. The default port is that of https."""
    url = master.removeprefix("k8s://")
    parts = urlsplit(url if "://" in url else f"https://{url}")
    try:
        port = parts.port or (80 if parts.scheme == "http" else _HTTPS)
    except ValueError:
        port = 0
    return f"{parts.hostname or ''}:{port}"


def _settings(folders: list[Path]) -> dict[str, str]:
    """Return the settings in YARN's configuration files.

    Raises `SparkUnavailable` if one of them cannot be read.
    """
    found: dict[str, str] = {}
    for path in (folder / name for folder in folders for name in _YARN_FILES):
        try:
            for each in ET.parse(path).getroot().iter("property"):  # noqa: S314  # the user's own configuration
                found[(each.findtext("name") or "").strip()] = (
                    each.findtext("value") or ""
                ).strip()
        except FileNotFoundError:
            continue
        except (ET.ParseError, OSError) as error:
            raise SparkUnavailable(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return found


def _resource_managers(settings: Mapping[str, str]) -> list[str]:
    """Return host and port of each resource manager, by the same rules as YARN."""

    def of(end: str) -> str:
        host = (
            settings.get(f"{_YARN}.hostname{end}")
            or settings.get(f"{_YARN}.hostname")
            or _YARN_HOST
        )
        place = settings.get(f"{_YARN}.address{end}") or host
        place = _VARIABLE.sub(lambda name: settings.get(name[1], host), place)
        return place if place.rpartition(":")[2].isdecimal() else f"{place}:{_YARN_PORT}"

    ids = [
        each.strip() for each in settings.get(f"{_YARN}.ha.rm-ids", "").split(",") if each.strip()
    ]
    several = settings.get(f"{_YARN}.ha.enabled", "").lower() == "true"
    return [of(f".{each}") for each in ids] if several and ids else [of("")]


def _speaks_spark(found: socket.socket) -> bool:
    """Return whether a server answers in the frames of Spark's protocol.

    It is asked for a file that does not exist. A Spark master answers with a failure, or closes the
    connection. Raises `OSError`.
    """
    name = b"/files/pubsub"
    body = bytes([_STREAM_REQUEST]) + len(name).to_bytes(4, "big") + name
    found.sendall((8 + len(body)).to_bytes(8, "big") + body)
    answer = b""
    size = _FRAME_HEAD
    try:
        while len(answer) < size and (more := found.recv(size - len(answer))):
            answer += more
            # The answer is read to its end, because a master logs an error if the connection closes
            # earlier.
            if len(answer) >= _FRAME_HEAD:
                size = min(int.from_bytes(answer[:8], "big"), _MOST_ANSWER)
                if answer[8] not in {_STREAM_RESPONSE, _STREAM_FAILURE}:
                    return False
    except ConnectionResetError:
        return True
    return not answer or len(answer) >= _FRAME_HEAD
