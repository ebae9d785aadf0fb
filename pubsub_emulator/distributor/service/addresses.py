"""Which addresses may be connected to: judged when a connection is made, by the address connected to (ID-42)."""

import ipaddress
import re
import socket
from typing import Any, Final

import aiohttp
from yarl import URL

MOST_URL: Final = 2048
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_QUAD: Final = re.compile(r"(0|[1-9][0-9]{0,2})(\.(0|[1-9][0-9]{0,2})){3}", re.ASCII)
_UNICAST: Final = ipaddress.ip_network("2000::/3")
"""All IPv6 addresses that are global; 64:ff9b:1::/48 and fec0::/10, for example, are local ones outside of it."""

NOT_PUBLIC: Final = (
    "is a private, loopback, link-local or multicast address; private_endpoints = true in the settings allows those"
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class RefusedAddressError(OSError):
    """An address that must not be connected to."""


def is_public(text: str) -> bool:
    """Whether an address is neither private, loopback, link-local, multicast nor otherwise special."""
    address: Address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is None and address not in _UNICAST:
            return False
        address = inner or address
    return address.is_global and not address.is_multicast


def check_endpoint(text: object, *, private: bool) -> str:
    """Check the text of a URL that is to be notified, and return it. Raises `ValueError`."""
    if not isinstance(text, str) or not 1 <= len(text) <= MOST_URL:
        raise ValueError(f"a URL of at most {MOST_URL} characters is needed")
    try:
        url = URL(text)
        port = url.port
    except ValueError as error:
        raise ValueError(f"not a URL: {error}") from None
    if url.scheme not in {"http", "https"} or not url.host or not port:
        raise ValueError("an http or https URL with a host is needed")
    if url.user is not None or url.password is not None or url.raw_fragment:
        raise ValueError("no user, password or fragment is allowed")
    if not text.isascii() or any(ord(each) <= 32 for each in text):
        raise ValueError("only printable ASCII is allowed")
    if url.host.replace(".", "").isdigit() and not _QUAD.fullmatch(url.host):
        raise ValueError(f"{url.host} is neither a name nor an address of four numbers")
    try:
        public = is_public(url.host)
    except ValueError:  # another name is judged when it is connected to
        public = url.host != "localhost" and not url.host.endswith(".localhost")
    if not public and not private:
        raise ValueError(f"{url.host} {NOT_PUBLIC}")
    return text


def guarded_connector(*, private: bool) -> aiohttp.TCPConnector:
    """A connector that refuses to connect to addresses that are not public, whatever name they were resolved from."""

    def make_socket(info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        if not private and not is_public(str(address[0])):
            raise RefusedAddressError(f"{address[0]} {NOT_PUBLIC}")
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made

    return aiohttp.TCPConnector(socket_factory=make_socket, ttl_dns_cache=10)
