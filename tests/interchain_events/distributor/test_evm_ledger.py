"""An adapter's ledger over an EVM node: nonces, stuck and dropped transactions, reorganisations,
nodes that lie.
"""

import asyncio
import hashlib
import itertools
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import rlp
from coincurve import PrivateKey, PublicKey
from support.distributor.evm import ACCOUNT, Told, ids, ledger_on, publishing
from support.distributor.evm_chain import CONTRACT, EvmChain
from support.distributor.stage import until
from support.plumbing.told import Told as Test
from support.plumbing.told import alone, told

from interchain_events.distributor.adapter.evm import ledger as room
from interchain_events.distributor.adapter.evm.account import (
    MOST_FILE,
    EvmAccount,
    Fees,
    KeyUnusable,
    keccak256,
    key_of_environment,
    key_of_keystore,
)
from interchain_events.distributor.adapter.evm.contract import MOST_DATA, TOPIC, call_data, refusal
from interchain_events.distributor.adapter.evm.ledger import EvmLedger, EvmSettings
from interchain_events.distributor.adapter.evm.node import MOST_PRICE
from interchain_events.distributor.adapter.ledger import Published
from interchain_events.distributor.core.messages import Unknown
from interchain_events.distributor.once import MemoryStore
from interchain_events.distributor.simulation.stories import event_of
from pubsub_emulator.client.errors import ClientError, NodeRefused, NodeUnavailable

SETTINGS = EvmSettings(contract=CONTRACT, finality=0)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "POLL_SECONDS", 0.005)
    monkeypatch.setattr(room, "HEADS_SECONDS", 0.02)


def play(
    what: Callable[[EvmLedger, EvmChain], Awaitable[None]],
    chain: EvmChain | None = None,
    **settings: Any,
) -> None:
    async def run() -> None:
        async with asyncio.timeout(60):
            world = chain or EvmChain()
            async with ledger_on(world, replace(SETTINGS, **settings)) as made:
                await what(made, world)

    asyncio.run(run())


def played(
    chain: Callable[[], EvmChain] = EvmChain, **settings: Any
) -> Callable[[Test], Callable[..., None]]:
    """Tests of a ledger with these settings on a chain of its own."""
    return told(lambda what: play(what, chain(), **settings), made=2)


async def sent(ledger: EvmLedger, chain: EvmChain, number: int) -> asyncio.Task[Told]:
    """A publication whose transaction waits for a block."""
    made = publishing(ledger, number)
    await until(lambda: bool(chain.pool))
    return made


async def mined(ledger: EvmLedger, chain: EvmChain, number: int) -> None:
    """Publish with a block."""
    done = await sent(ledger, chain, number)
    chain.mine()
    assert isinstance(await done, Published)


def test_the_package_holds_what_the_source_says() -> None:
    folder = resources.files("interchain_events.distributor.adapter.evm")
    made = json.loads(folder.joinpath("DomeEvents.json").read_text())
    assert (
        made["source"] == hashlib.sha256(folder.joinpath("DomeEvents.sol").read_bytes()).hexdigest()
    )


def test_call_and_event_are_those_of_the_public_contract() -> None:
    """As `DOME_EVENTS_CONTRACT_ABI` of `alastria/DOME-blockchain_connector-dlt_interface` at
    3405d23 has them.
    """
    arguments = "bytes32,address,bytes32,bytes32,string,string,string[]"
    assert call_data(event_of(1)[1], ACCOUNT.address)[:4].hex() == _selector(
        f"emitNewEvent({arguments})"
    )
    assert keccak256(f"EventDOMEv1(uint256,uint256,{arguments})".encode()).hex() == TOPIC[2:]
    text = (
        resources.files("interchain_events.distributor.adapter.evm")
        .joinpath("DomeEvents.json")
        .read_text()
    )
    kinds = {
        each.get("name"): [one["type"] for one in each["inputs"]]
        for each in json.loads(text)["abi"]
    }
    assert kinds["emitNewEvent"] == arguments.split(",")
    assert kinds["EventDOMEv1"] == ["uint256", "uint256", *arguments.split(",")]


@played()
async def test_an_event_is_published_once_and_read_back(ledger: EvmLedger, chain: EvmChain) -> None:
    both = [publishing(ledger, 1), publishing(ledger, 1)]
    await until(lambda: bool(chain.pool))
    chain.mine()
    done = await asyncio.gather(*both)
    assert done == [Published(1_700_000_001, new=True)] * 2
    assert len(chain.sent) == 1
    assert await ledger.publish(event_of(1)[1]) == Published(1_700_000_001, new=False)
    page = await ledger.read(0, 10)
    assert page is not None
    assert [(notice.number, notice.event, notice.fault) for notice in page.notices] == [
        (1, event_of(1)[1], "")
    ]
    assert (page.notices[0].signer, page.notices[0].block) == (ACCOUNT.address, chain._hash(1))


