"""Interface descriptions: every form that a `.did` file may have, and where a text that is none
ends (IC-10).
"""

from typing import Any, NamedTuple

import pytest

from interchain_events.icrc72.ic.candid import types as t
from interchain_events.icrc72.ic.candid.did import parse, parse_types
from interchain_events.icrc72.ic.errors import DidError


def shape(type_: t.Type) -> Any:
    """A type as nested tuples; names stay names."""
    match type_:
        case t.Prim() | t.Named():
            return type_.name
        case t.Opt():
            return ("opt", shape(type_.inner))
        case t.Vec():
            return ("vec", shape(type_.inner))
        case t.Record():
            return ("record", *((each.id, each.name, shape(each.type)) for each in type_.fields))
        case t.Cases():
            return ("variant", *((each.id, each.name, shape(each.type)) for each in type_.fields))
        case t.Reference():
            return ("reference", type_.kind)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("()", []),
        ("(nat)", ["nat"]),
        ("(nat, opt text)", ["nat", ("opt", "text")]),
        ("(amount : nat, vec principal,)", ["nat", ("vec", "principal")]),
        ("(blob, first : blob, second : Other)", [("vec", "nat8"), ("vec", "nat8"), "Other"]),
        ("(record {})", [("record",)]),
        ("(record { nat; text })", [("record", (0, "0", "nat"), (1, "1", "text"))]),
        (
            "(record { 7 : nat; text; 0x_1f : bool; })",
            [("record", (7, "7", "nat"), (8, "8", "text"), (31, "31", "bool"))],
        ),
        ("(record { 1_0 : nat })", [("record", (10, "10", "nat"))]),
        ("(record { a : nat; text })", [("record", (97, "a", "nat"), (98, "98", "text"))]),
        (
            '(record { "a" : nat; "\\"b\\\\" : text })',
            [("record", (97, "a", "nat"), (t.hash_of('"b\\'), '"b\\', "text"))],
        ),
        ("(variant { a; b : nat })", [("variant", (97, "a", "null"), (98, "b", "nat"))]),
        ("(variant { a })", [("variant", (97, "a", "null"))]),
        ("(variant { 5; 6 : text; })", [("variant", (5, "5", "null"), (6, "6", "text"))]),
        ("(func (nat) -> (text) query, nat)", [("reference", "func"), "nat"]),
        ("(func () -> () oneway)", [("reference", "func")]),
        ("(func () -> ())", [("reference", "func")]),
        ("(service { go : (nat) -> () composite_query; })", [("reference", "service")]),
        ("( /* a\nb */ nat // c\n , text)", ["nat", "text"]),
    ],
)
def test_ic_10_types_are_read_in_every_form(text: str, shapes: list[Any]) -> None:
    assert [shape(each) for each in parse_types(text)] == shapes


def test_ic_10_the_id_of_a_name_is_its_hash() -> None:
    assert (t.hash_of(""), t.hash_of("a"), t.hash_of("ab")) == (0, 97, 97 * 223 + 98)
    assert (
        t.hash_of("timestamp")
        == sum(ord(c) * 223 ** (8 - at) for at, c in enumerate("timestamp")) % 2**32
    )
    assert t.hash_of("\u00e9") == 0xC3 * 223 + 0xA9


class Point(NamedTuple):
    x: int
    y: int


FILE = """
type Point = record { x : nat; y : nat };
type Other = Point;  // an alias
service counter : {
  get : () -> (Point) query;
  "set it" : (Point, nat) -> ();
  tell : (text) -> () oneway;
  all : () -> (vec Other) composite_query
}
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            FILE,
            id="as written",
        ),
        pytest.param(
            FILE.replace("counter ", ""),
            id="without its name",
        ),
        pytest.param(
            FILE.replace("\n}\n", ";\n};\n"),
            id="with semicolons",
        ),
    ],
)
def test_ic_10_a_file_has_types_and_the_methods_of_one_service(text: str) -> None:
    found = parse(text, {"Point": lambda fields: Point(*fields)})
    assert {name: shape(each) for name, each in found.types.items()} == {
        "Point": ("record", (120, "x", "nat"), (121, "y", "nat")),
        "Other": "Point",
    }
    point = t.resolved(found.types["Other"])
    assert isinstance(point, t.Record)
    assert point.make is not None
    assert point.make((1, 2)) == Point(1, 2)
    methods = {
        name: (
            [shape(each) for each in method.arguments],
            [shape(each) for each in method.results],
            method.mode,
        )
        for name, method in found.methods.items()
    }
    assert methods == {
        "get": ([], ["Point"], "query"),
        "set it": (["Point", "nat"], [], "update"),
        "tell": (["text"], [], "oneway"),
        "all": ([], [("vec", "Other")], "composite_query"),
    }
    assert [method.name for method in found.methods.values()] == list(methods)


def test_ic_10_a_file_may_lack_a_service_and_a_type_may_recurse() -> None:
    found = parse("type List = opt record { nat; List }")
    assert found.methods == {}
    again = found.types["List"]
    assert isinstance(again, t.Opt)
    assert isinstance(again.inner, t.Record)
    assert t.resolved(again.inner.fields[1].type) is again
    (named,) = parse_types("(List)", found.types)
    assert t.resolved(named) is again


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("type A = nat;\nnat", "line 2: `type` or `service` was expected, not 'nat'"),
        ("type A nat", "line 1: '=' was expected, not 'nat'"),
        ("type = nat", "line 1: a name was expected, not '='"),
        ("type A =", "the text ends where a name was expected"),
        ("type A = record {\n x nat }", "line 2: ';' was expected, not 'nat'"),
        ("type A = record { x : nat; x : text }", "two fields of one type have the same id: x, x"),
        (
            "type A = record { x : nat; 120 : text }",
            "two fields of one type have the same id: x, 120",
        ),
        ("service : { go : (nat) }", "line 1: '->' was expected, not '}'"),
        ("service : { go (nat) -> () }", "line 1: ':' was expected, not '('"),
        ("\n\n  type A = @", "line 3: '@' cannot be in an interface description"),
        ("/* a\n b */ type A = 5", "line 2: a name was expected, not '5'"),
    ],
)
def test_ic_10_a_text_that_is_no_interface_is_refused_where_it_goes_wrong(
    text: str, message: str
) -> None:
    with pytest.raises(DidError) as refused:
        parse(text)
    assert str(refused.value) == message


@pytest.mark.parametrize("text", ["nat", "(nat", "(nat text)", "(nat) text", "", "(,)"])
def test_ic_10_a_list_of_types_has_parentheses_and_commas_and_an_end(text: str) -> None:
    with pytest.raises(DidError):
        parse_types(text)


@pytest.mark.parametrize("definitions", ["type A = B", "type A = A", "type A = B; type B = A"])
def test_a_name_that_leads_to_no_type_is_refused(definitions: str) -> None:
    found = parse(definitions).types
    with pytest.raises(DidError, match="is not defined"):
        t.resolved(found["A"])
