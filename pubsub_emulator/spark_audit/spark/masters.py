"""Whether a master answers, before Spark tries for a minute or without end and then reports it in a page of Java."""

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
"""For all addresses of a master together."""
_YARN_FOLDERS: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_YARN_FILES: Final = ("core-site.xml", "yarn-site.xml")
_YARN: Final = "yarn.resourcemanager"
_YARN_PORT: Final = 8032
_YARN_HOST: Final = "0.0.0.0"  # noqa: S104  # YARN's own default, nothing is bound to it
_HTTPS: Final = 443
_STREAM_REQUEST, _STREAM_RESPONSE, _STREAM_FAILURE = 6, 7, 8
_FRAME_HEAD: Final = 9
_MOST_ANSWER: Final = 1024
_VARIABLE: Final = re.compile(r"\$\{([^}]+)\}")


class SparkUnavailable(EngineLost):
    """No context could be started, or it was lost; the message says why."""


def check_master(master: str) -> None:
    """Refuse a master that does not answer, and YARN without configuration. Raises `SparkUnavailable`."""
    if master.startswith("spark://"):
        _reach("Spark master", master, master.removeprefix("spark://").split(","), speaks_spark=True)
    elif master.startswith("k8s://"):
        _reach("Kubernetes", master, [_api(master)])
    elif master == "yarn":
        folders = [Path(folder) for name in _YARN_FOLDERS if (folder := os.environ.get(name))]
        if not folders:
            raise SparkUnavailable(f"no YARN is configured: neither {' nor '.join(_YARN_FOLDERS)} is set")
        _reach("resource manager", master, _resource_managers(_settings(folders)))


def _reach(what: str, master: str, places: list[str], *, speaks_spark: bool = False) -> None:
    """Raises `SparkUnavailable` unless something answers at one of the places, in Spark's frames if that is asked."""
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
    """Host and port of a Kubernetes API, by default that of https."""
    url = master.removeprefix("k8s://")
    parts = urlsplit(url if "://" in url else f"https://{url}")
    try:
        port = parts.port or (80 if parts.scheme == "http" else _HTTPS)
    except ValueError:
        port = 0
    return f"{parts.hostname or ''}:{port}"


def _settings(folders: list[Path]) -> dict[str, str]:
    """The settings in the files of YARN's configuration. Raises `SparkUnavailable` for one that cannot be read."""
    found: dict[str, str] = {}
    for path in (folder / name for folder in folders for name in _YARN_FILES):
        try:
            for each in ET.parse(path).getroot().iter("property"):  # noqa: S314  # the user's own configuration
                found[(each.findtext("name") or "").strip()] = (each.findtext("value") or "").strip()
        except FileNotFoundError:
            continue
        except (ET.ParseError, OSError) as error:
            raise SparkUnavailable(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return found


def _resource_managers(settings: Mapping[str, str]) -> list[str]:
    """Host and port of each resource manager, as YARN finds them itself."""

    def of(end: str) -> str:
        host = settings.get(f"{_YARN}.hostname{end}") or settings.get(f"{_YARN}.hostname") or _YARN_HOST
        place = settings.get(f"{_YARN}.address{end}") or host
        place = _VARIABLE.sub(lambda name: settings.get(name[1], host), place)
        return place if place.rpartition(":")[2].isdecimal() else f"{place}:{_YARN_PORT}"

    ids = [each.strip() for each in settings.get(f"{_YARN}.ha.rm-ids", "").split(",") if each.strip()]
    several = settings.get(f"{_YARN}.ha.enabled", "").lower() == "true"
    return [of(f".{each}") for each in ids] if several and ids else [of("")]


def _speaks_spark(found: socket.socket) -> bool:
    """Whether a server answers a request for a missing file in Spark's frames, or closes. Raises `OSError`."""
    name = b"/files/pubsub"
    body = bytes([_STREAM_REQUEST]) + len(name).to_bytes(4, "big") + name
    found.sendall((8 + len(body)).to_bytes(8, "big") + body)
    answer = b""
    size = _FRAME_HEAD
    try:
        while len(answer) < size and (more := found.recv(size - len(answer))):
            answer += more
            if len(answer) >= _FRAME_HEAD:  # a master whose answer is read to its end logs no error
                size = min(int.from_bytes(answer[:8], "big"), _MOST_ANSWER)
                if answer[8] not in {_STREAM_RESPONSE, _STREAM_FAILURE}:
                    return False
    except ConnectionResetError:
        return True
    return not answer or len(answer) >= _FRAME_HEAD