@pytest.mark.parametrize(
    ("base_fee", "price", "wanted"),
    [
        (7, None, 16),
        (None, None, 9),
        (7, 0, 0),
    ],
)
def test_fees_are_those_of_eip_1559_legacy_or_none(
    base_fee: int | None, price: int | None, wanted: int
) -> None:
    async def what(ledger: EvmLedger, chain: EvmChain) -> None:
        await sent(ledger, chain, 1)
        assert chain.sent[0].price == wanted
        assert chain.sent[0].raw.startswith("0x02") == (wanted == 16)

    play(what, EvmChain(base_fee=base_fee), price=price)


@played()
async def test_nonces_have_no_gap_after_a_transaction_that_the_node_refused(
    ledger: EvmLedger, chain: EvmChain
) -> None:
    first = await sent(ledger, chain, 1)
    chain.answers["eth_sendRawTransaction"] = NodeRefused(
        "eth_sendRawTransaction", -32000, "insufficient funds"
    )
    refused = await ledger.publish(event_of(2)[1])
    assert isinstance(refused, Unknown)
    assert "insufficient funds" in refused.reason
    chain.answers.clear()
    third = publishing(ledger, 3)
    await until(lambda: len(chain.pool) == 2)
    assert sorted(chain.pool) == [0, 1]
    chain.mine()
    assert all(isinstance(each, Published) for each in await asyncio.gather(first, third))


