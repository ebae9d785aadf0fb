"""The fixtures of the worked cases come out as they say, and the page's own verifier agrees and shows its steps."""

from support.pages import ROOT, filled

from pubsub_emulator.emulator.fixtures import Fixture, read_fixture, replay_fixture
from pubsub_emulator.runtime.parachain.block import Verdict


def test_there_is_one_case_for_each_verdict_which_is_all_that_is_wrong_with_it_and_the_page_judges_it_alike() -> None:
    fixtures = [read_fixture(file) for file in sorted((ROOT / "tests" / "vectors" / "worked").glob("*.json"))]
    refused = [
        [each.verdict for each in fixture.expected.evidence] for fixture in fixtures if fixture.expected.evidence
    ]
    assert sorted(refused) == sorted([verdict.value] for verdict in Verdict)
    assert len(fixtures) - len(refused) == 7
    page = filled("worked-cases.md")
    for fixture in fixtures:
        assert replay_fixture(fixture) == [], fixture.name
        assert _ends(fixture) in page.partition(f". {fixture.name}\n")[2].partition("\n## ")[0]


def _ends(fixture: Fixture) -> str:
    expected = fixture.expected
    if expected.verdict is not None:
        return f"Verdict: `{expected.verdict}`"
    return f"The walk used {expected.used:,} bytes; "
