"""Scenarios of substrate-interface and async-substrate-interface: run by the Python that has the
client.

`python python_scenarios.py si|asi URL` writes what became of each as a line of JSON: scenario, ok,
ms, detail.
"""

import asyncio
import json
import sys
import time
import traceback
from typing import Any

ALICE = "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY"
BOB = "5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty"
ALICE_SEED = bytes.fromhex("e5be9a5092b81bca64be81d212e7f2f9eba183bb7a90954f7b76361f6edb5c0a")
CHAINS = ("/", "/2000")


_opened: list[Any] = []


def connect(client: str, url: str) -> Any:
    """A connection of that client, closed when its scenario ends."""
    _opened.append(_connect(client, url))
    return _opened[-1]


def _connect(client: str, url: str) -> Any:
    if client == "si":
        from substrateinterface import SubstrateInterface
    else:
        from async_substrate_interface.sync_substrate import SubstrateInterface
    return SubstrateInterface(url, ss58_format=42)


class Alice:
    """The development account, as what async-substrate-interface calls a keypair: it brings none of
    its own.
    """

    crypto_type, ss58_address, ss58_format = 1, ALICE, 42

    def __init__(self) -> None:
        import sr25519

        self._pair = sr25519.pair_from_seed(ALICE_SEED)

    @property
    def public_key(self) -> bytes:
        """Its 32 bytes."""
        return bytes(self._pair[0])

    def sign(self, data: bytes) -> bytes:
        """A signature of these bytes."""
        import sr25519

        return bytes(sr25519.sign(self._pair, bytes(data)))


def alice_of(client: str) -> Any:
    """The development account //Alice."""
    if client == "asi":
        return Alice()
    from substrateinterface import Keypair

    return Keypair.create_from_uri("//Alice")


def value(found: Any) -> Any:
    """What a query found, as plain values."""
    return getattr(found, "value", found)


def connects(client: str, url: str) -> None:
    """6: connect and read an account on both chains."""
    for path in CHAINS:
        chain = connect(client, url + path)
        assert value(chain.query("System", "Account", [ALICE]))["data"]["free"] > 0
        assert chain.get_block_hash(0) == chain.rpc_request("chain_getBlockHash", [0])["result"]


def encodes(client: str, url: str) -> None:
    """6: metadata, read and written again, is the same to the byte."""
    from scalecodec.base import ScaleBytes

    for path in CHAINS:
        chain = connect(client, url + path)
        texts = [chain.rpc_request("state_getMetadata", [])["result"]]
        if client == "asi":
            found = bytes.fromhex(
                chain.rpc_request("state_call", ["Metadata_metadata_at_version", "0x0f000000"])[
                    "result"
                ][2:]
            )
            texts.append(
                f"0x{found[1 + (1, 2, 4)[found[1] & 3] :].hex()}"
            )  # Option, and the length of the bytes
        for text in texts:
            read = chain.runtime_config.create_scale_object("MetadataVersioned", ScaleBytes(text))
            read.decode()
            written = chain.runtime_config.create_scale_object("MetadataVersioned").encode(
                read.value
            )
            assert written.to_hex() == text


def reads(client: str, url: str) -> None:
    """9: value, map in pages, double map, default, absent key."""
    for path in CHAINS:
        chain = connect(client, url + path)
        rows = list(chain.query_map("System", "Account", page_size=5))
        assert len(rows) > 10
        assert value(chain.query("System", "Number")) > 0
        nobody = "5C4hrfjw9DjXZTzV3MwzrrAr9P1MJhSrvWGWqi1eSuyUpnhM"
        assert value(chain.query("System", "Account", [nobody]))["data"]["free"] == 0
    relay = connect(client, url)
    relay.rpc_request("pubsub_publish", [1000, f"of {client}", "0x01", 50])
    relay.rpc_request("dev_newBlock", [{"count": 3}])
    assert list(relay.query_map("Broadcaster", "TtlData", [1000]))
    assert value(relay.query("Broadcaster", "RegisteredPublishers", [7])) is None


