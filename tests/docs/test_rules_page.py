"""docs/howto/change-a-rule.md has every seam with its arguments, and a section for every example."""

from support.pages import ROOT

from pubsub_emulator.runtime.rules import SEAMS

PAGE = (ROOT / "docs/howto/change-a-rule.md").read_text(encoding="utf-8")


def test_the_table_has_every_rule_with_its_arguments_and_no_other() -> None:
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
    shown = {row[0].strip("| `"): row[1].strip("`") for row in rows}
    assert shown == {name: seam.arguments for name, seam in SEAMS.items()}


def test_every_example_has_a_section() -> None:
    for path in sorted((ROOT / "examples/rules").glob("*.py")):
        assert f"### `{path.name}`" in PAGE