@played(stuck=0.01)
async def test_a_stuck_transaction_is_replaced_for_an_eighth_more_again(
    ledger: EvmLedger, chain: EvmChain
) -> None:
    first = publishing(ledger, 1)
    await until(lambda: len(chain.sent) >= 4)
    prices = [each.price for each in chain.sent]
    assert all(after > before * 9 // 8 for before, after in itertools.pairwise(prices))
    assert {each.nonce for each in chain.sent} == {0}
    chain.mine()
    assert isinstance(await first, Published)
    assert chain.events() == [event_of(1)[0]]


@played(stuck=0.05)
async def test_what_waits_behind_a_stuck_transaction_is_sent_again_if_lost(
    ledger: EvmLedger, chain: EvmChain
) -> None:
    done = []
    for number in (1, 2, 3):
        done.append(publishing(ledger, number))
        await until(lambda count=number: len(chain.pool) == count)  # type: ignore[misc]
    await until(lambda: len([each for each in chain.sent if each.nonce == 0]) >= 3)
    assert [each.nonce for each in chain.sent if each.nonce] == [1, 2]
    del chain.pool[2]
    await until(lambda: 2 in chain.pool)
    chain.mine()
    assert all(isinstance(each, Published) for each in await asyncio.gather(*done))


def test_a_raised_fee_never_passes_the_limit() -> None:
    assert Fees(MOST_PRICE, MOST_PRICE).raised(Fees(1, 1)) == Fees(MOST_PRICE, MOST_PRICE)
    assert Fees(80, 16).raised(Fees(0, 0)) == Fees(91, 19)


@played(stuck=0.01, price=0)
async def test_a_dropped_transaction_is_sent_again_under_its_nonce(
    ledger: EvmLedger, chain: EvmChain
) -> None:
    first = await sent(ledger, chain, 1)
    chain.pool.clear()
    await until(lambda: bool(chain.pool))
    chain.mine()
    assert isinstance(await first, Published)
    assert chain.events() == [event_of(1)[0]]


@played()
async def test_a_transaction_whose_nonce_is_used_is_a_doubt_not_sent_twice(
    ledger: EvmLedger, chain: EvmChain
) -> None:
    first = await sent(ledger, chain, 1)
    other = replace(chain.pool[0], data=_call_of(2))
    chain.pool[0] = other
    chain.mine()
    assert isinstance(await first, Unknown)
    await mined(ledger, chain, 1)
    assert chain.events() == [event_of(2)[0], event_of(1)[0]]


def _call_of(number: int) -> bytes:
    return call_data(event_of(number)[1], ACCOUNT.address)


@played(finality=2)
async def test_a_publication_is_done_when_its_block_is_final_and_not_before(
    ledger: EvmLedger, chain: EvmChain
) -> None:
    first = await sent(ledger, chain, 1)
    chain.mine()
    chain.mine()
    asked = len(chain.called)
    await until(lambda: len(chain.called) > asked + 20)
    assert not first.done()
    assert await ids(ledger) == []
    chain.mine()
    assert isinstance(await first, Published)


@pytest.mark.parametrize("drop", [False, True])
@played(finality=2, stuck=0.01)
async def test_a_reorganisation_of_no_final_block_costs_nothing(
    ledger: EvmLedger, chain: EvmChain, drop: bool
) -> None:
    first = await sent(ledger, chain, 1)
    chain.mine()
    chain.take_back(1, drop=drop)
    await until(lambda: bool(chain.pool))
    for _ in range(4):
        chain.mine()
    assert isinstance(await first, Published)
    assert await ids(ledger) == [event_of(1)[0]] == chain.events()


@played()
async def test_a_reorganisation_of_final_blocks_takes_events_back(
    ledger: EvmLedger, chain: EvmChain
) -> None:
    for number in range(1, 5):
        await mined(ledger, chain, number)
    before = await ledger.read(0, 10)
    chain.take_back(2, drop=True)
    for _ in range(3):
        chain.mine()
    after = await ledger.read(0, 10)
    assert before is not None
    assert after is not None
    assert after.notices == before.notices[:2]
    await mined(ledger, chain, 4)
    assert await ids(ledger) == [event_of(number)[0] for number in (1, 2, 4)]


@alone
async def test_a_killed_process_goes_on_with_the_transactions_that_it_left() -> None:
    chain, store = EvmChain(), MemoryStore()
    async with ledger_on(chain, SETTINGS, store) as first:
        publishing(first, 1)
        await until(lambda: bool(chain.pool))
    chain.pool.clear()  # the node forgot it, too
    async with ledger_on(chain, SETTINGS, store) as second:
        await until(lambda: bool(chain.pool))
        again, other = publishing(second, 1), publishing(second, 2)
        await until(lambda: len(chain.pool) == 2)
        chain.mine()
        assert all(isinstance(each, Published) for each in await asyncio.gather(again, other))
    assert chain.events() == [event_of(1)[0], event_of(2)[0]]
    assert not store.rows(f"{room.TRANSACTIONS}:{CONTRACT}")


@played()
async def test_an_answer_that_is_lost_is_not_a_second_transaction(
    ledger: EvmLedger, chain: EvmChain
) -> None:
    def lost(_: object) -> object:
        raise NodeUnavailable("no answer in time")

    chain.answers["eth_sendRawTransaction"] = lost
    await mined(ledger, chain, 1)
    assert len(chain.sent) == 1


@played()
async def test_receipts_are_not_asked_for_so_a_node_may_lie_about_them(
    ledger: EvmLedger, chain: EvmChain
) -> None:
    await mined(ledger, chain, 1)
    assert "eth_getTransactionReceipt" not in chain.called


@played()
async def test_too_many_waiting_are_a_doubt(
    ledger: EvmLedger, chain: EvmChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MOST_SENT", 2)
    publishing(ledger, 1), publishing(ledger, 2)
    await until(lambda: len(chain.pool) == 2)
    assert await ledger.publish(event_of(3)[1]) == Unknown("2 transactions wait for a final block")


def _with(**changes: Any) -> Callable[[Any], Any]:
    return lambda logs: [{**each, **changes} for each in logs]


@pytest.mark.parametrize(
    ("method", "lie", "words"),
    [
        pytest.param(
            "eth_getLogs",
            _with(address="0x" + "11" * 20),
            "another contract",
            id="another contract",
        ),
        pytest.param(
            "eth_getLogs",
            _with(topics=["0x" + "22" * 32] * 4),
            "another contract or event",
            id="other topics",
        ),
        pytest.param("eth_getLogs", _with(topics=[]), "another contract or event", id="no topics"),
        pytest.param(
            "eth_getLogs", _with(topics=["0x22"]), "at least 32 items", id="a short topic"
        ),
        pytest.param("eth_getLogs", _with(data="0x"), "possible index and time", id="no data"),
        pytest.param(
            "eth_getLogs",
            _with(data="0x" + "ff" * 96),
            "possible index and time",
            id="large numbers",
        ),
        pytest.param("eth_getLogs", _with(data="0x1"), "eth_getLogs", id="half a byte"),
        pytest.param(
            "eth_getLogs", _with(removed=True), "removed by a reorganisation", id="a removed log"
        ),
        pytest.param(
            "eth_getLogs",
            _with(blockNumber="0x99"),
            "of other blocks, or out of order",
            id="another block",
        ),
        pytest.param(
            "eth_getLogs",
            lambda logs: [*logs, *logs],
            "event 0 of the contract, not event 1",
            id="a log twice",
        ),
        pytest.param("eth_getLogs", lambda _: "0x", "a valid tuple", id="no list of logs"),
        pytest.param(
            "eth_getBlockByNumber",
            lambda _: {"number": "0x1", "hash": "0x12"},
            "at least 32 items",
            id="a short hash",
        ),
        pytest.param(
            "eth_getBlockByNumber",
            lambda _: {"number": "0x" + "f" * 1000, "hash": "0x" + "00" * 32},
            "16 digits",
            id="a long number",
        ),
        pytest.param("eth_getBlockByNumber", lambda _: None, "no block latest", id="no block"),
    ],
)
@played()
async def test_a_lying_node_gets_one_line_and_is_read_again_once_honest(
    ledger: EvmLedger,
    chain: EvmChain,
    *,
    method: str,
    lie: Callable[[Any], Any],
    words: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = await sent(ledger, chain, 1)
    chain.answers[method] = lie
    chain.mine()
    assert await ids(ledger) is None
    said = [str(getattr(record, "fields", {}).get("error")) for record in caplog.records]
    assert any(words in each for each in said), said
    assert all("\n" not in each and len(each) <= 300 for each in said)
    chain.answers.clear()
    await first
    assert await ids(ledger) == [event_of(1)[0]]


@played()
async def test_an_entry_that_is_left_out_is_noticed_and_read_again(
    ledger: EvmLedger, chain: EvmChain
) -> None:
    for number in (1, 2):
        done = await sent(ledger, chain, number)
        if number == 1:
            chain.answers["eth_getLogs"] = (
                lambda _: []
            )  # a node behind the one that told of the block
        chain.mine()
        if number == 1:
            assert await ids(ledger) == []
            done.cancel()
            chain.answers.clear()
    assert isinstance(await done, Published)
    assert await ids(ledger) == [event_of(1)[0], event_of(2)[0]]


@played()
async def test_a_strangers_bad_entry_is_quarantined_and_the_log_goes_on(
    ledger: EvmLedger, chain: EvmChain
) -> None:
    first = await sent(ledger, chain, 1)
    chain.answers["eth_getLogs"] = lambda logs: [
        {**each, "data": each["data"][:130] + "ff" * MOST_DATA} if at == 0 else each
        for at, each in enumerate(logs)
    ]
    chain.mine()
    page = await ledger.read(0, 10)
    assert page is not None
    assert [(notice.number, notice.id) for notice in page.notices] == [(1, None)]
    assert page.notices[0].fault.startswith("malformed")
    first.cancel()


@played()
async def test_a_node_that_limits_its_answers_is_asked_for_fewer_blocks(
    ledger: EvmLedger, chain: EvmChain
) -> None:
    done = await sent(ledger, chain, 1)
    chain.up = False
    for _ in range(50):
        chain.mine()
    true = chain.eth_getLogs

    def limited(asked: dict[str, Any]) -> list[dict[str, Any]]:
        if int(asked["toBlock"], 16) - int(asked["fromBlock"], 16) > 3:
            raise NodeRefused("eth_getLogs", -32005, "query returned more than 10000 results")
        return true(asked)

    chain.eth_getLogs = limited  # type: ignore[method-assign]
    chain.up = True
    assert isinstance(await done, Published)


@played(lambda: EvmChain(url="ws://node.example", heads=[{}, {}]))
async def test_blocks_that_a_node_tells_of_are_read_over_a_lost_connection(
    ledger: EvmLedger, chain: EvmChain
) -> None:
    await mined(ledger, chain, 1)


@played(lambda: EvmChain(unique=False), unique=False)
async def test_the_public_contract_takes_ids_twice_and_adds_its_chain_id(
    ledger: EvmLedger, chain: EvmChain
) -> None:
    event = event_of(1)[1]
    first = asyncio.create_task(ledger.publish(event._replace(metadata=(*event.metadata, "1337"))))
    await until(lambda: bool(chain.pool))
    chain.mine()
    await first
    page = await ledger.read(0, 10)
    assert page is not None
    assert page.notices[0].event == event


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"chain_id": 5}, "is of chain 1337, not of chain 5"),
        ({"finality": "safe"}, "does not tell its final blocks"),
        ({"contract": "0x" + "11" * 20}, "has no contract at 0x1111"),
        ({"unique": False}, "takes each id once"),
    ],
)
@alone
async def test_settings_that_do_not_fit_the_chain_are_one_line_at_start(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ClientError, match=words):
        async with ledger_on(EvmChain(), replace(SETTINGS, **changes)):
            pass