def transfers(client: str, url: str) -> None:
    """12 and 22: Alice pays Bob to finality; the fee is the estimate."""
    for path in CHAINS:
        chain, alice = connect(client, url + path), alice_of(client)
        before = value(chain.query("System", "Account", [BOB]))["data"]["free"]
        call = chain.compose_call("Balances", "transfer_keep_alive", {"dest": BOB, "value": 777})
        info = chain.get_payment_info(call, alice)
        fee = info.get("partialFee", info.get("partial_fee"))
        signed = chain.create_signed_extrinsic(call=call, keypair=alice)
        receipt = chain.submit_extrinsic(signed, wait_for_finalization=True)
        assert receipt.is_success, receipt.error_message
        assert receipt.total_fee_amount == int(fee)
        assert value(chain.query("System", "Account", [BOB]))["data"]["free"] == before + 777


def awaits(client: str, url: str) -> None:
    """9 and 12 with the class that gave async-substrate-interface its name."""
    from async_substrate_interface import AsyncSubstrateInterface

    async def on(path: str) -> None:
        async with AsyncSubstrateInterface(url + path, ss58_format=42) as chain:
            rows = [key async for key, _ in await chain.query_map("System", "Account", page_size=5)]
            assert len(rows) > 10
            before = value(await chain.query("System", "Account", [BOB]))["data"]["free"]
            call = await chain.compose_call(
                "Balances", "transfer_keep_alive", {"dest": BOB, "value": 778}
            )
            signed = await chain.create_signed_extrinsic(call=call, keypair=alice_of(client))
            receipt = await chain.submit_extrinsic(signed, wait_for_finalization=True)
            assert await receipt.is_success, await receipt.error_message
            assert (
                value(await chain.query("System", "Account", [BOB]))["data"]["free"] == before + 778
            )

    for path in CHAINS:
        asyncio.run(on(path))


def follows(client: str, url: str) -> None:
    """11: heads, a value of the state and events over 50 steps, each once and in order."""
    other = connect(client, url)
    heads, numbers, places = [], [], []

    def go(update: int) -> None:
        if update == 0:
            other.rpc_request("dev_newBlock", [{"count": 50}])

    def head(found: Any, update: int, _subscription: str) -> Any:
        heads.append(found["header"]["number"])
        go(update)
        return heads if len(heads) == 51 else None

    def number(found: Any, update: int, _subscription: str) -> Any:
        numbers.append(value(found))
        go(update)
        return numbers if len(numbers) == 51 else None

    connect(client, url).subscribe_block_headers(head)
    connect(client, url).query("System", "Number", subscription_handler=number)
    for seen in (heads, numbers):
        assert seen == list(range(seen[0], seen[0] + 51))
    for at in range(numbers[0], numbers[-1] + 1):
        block = other.get_block_hash(at)
        records = other.get_events(block_hash=block)
        places.append((at, len(records)))
        assert len(records) == value(other.query("System", "EventCount", block_hash=block))
    assert len(places) == 51


SCENARIOS = {
    "si": {
        "connects": connects,
        "encodes": encodes,
        "reads": reads,
        "transfers": transfers,
        "follows": follows,
    },
    "asi": {
        "connects": connects,
        "encodes": encodes,
        "reads": reads,
        "transfers": transfers,
        "awaits": awaits,
    },
}


def main(client: str, url: str) -> None:
    """Run them all."""
    for name, scenario in SCENARIOS[client].items():
        began, detail = time.monotonic(), None
        try:
            scenario(client, url)
        except Exception:
            detail = traceback.format_exc()[-2000:]
        while _opened:
            _opened.pop().close()
        spent = round((time.monotonic() - began) * 1000)
        sys.stdout.write(
            json.dumps({"scenario": name, "ok": detail is None, "ms": spent, "detail": detail})
            + "\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:3])
