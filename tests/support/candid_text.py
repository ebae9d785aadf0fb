"""Values in Candid's text form, as the conformance suite writes them: read here only to compare."""

import re
import struct
from typing import Any

from pubsub_emulator.icrc72.ic.candid.types import (
    Cases,
    Opt,
    Prim,
    Record,
    Type,
    Variant,
    Vec,
    hash_of,
    is_blob,
    may_be_null,
    resolved,
)
from pubsub_emulator.icrc72.ic.principal import Principal

_TOKEN = re.compile(r'\s+|"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z0-9_]*|[+-]?[0-9][0-9_a-fA-Fx.+-]*|[{}();=:,]')


def values(text: str, types: tuple[Type, ...]) -> tuple[Any, ...]:
    """The values of `text` as Python values of the types; missing ones are null."""
    tree = _Parser(text).top()
    return tuple(_typed(type_, tree[at] if at < len(tree) else None) for at, type_ in enumerate(types))


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = [t for t in _TOKEN.findall(text) if not t.isspace()]
        self.at = 0

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def peek(self) -> str:
        return self.tokens[self.at]

    def top(self) -> list[Any]:
        assert self.next() == "("
        found = []
        while self.peek() != ")":
            found.append(self.value())
            if self.peek() == ",":
                self.next()
        return found

    def value(self) -> Any:
        word = self.next()
        found: Any
        if word == "opt":
            found = ("opt", self.value())
        elif word == "vec":
            found = ("vec", [v for _, v in self.fields()])
        elif word in {"record", "variant"}:
            found = (word, self.fields(null_alone=word == "variant"))
        elif word in {"blob", "principal"}:
            found = (word, unescaped(self.next()))
        elif word == "null":
            found = None
        elif word in {"true", "false"}:
            found = word == "true"
        elif word.startswith('"'):
            found = unescaped(word)
        else:
            found = ("number", word)
        if self.at < len(self.tokens) and self.peek() == ":":
            self.next()
            self.next()
        return found

    def fields(self, *, null_alone: bool = False) -> list[tuple[int, Any]]:
        assert self.next() == "{"
        found: list[tuple[int, Any]] = []
        follows = 0
        while self.peek() != "}":
            after = self.tokens[self.at + 1]
            if after == "=" or null_alone:
                label = self.next()
                identity = int(label) if label.isdigit() else hash_of(_name(label))
                inside = None
                if self.peek() == "=":
                    self.next()
                    inside = self.value()
            else:
                identity, inside = follows, self.value()
            follows = identity + 1
            found.append((identity, inside))
            if self.peek() == ";":
                self.next()
        self.next()
        return found


def _name(label: str) -> str:
    return unescaped(label).decode() if label.startswith('"') else label


def unescaped(quoted: str) -> bytes:
    raw = quoted[1:-1].encode()
    simple = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}
    return re.sub(
        rb"\\(u\{[0-9a-fA-F]+\}|[0-9a-fA-F]{2}|.)",
        lambda m: (
            chr(int(m[1][2:-1], 16)).encode()
            if m[1].startswith(b"u{")
            else bytes.fromhex(m[1].decode())
            if len(m[1]) == 2
            else simple.get(m[1], m[1])
        ),
        raw,
    )


def _typed(type_: Type, tree: Any) -> Any:
    type_ = resolved(type_)
    if isinstance(type_, Prim):
        return _primitive(type_.name, tree)
    if isinstance(type_, Opt):
        wrapped = may_be_null(type_.inner)
        if tree is None:
            return () if wrapped else None
        value = _typed(type_.inner, tree[1])
        return (value,) if wrapped else value
    if is_blob(type_):
        return bytes(int(v[1]) for v in tree[1]) if tree[0] == "vec" else tree[1]
    if isinstance(type_, Vec):
        return tuple(_typed(type_.inner, each) for each in tree[1])
    if isinstance(type_, Record):
        has = dict(tree[1])
        return tuple(_typed(each.type, has.get(each.id)) for each in type_.fields)
    assert isinstance(type_, Cases)
    ((identity, inside),) = tree[1]
    case = next(each for each in type_.fields if each.id == identity)
    return Variant(case.name, _typed(case.type, inside))


def _primitive(name: str, tree: Any) -> Any:
    if name in {"null", "reserved"}:
        return None
    if name == "text":
        return tree.decode()
    if name == "principal":
        return Principal.from_text(tree[1].decode())
    if name == "bool":
        return tree
    number = tree[1].replace("_", "")
    if name.startswith("float"):
        return struct.pack("<f" if name == "float32" else "<d", float(number))
    return int(number, 0)
