"""The generator of planted faults: in one place, the same each time, enough for each role."""

import pytest
from support.icrc72.canister_mutants import EXAMPLES, ROLES, RUST, mutants, mutants_of


@pytest.mark.parametrize("role", ROLES)
def test_each_role_has_sixty_different_mutants(role: str) -> None:
    found = mutants_of(role)
    assert len({each.source for each in found}) == len(found) >= 60
    assert found == mutants_of(role)


def test_a_mutant_differs_in_one_line_of_code() -> None:
    for each in mutants_of("subscriber"):
        folder = EXAMPLES / "motoko"
        honest = (folder / each.file).read_text(encoding="utf-8").split("\n")
        changed = each.source.split("\n")
        assert len(changed) == len(honest)
        different = [at for at, line in enumerate(changed, 1) if line != honest[at - 1]]
        assert different == [each.line]
        assert not honest[each.line - 1].lstrip().startswith(("//", "import "))


def test_the_example_in_rust_has_mutants_too() -> None:
    found = mutants_of("subscriber", rust=True)
    assert {each.file for each in found} == {RUST}
    assert len(found) >= 15


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("  if (a <= b) return;", ["  if (a < b) return;", "  if (not (a <= b)) return;"]),
        ("  x := 1;", ["  x := 2;", ""]),
        ('  f("a <= 1", "icrc72:x");', ['  f("a <= 1", "icrc72:xx");', ""]),
        ("  // a <= b", []),
        ("  g(?who)", []),
        ("  g(1, ?who)", ["  g(2, ?who)"]),
    ],
)
def test_such_a_line_has_these_mutants(line: str, changed: list[str]) -> None:
    assert [each.source for each in mutants("x.mo", line)] == changed
