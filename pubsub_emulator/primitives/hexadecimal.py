"""Bytes as hexadecimal text, for people and JSON."""


def hexed(data: bytes) -> str:
    """`data` as hex digits with the prefix `0x`."""
    return f"0x{data.hex()}"


def unhex(text: str) -> bytes:
    """The bytes of hex `text`, with or without the prefix `0x`. Raises `ValueError`."""
    return bytes.fromhex(text.removeprefix("0x"))


def shortened(data: bytes, most: int) -> str:
    """As `hexed`, cut after `most` bytes. The total length follows if something was cut."""
    return hexed(data) if len(data) <= most else f"{hexed(data[:most])}… ({len(data)} bytes)"
