"""`/metrics` and the pages: they say what the RPC says (ND-26, ND-27)."""

import re

from support.node.nodes import Client, Running, served

from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.explorer.live import LivePage
from pubsub_emulator.runtime.parachain.ledger import BlockLedger


async def metrics(node: Running) -> dict[str, float]:
    async with node.http.get(node.http_url() + "metrics") as response:
        assert response.content_type == "text/plain"
        text = await response.text()
    names = set()
    found = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert kind in {"counter", "gauge", "histogram"}
            assert name not in names
            names.add(name)
        else:
            series, _, value = line.rpartition(" ")
            assert re.fullmatch(r'[a-z_]+(\{([a-z_]+="[^"]*",?)+\})?', series), line
            found[series] = float(value)
    return found


def ledgers_of(node: Running) -> list[BlockLedger]:
    return [
        record.outcome.ledger
        for moment in node.server.timeline.moments()
        for record in moment.records
        if record.chain == 2000 and record.outcome is not None
    ]


@served(finality=1)
async def test_metrics_agree_with_what_the_methods_say(node: Running, client: Client) -> None:
    await client.call("pubsub_cheat", 2000, ["omit-node"])
    await node.step(5)
    await client.call("pubsub_publish", 1000, "short-lived", "0x01", 1)
    await node.step(2)
    found = await metrics(node)
    publishers = (await client.call("pubsub_publishers"))["publishers"]
    assert found['pubsub_keys_total{publisher="1000"}'] == publishers[0]["keys"]
    assert found['pubsub_stored_bytes{publisher="1000"}'] == publishers[0]["bytes"]
    assert found['pubsub_published_total{publisher="1000"}'] == 5
    best = await client.call("chain_getHeader")
    assert found['substrate_block_height{chain="relay",status="best"}'] == int(best["number"], 16)
    assert (
        found['substrate_block_height{chain="relay",status="finalized"}']
        == int(best["number"], 16) - 1
    )
    assert found['pubsub_verdicts_total{chain="2000",reason="OmittedBelowBudget"}'] >= 1
    assert found['pubsub_delivery_blocks_count{chain="2000"}'] == 4
    assert found['pubsub_delivery_blocks_bucket{chain="2000",le="+Inf"}'] == 4
    assert found['substrate_ready_transactions_number{chain="1000"}'] == 0
    assert found['substrate_rpc_calls_time_count{method="pubsub_cheat"}'] == 1
    ledgers = ledgers_of(node)
    assert found['pubsub_budget_bytes{chain="2000",reason="used"}'] == sum(
        each.used for each in ledgers
    )
    assert found['pubsub_proof_bytes{chain="2000",reason="static"}'] == sum(
        each.static_bytes for each in ledgers
    )
    key = (await client.call("pubsub_subscriptions", 2000))["items"][0]["keys"][0]["key"]
    assert not any(key[2:] in series for series in found)


@served()
async def test_an_unknown_method_makes_no_series_of_its_own(node: Running) -> None:
    for at in range(3):
        await node.post({"jsonrpc": "2.0", "id": 1, "method": f"made_up_{at}"})
    found = await metrics(node)
    assert found['substrate_rpc_calls_time_count{method="unknown"}'] == 3
    assert found['substrate_rpc_calls_finished{method="unknown",is_error="true"}'] == 3
    assert not any("made_up" in series for series in found)


@served(history=8)
async def test_kept_blocks_are_drawn_when_asked_and_a_rewind_shows(node: Running) -> None:
    node.server._pages = LivePage(load_bundled("node"))
    await node.step(12)
    await node.server.producer.rewind(node.server.timeline.moments()[-2])
    await node.step()
    async with node.http.get(node.http_url() + "explorer") as response:
        page = await response.text()
    assert page.count("<script") > 3
    async with node.http.get(node.http_url()) as response:
        assert "http" not in re.sub(r"\^http", "", await response.text())


@served()
async def test_metrics_tell_of_refusals_limits_queues_charges_and_the_cursor(
    node: Running, client: Client
) -> None:
    limits = node.server.live.network.config.relay.pubsub
    await client.call(
        "pubsub_publish", 1000, "too long", f"0x{bytes(limits.max_value_length + 1).hex()}"
    )
    await node.step(1)
    waiting = await metrics(node)
    assert waiting['pubsub_queued_messages_total{chain="1000"}'] == 1
    assert waiting['pubsub_queued_bytes{chain="1000"}'] > limits.max_value_length
    await node.step(6)
    found = await metrics(node)
    assert found['pubsub_queued_messages_total{chain="1000"}'] == 0
    assert found['pubsub_refused_total{publisher="1000",reason="Broadcaster::ValueTooLong"}'] == 1
    keys, size = (
        found['pubsub_keys_total{publisher="1000"}'],
        found['pubsub_stored_bytes{publisher="1000"}'],
    )
    assert (
        found['pubsub_limit_ratio{publisher="1000",reason="keys"}'] == keys / limits.max_stored_keys
    )
    assert (
        found['pubsub_limit_ratio{publisher="1000",reason="bytes"}']
        == size / limits.max_total_storage_size
    )
    ledgers = ledgers_of(node)
    walks = [each for ledger in ledgers for each in ledger.publishers]
    assert found['pubsub_charges_bytes{chain="2000",reason="map"}'] == sum(
        each.map_charges for each in ledgers
    )
    assert found['pubsub_charges_bytes{chain="2000",reason="row"}'] == sum(
        each.row_charges for each in walks
    )
    assert (
        found['pubsub_walks_total{chain="2000",reason="unchanged"}']
        == sum(each.unchanged for each in walks)
        > 0
    )
    assert found['pubsub_saved_bytes{chain="2000",reason="unchanged"}'] > 0
    assert found['pubsub_cursor_age_blocks{chain="2000"}'] == 0


@served(scenario=load_bundled("full-blocks"))
async def test_the_age_of_a_cursor_grows_until_the_walk_comes_round(
    node: Running, client: Client
) -> None:
    ages, came_round, last = (
        [],
        1,
        1,
    )  # every chain has its first block when the node begins to listen
    for at in range(20):
        if at == 10:  # less is wanted: the next walk comes to its end
            await client.call(
                "pubsub_setSubscriptions", 2000, [{"publisher": 1000, "keys": ["one"]}]
            )
        await node.step()
        best = node.server.live.network.number
        held = await client.call("pubsub_subscriptions", 2000)
        if held["cursor"] is None and held["number"] > last:
            came_round = best
        last = held["number"]
        ages.append((await metrics(node))['pubsub_cursor_age_blocks{chain="2000"}'])
        assert ages[-1] == (best - came_round if held["cursor"] else 0), ages
    assert max(ages) > 4  # the chain builds in every fourth relay block
    assert 0 in ages[ages.index(max(ages)) :], ages
