"""200 relay blocks of mixed activity keep their state roots, under any hash seed (PS-90)."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[3] / "support" / "runtime" / "relay_chain" / "golden_trace.py"
FIXTURES = Path(__file__).parents[3] / "vectors" / "golden_trace"
POLICIES = ("scan", "expiry_index")
HASH_SEEDS = ("0", "4242")
MUST_HAPPEN = (
    "Broadcaster::DataPublished",
    "Broadcaster::KeyExpired",
    "Broadcaster::KeysDeleted",
    "Broadcaster::KeysForcedDeleted",
    "Broadcaster::PublisherRegistered",
    "Broadcaster::PublisherDeregistered",
    "Balances::Slashed",
    "MessageQueue::OverweightDropped",
    "MessageQueue::Processed",
    "MessageQueue::ProcessingFailed",
    "XcmPallet::Attempted",
    "ParaInclusion::CandidateRefused MessageQueue::CapacityExceeded",
    "ParaInclusion::CandidateRefused MessageQueue::MoreMessagesThanPermitted",
    "ParaInclusion::CandidateRefused ParaInclusion::IsOffboarding",
    "Registrar::Deregistered",
    "System::ExtrinsicFailed BadOrigin",
    "System::ExtrinsicFailed Broadcaster::NoKeysToDelete",
    "System::ExtrinsicFailed Broadcaster::TooManyPublishers",
    "System::ExtrinsicFailed Token: FundsUnavailable",
)


@cache
def kept(policy: str) -> dict[str, Any]:
    trace: dict[str, Any] = json.loads((FIXTURES / f"{policy}.json").read_text(encoding="utf-8"))
    return trace


@cache
def running() -> dict[str, "subprocess.Popen[str]"]:
    """The trace made anew by one process a hash seed, all at once; the first also checks every
    pallet's state.
    """
    return {
        seed: subprocess.Popen(
            [
                sys.executable,
                str(PROGRAM),
                *POLICIES,
                *(["--checked"] if seed == HASH_SEEDS[0] else []),
            ],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in HASH_SEEDS
    }


@cache
def made(seed: str) -> dict[str, dict[str, Any]]:
    process = running()[seed]
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    decoder, traces, at = json.JSONDecoder(), {}, 0
    while at < len(out):
        trace, at = decoder.raw_decode(out, at)
        traces[trace["policy"]] = trace
        at += 1  # the end of the line
    return traces


def first_difference(wanted: list[dict[str, Any]], found: list[dict[str, Any]]) -> str | None:
    """The first block with another root, and what happened in it: then and now."""
    for then, now in zip(wanted, found, strict=False):
        if then != now:
            return (
                f"block {then['number']}: {then['state_root']} then, {now['state_root']}"
                f" now\n{then}\n{now}"
            )
    assert len(wanted) == len(found)
    return None


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", HASH_SEEDS)
def test_ps90_the_trace_equals_the_golden_one_under_every_hash_seed(seed: str, policy: str) -> None:
    difference = first_difference(kept(policy)["blocks"], made(seed)[policy]["blocks"])
    assert difference is None, difference


@pytest.mark.parametrize("policy", POLICIES)
def test_the_kept_trace_is_200_blocks_in_which_everything_happens(policy: str) -> None:
    blocks = kept(policy)["blocks"]
    assert [block["number"] for block in blocks] == list(range(201))
    assert len({block["state_root"] for block in blocks}) == 201
    happened = {what for block in blocks for what in block["told"]}
    assert [what for what in MUST_HAPPEN if what not in happened] == []


def test_both_policies_start_from_one_genesis() -> None:
    """PS-19: the policy is no part of the genesis state; weights differ from the first block on."""
    scan, index = (kept(policy)["blocks"] for policy in POLICIES)
    assert scan[0] == index[0]
    assert scan[1]["told"] == index[1]["told"]
    assert scan[1]["state_root"] != index[1]["state_root"]
