"""`pubsub prism subscribe --state` keeps the token and place of a subscription (PR-50, PR-51)."""

import asyncio
import json
import stat
import sys
from pathlib import Path
from typing import Any

from support.prism.prism_chain import Running, play
from support.prism.wallet import Wallet

from interchain_events.events.log.sql_store import SqlStore
from pubsub_emulator.files.atomic import write_secret


async def _subscribe(node: Running, *arguments: str | Path) -> list[dict[str, Any]]:
    """Run the command until it is live, and return what it prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pubsub_emulator", "prism", "subscribe"),
        *(*map(str, arguments), "--until-live", "--node", node.address),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, errors = await process.communicate()
    assert process.returncode == 0, errors
    return [json.loads(line) for line in printed.splitlines()]


def test_pr_51_a_later_call_continues_with_the_files_token_and_cursor(
    tmp_path: Path, log: SqlStore
) -> None:
    state = tmp_path / "wallet.json"
    wallets = [Wallet(name) for name in "abc"]

    async def story(node: Running) -> None:
        await node.processed(node.chain.anchor_now(wallets[0].created, wallets[1].created))
        first = await _subscribe(node, "--filter", "create-did", "--everything", "--state", state)
        assert [each["seq_no"] for each in first] == [1, 2]
        assert [each["did_suffix"] for each in first] == [each.suffix for each in wallets[:2]]
        kept = json.loads(state.read_text("utf-8"))
        assert set(kept) == {"token", "cursor"}
        assert stat.S_IMODE(state.stat().st_mode) == 0o600
        assert await _subscribe(node, "--state", state) == []
        await node.processed(node.chain.anchor_now(wallets[2].created))
        later = await _subscribe(node, "--state", state)
        assert [each["seq_no"] for each in later] == [3]
        assert json.loads(state.read_text("utf-8"))["token"] == kept["token"]

    play(log, story)


def test_a_secret_file_belongs_to_its_owner_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_secret(path, "one")
    assert (path.read_text("utf-8"), stat.S_IMODE(path.stat().st_mode)) == ("one", 0o600)
    path.chmod(0o640)
    write_secret(path, "two")
    assert (path.read_text("utf-8"), stat.S_IMODE(path.stat().st_mode)) == ("two", 0o640)
