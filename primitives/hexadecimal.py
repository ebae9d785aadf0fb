"""Bytes as people and JSON write them."""


def hexed(data: bytes) -> str:
    """`0x` and two digits for each byte."""
    return f"0x{data.hex()}"


def unhex(text: str) -> bytes:
    """The bytes of hex, with or without its prefix. Raises `ValueError`."""
    return bytes.fromhex(text.removeprefix("0x"))


def shortened(data: bytes, most: int) -> str:
    """As `hexed`; of more than `most` bytes the first ones and how many there are."""
    return hexed(data) if len(data) <= most else f"{hexed(data[:most])}… ({len(data)} bytes)"