@played()
async def test_a_node_that_suddenly_serves_another_chain_is_not_read(
    ledger: EvmLedger, chain: EvmChain
) -> None:
    await mined(ledger, chain, 1)
    chain.chain_id, chain.branches = 7, [9, 9, 9]
    assert await ids(ledger) is None


# The test vectors of the Web3 Secret Storage definition: password "testpassword", and the key.
_VECTOR_KEY = bytes.fromhex("7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d")


def _keystore(iv: str, ciphertext: str, mac: str, kdf: str, **params: int | str) -> dict[str, Any]:
    cipher = {"cipher": "aes-128-ctr", "cipherparams": {"iv": iv}, "ciphertext": ciphertext}
    crypto = {**cipher, "kdf": kdf, "kdfparams": {"dklen": 32, **params}, "mac": mac}
    return {"crypto": crypto, "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6", "version": 3}


_PBKDF2 = _keystore(
    "6087dab2f9fdbbfaddc31a909735c1e6",
    "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
    "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2",
    "pbkdf2",
    c=262144,
    prf="hmac-sha256",
    salt="ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd",
)
_SCRYPT = _keystore(
    "83dbcc02d8ccb40e466191a123791e0e",
    "d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c",
    "2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097",
    "scrypt",
    n=262144,
    p=8,
    r=1,
    salt="ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19",
)


