from pubsub_emulator.emulator.scenario import PublisherGroup, Scenario, Span, published_key
from pubsub_emulator.emulator.scenario.traffic import deletions, message, publications
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber

PARA = ParaId(1000)


def _scenario(**fields: object) -> tuple[Scenario, PublisherGroup]:
    group = PublisherGroup.model_validate({"paras": [1000], "keys": 10, "fill_per_block": 4, **fields})
    return Scenario(name="t", seed="t", relay_blocks=10, publishers=(group,)), group


def _keys(block: int, **fields: object) -> list[bytes]:
    scenario, group = _scenario(**fields)
    return [each.key for each in publications(scenario, group, PARA, RelayBlockNumber(block))]


def test_keys_are_filled_in_order_from_the_first_block_on() -> None:
    assert _keys(1, first_block=2) == []
    assert [len(_keys(block, first_block=2)) for block in (2, 3, 4, 5)] == [4, 4, 2, 0]
    assert _keys(3, first_block=2) == [published_key(PARA, index) for index in (4, 5, 6, 7)]


def test_only_what_was_published_is_updated_and_nothing_after_the_last_block() -> None:
    assert _keys(1, update_rate=1.0) == [published_key(PARA, index) for index in range(4)]
    assert len(_keys(9, update_rate=1.0)) == 10
    assert _keys(9, update_rate=1.0, last_block=8) == []


def test_values_and_lifetimes_are_within_bounds() -> None:
    scenario, group = _scenario(update_rate=1.0, value_size={"min": 3, "max": 5}, ttl=[7, 9])
    sent = publications(scenario, group, PARA, RelayBlockNumber(5))
    assert {len(each.value) for each in sent} <= {3, 4, 5}
    assert {each.ttl for each in sent} == {7, 9}
    assert group.sizes() == Span(min=3, max=5)


def test_traffic_depends_on_scenario_and_block_alone() -> None:
    scenario, group = _scenario(update_rate=0.5)
    first = publications(scenario, group, PARA, RelayBlockNumber(6))
    publications(scenario, group, PARA, RelayBlockNumber(5))
    assert publications(scenario, group, PARA, RelayBlockNumber(6)) == first


def test_deletions_touch_published_keys_only() -> None:
    scenario, group = _scenario(delete_rate=1.0)
    assert deletions(scenario, group, PARA, RelayBlockNumber(1)) == []
    assert len(deletions(scenario, group, PARA, RelayBlockNumber(2))) == 4


def test_messages_have_the_size_asked_for() -> None:
    scenario, _ = _scenario()
    assert [len(message(scenario, "x", size)) for size in (0, 1, 32, 33)] == [0, 1, 32, 33]
