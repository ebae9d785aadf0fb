"""Scenario 20 with substrate-interface: `python si_demo.py URL FILE`, the file as for js/demo.mjs."""

import json
import sys
from pathlib import Path

from substrateinterface import SubstrateInterface


def main(url: str, file: str) -> None:
    """Compare every row."""
    rows = json.loads(Path(file).read_text(encoding="utf-8"))
    chain = SubstrateInterface(url, ss58_format=42)
    for row in rows:
        assert chain.get_block_hash(row["number"]) == row["hash"]
        block = chain.get_block(block_hash=row["hash"])
        assert block["header"]["number"] == row["number"]
        assert [f"0x{each.data.data.hex()}" for each in block["extrinsics"]] == row["extrinsics"]
        events = chain.get_events(block_hash=row["hash"])
        assert [f"{each.value['module_id']}.{each.value['event_id']}" for each in events] == row["names"]
    sys.stdout.write(json.dumps({"blocks": len(rows)}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:3])
