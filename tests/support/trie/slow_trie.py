"""A second trie: a dictionary, with a simple recursive function for each question.

It shares no code with the first one except the hash function in `hashlib`. Every call goes through
the whole trie.
"""

from dataclasses import dataclass, field
from hashlib import blake2b

Nibbles = tuple[int, ...]


def blake2(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


def to_nibbles(key: bytes) -> Nibbles:
    return tuple(nibble for byte in key for nibble in divmod(byte, 16))


def compact(number: int) -> bytes:
    for bits, size in ((6, 1), (14, 2), (30, 4)):
        if number < 2**bits:
            return (number * 4 + {1: 0, 2: 1, 4: 2}[size]).to_bytes(size, "little")
    raise ValueError(number)


class Kept(bytes):
    """A value that was written in layout version 0, and so stays in its node at any length."""


@dataclass
class Tree:
    partial: Nibbles
    value: bytes | None
    children: dict[int, "Tree"] = field(default_factory=dict)


def plant(entries: dict[Nibbles, bytes]) -> Tree | None:
    """Return the trie of entries. Their keys lack the nibbles above the parent."""
    if not entries:
        return None
    shared = 0
    first = next(iter(entries))
    while shared < len(first) and all(key[: shared + 1] == first[: shared + 1] for key in entries):
        shared += 1
    tree = Tree(first[:shared], entries.get(first[:shared]))
    for nibble in range(16):
        below = {
            key[shared + 1 :]: value
            for key, value in entries.items()
            if len(key) > shared and key[shared] == nibble
        }
        child = plant(below)
        if child is not None:
            tree.children[nibble] = child
    return tree


def header(tree: Tree, detached: bool) -> bytes:
    """Return a node's header: a prefix of its kind, and the number of nibbles of its partial key.

    The prefix has the highest `bits` bits of the first byte. A number that does not fit into the
    rest of that byte continues in further bytes, whose sum is added.
    """
    if tree.children and tree.value is None:
        prefix, bits = 0b10, 2
    elif tree.children and detached:
        prefix, bits = 0b0001, 4
    elif tree.children:
        prefix, bits = 0b11, 2
    elif detached:
        prefix, bits = 0b001, 3
    else:
        prefix, bits = 0b01, 2
    room = 2 ** (8 - bits) - 1
    count = len(tree.partial)
    if count < room:
        return bytes([prefix << (8 - bits) | count])
    out = bytes([prefix << (8 - bits) | room])
    count -= room
    while count >= 255:
        out += b"\xff"
        count -= 255
    return out + bytes([count])


def is_detached(tree: Tree, version: int) -> bool:
    if tree.value is None or isinstance(tree.value, Kept):
        return False
    return version == 1 and len(tree.value) >= 33


def encode(tree: Tree | None, version: int) -> bytes:
    if tree is None:
        return b"\x00"
    detached = is_detached(tree, version)
    digits = tree.partial if len(tree.partial) % 2 == 0 else (0, *tree.partial)
    out = header(tree, detached) + bytes(
        high * 16 + low for high, low in zip(digits[::2], digits[1::2], strict=True)
    )
    if tree.children:
        out += sum(2**nibble for nibble in tree.children).to_bytes(2, "little")
    if tree.value is not None:
        out += blake2(tree.value) if detached else compact(len(tree.value)) + tree.value
    for nibble in sorted(tree.children):
        child = encode(tree.children[nibble], version)
        reference = child if len(child) < 32 else blake2(child)
        out += compact(len(reference)) + reference
    return out


def root(entries: dict[bytes, bytes], version: int) -> bytes:
    return blake2(
        encode(plant({to_nibbles(key): value for key, value in entries.items()}), version)
    )


def touched(tree: Tree | None, key: Nibbles, version: int, *, is_root: bool = True) -> set[bytes]:
    """Return the nodes and detached values that reading `key` touches."""
    encoded = encode(tree, version)
    out = {encoded} if is_root or len(encoded) >= 32 else set()
    if tree is None or key[: len(tree.partial)] != tree.partial:
        return out
    rest = key[len(tree.partial) :]
    if not rest:
        if is_detached(tree, version) and tree.value is not None:
            out.add(tree.value)
    elif rest[0] in tree.children:
        out |= touched(tree.children[rest[0]], rest[1:], version, is_root=False)
    return out


def proof(entries: dict[bytes, bytes], keys: list[bytes], version: int) -> set[bytes]:
    tree = plant({to_nibbles(key): value for key, value in entries.items()})
    return set().union(*(touched(tree, to_nibbles(key), version) for key in keys))
