"""Bytes as hexadecimal text, for people and JSON."""


def hexed(data: bytes) -> str:
    """Return `data` as hex digits with the prefix `0x`."""
    return f"0x{data.hex()}"


def unhex(text: str) -> bytes:
    """Return the bytes of hex `text`, with or without the prefix `0x`.

    Raises `ValueError`.
    """
    return bytes.fromhex(text.removeprefix("0x"))


def shortened(data: bytes, most: int) -> str:
    """Return `data` as `hexed` does, cut after `most` bytes.

    If it is cut, the total length follows.
    """
    return hexed(data) if len(data) <= most else f"{hexed(data[:most])}… ({len(data)} bytes)"
