"""Pages have what the code has: tables, rules that can be changed, rooms and modules, and the
worked cases.
"""

import re
from importlib.util import find_spec

import pytest
from support.plumbing.pages import ROOT, filled

from pubsub_emulator.emulator.fixtures import Fixture, read_fixture, replay_fixture
from pubsub_emulator.runtime.parachain.block import Verdict
from pubsub_emulator.runtime.rules import SEAMS
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES
from pubsub_emulator.spark_audit.judge.results import RESULT_TABLES


def test_the_page_shows_every_column_in_the_words_of_the_schema() -> None:
    page = filled("tables.md")
    for table in (*HISTORY_TABLES.values(), *RESULT_TABLES.values()):
        section = page.partition(f"### `{table.name}`, version {table.version}\n")[2].partition(
            "\n### "
        )[0]
        assert section.strip().startswith(table.doc)
        for column in table.columns:
            assert f"`{column.name}`" in section
            assert f"`{column.name}`" in section or f"| `{column.name}` | {column.doc} |" in page


RULES = (ROOT / "docs/howto/change-a-rule.md").read_text(encoding="utf-8")


def test_the_table_has_every_rule_with_its_arguments_and_no_other() -> None:
    section = RULES.partition("## Further: the rules\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
    shown = {row[0].strip("| `"): row[1].strip("`") for row in rows}
    assert shown == {name: seam.arguments for name, seam in SEAMS.items()}


def test_every_example_has_a_section() -> None:
    for path in sorted((ROOT / "examples/rules").glob("*.py")):
        assert f"### `{path.name}`" in RULES


TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGES = ("pubsub_emulator", "interchain_events")
ROOMS = sorted(
    path.name
    for package in PACKAGES
    for path in (ROOT / package).iterdir()
    if (path / "__init__.py").is_file()
)
DOTTED = sorted(
    set(re.findall(rf"(?<![\w./])(?:{'|'.join(ROOMS)})(?:\.(?!md\b)[a-z_]+)+\b(?!/)", TEXT))
)
FOLDERS = sorted(set(re.findall(rf"`((?:{'|'.join(ROOMS)})/[\w/.]*)`", TEXT)))


@pytest.mark.parametrize("name", DOTTED)
def test_each_dotted_module_of_the_page_exists(name: str) -> None:
    room = name.partition(".")[0]
    (package,) = [each for each in PACKAGES if (ROOT / each / room).is_dir()][:1]
    assert find_spec(f"{package}.{name}") is not None


@pytest.mark.parametrize("name", FOLDERS)
def test_each_folder_and_file_of_the_page_exists(name: str) -> None:
    assert any((ROOT / package / name).exists() for package in PACKAGES)


def test_the_page_names_modules_and_every_room() -> None:
    assert len(DOTTED) > 8
    assert {f"{room}/" for room in ROOMS} <= set(FOLDERS)


def test_each_verdict_has_a_case_of_its_own_and_the_page_agrees() -> None:
    fixtures = [
        read_fixture(file)
        for file in sorted((ROOT / "tests" / "vectors" / "worked").glob("*.json"))
    ]
    refused = [
        [each.verdict for each in fixture.expected.evidence]
        for fixture in fixtures
        if fixture.expected.evidence
    ]
    assert sorted(refused) == sorted([verdict.value] for verdict in Verdict)
    assert len(fixtures) - len(refused) == 7
    page = filled("fixtures.md")
    for fixture in fixtures:
        assert replay_fixture(fixture) == [], fixture.name
        assert _ends(fixture) in page.partition(f". {fixture.name}\n")[2].partition("\n### ")[0]


def _ends(fixture: Fixture) -> str:
    expected = fixture.expected
    if expected.verdict is not None:
        return f"Verdict: `{expected.verdict}`"
    return f"The walk used {expected.used:,} bytes; "