@pytest.mark.parametrize(
    "store",
    [
        pytest.param(
            _PBKDF2,
            id="pbkdf2",
        ),
        pytest.param(
            _SCRYPT,
            id="scrypt",
        ),
    ],
)
def test_a_keystore_gives_its_key_for_the_right_password_alone(
    store: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "key.json"
    path.write_text(json.dumps(store))
    assert key_of_keystore(path, "testpassword").address == EvmAccount(_VECTOR_KEY).address
    with pytest.raises(KeyUnusable, match="the password is wrong"):
        key_of_keystore(path, "Testpassword")


def test_a_signed_transaction_is_the_one_of_eip_155() -> None:
    signed = EvmAccount(b"F" * 32).signed(1, 9, 21000, Fees(20 * 10**9), ("0x" + "35" * 20, b""))
    nonce, price, gas, to, value, data, v, r, s = rlp.decode(signed)
    assert (nonce, price, gas, value, data) == (
        b"\x09",
        (20 * 10**9).to_bytes(5),
        (21000).to_bytes(2),
        b"",
        b"",
    )
    digest = keccak256(rlp.encode((nonce, price, gas, to, value, data, 1, 0, 0)))
    signer = PublicKey.from_signature_and_message(
        r.rjust(32, b"\0") + s.rjust(32, b"\0") + bytes([v[0] - 37]), digest, None
    )
    assert signer == PrivateKey(b"F" * 32).public_key
    assert ACCOUNT.address == "0x90f8bf6a479f320ead074411a4b0e7944ea8c9c1"


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", '{"crypto": {}}', "x" * (MOST_FILE + 1)),
        json.dumps(_SCRYPT).replace("262144", "2147483648"),
        json.dumps(_SCRYPT).replace("262144", "16777216").replace('"r": 1', '"r": 64'),
        json.dumps(_SCRYPT).replace("aes-128-ctr", "rot13"),
        json.dumps(_SCRYPT).replace("83dbcc", ""),
        json.dumps(_PBKDF2).replace("262144", "10000001"),
    ],
)
def test_a_bad_or_costly_keystore_file_is_reported_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    path.write_text(text)
    with pytest.raises(KeyUnusable, match=r"key\.json: not a keystore file"):
        key_of_keystore(path, "secret")
    with pytest.raises(KeyUnusable, match="No such file"):
        key_of_keystore(tmp_path / "none", "secret")


@pytest.mark.parametrize("text", ["", "0x12", "zz" * 32, "00" * 32, "ff" * 32])
def test_an_environment_variable_without_a_key_is_one_line(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVM_KEY", text)
    with pytest.raises(KeyUnusable, match="EVM_KEY does not hold a key"):
        key_of_environment("EVM_KEY")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            "0x2fd57bf5",
            id="text",
        ),
        pytest.param(
            {"result": "0x2fd57bf5"},
            id="object with the result",
        ),
        pytest.param(
            "Reverted 0x2fd57bf5",
            id="text with more words",
        ),
    ],
)
def test_the_contracts_refusals_are_read_in_the_form_of_any_node(data: object) -> None:
    assert (
        refusal(json.loads(json.dumps(data).replace("2fd57bf5", _selector("TooLong()"))))
        == "TooLong"
    )
    assert refusal("0x08c379a0") == refusal(None) == ""


def _selector(text: str) -> str:
    return keccak256(text.encode())[:4].hex()
