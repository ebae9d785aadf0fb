"""Who may connect: a browser page from elsewhere must not reach a node on this machine (ND-28)."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from pubsub_emulator.node.server.options import Options

APPS: Final = "https://polkadot.js.org"


def is_loopback(name: str) -> bool:
    """Whether a host name means this machine."""
    if name.lower() == "localhost" or name.lower().endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def origin_allowed(origin: str | None, options: Options) -> bool:
    """Whether a page of that origin may call; programs have none."""
    if origin is None or origin == APPS or origin in options.origins or "*" in options.origins:
        return True
    try:
        host = urlsplit(origin).hostname
    except ValueError:
        return False
    return host is not None and is_loopback(host)


def host_allowed(host: str | None, options: Options) -> bool:
    """Whether the `Host` of a request is a name of this node: a page cannot rebind its own name to it."""
    if host is None:
        return False
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    if name is None:
        return False
    if is_loopback(name) or name == options.host.lower():
        return True
    return options.external and _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
