"""The addresses that the distributor may connect to for its subscribers (ID-42).

Clients choose the endpoints that are notified. They must not be able to make the distributor call
services in its own network. A name can resolve to a different address each time. So the address is
checked when a connection is made. The endpoint's text is also checked, but only to refuse obvious
mistakes early.
"""

import ipaddress
import re
import socket
from typing import Any, Final

import aiohttp
from yarl import URL

MOST_URL: Final = 2048
"""The greatest length of an endpoint's URL, in characters."""
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
"""IPv6 addresses whose last 32 bits are an IPv4 address."""
_QUAD: Final = re.compile(r"(0|[1-9][0-9]{0,2})(\.(0|[1-9][0-9]{0,2})){3}", re.ASCII)
"""An IPv4 address in its usual form. Other forms (`127.1`, `0177.0.0.1`) are read differently by
different libraries."""
_UNICAST: Final = ipaddress.ip_network("2000::/3")
"""The range of global IPv6 addresses. Some local ones that Python calls global are outside of it,
for example 64:ff9b:1::/48 and fec0::/10."""

NOT_PUBLIC: Final = (
    "is a private, loopback, link-local or multicast address; private_endpoints = true in the"
    " settings allows those"
)
"""The end of the message about a refused address."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class RefusedAddressError(OSError):
    """Raised if an address must not be connected to."""


def is_public(text: str) -> bool:
    """Return whether an address is a global unicast address.

    Private, loopback, link-local, multicast and other special addresses are not. For an IPv6
    address that stands for an IPv4 address, the latter counts. Raises `ValueError` if the text is
    not an address.
    """
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
    """Return the URL of an endpoint if it may be notified. Otherwise raises `ValueError`.

    `private` allows private addresses.
    """
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
    if not text.isascii() or any(ord(character) <= 32 for character in text):
        raise ValueError("only printable ASCII is allowed")
    if url.host.replace(".", "").isdigit() and not _QUAD.fullmatch(url.host):
        raise ValueError(f"{url.host} is neither a name nor an address of four numbers")
    try:
        public = is_public(url.host)
    except ValueError:
        # It is a name. Its address is checked when a connection is made.
        public = url.host != "localhost" and not url.host.endswith(".localhost")
    if not public and not private:
        raise ValueError(f"{url.host} {NOT_PUBLIC}")
    return text


def guarded_connector(*, private: bool) -> aiohttp.TCPConnector:
    """Return a connector that refuses addresses that are not public, unless `private` is true.

    It checks the resolved address of each connection, so a name cannot hide a private address.
    """

    def make_socket(info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        if not private and not is_public(str(address[0])):
            raise RefusedAddressError(f"{address[0]} {NOT_PUBLIC}")
        new = socket.socket(family, kind, protocol)
        new.setblocking(False)
        return new

    return aiohttp.TCPConnector(socket_factory=make_socket, ttl_dns_cache=10)
