"""Nothing of the public record of the Rust attempt is left out: each scenario and defect is named by some test."""

import ast
import re
from pathlib import Path

ROOMS = ("pallet_subscriber", "parachain_system")

SUBSCRIBER_SCENARIOS = [f"B{number}" for number in range(1, 69)]

DEFECTS = [f"defect {number}" for number in range(1, 24)]

PLANNED = """
    subscriptions_deduplicated subscriptions_combined_by_publisher unchanged_subtree_skipped value_change_detected
    external_data_not_cached depth_within_limit depth_exceeds_limit depth_exceeded_disables_publisher
    depth_limit_bounds_cache clear_publisher_cache_clears_root budget_exhausted_mid_key budget_exhausted_between_keys
    budget_exhausted_between_publishers small_budget_processes_partial exact_budget_processes_all
    consumed_weight_never_exceeds_limit meter_state_consistent_after_incomplete cursor_wrap_around
    cursor_cleared_on_complete cursor_with_subscription_change prune_verify_same_cursor prune_no_state_changes
    extraneous_nodes_invalid incomplete_below_limit_invalid missing_node_at_limit_valid missing_node_below_limit_invalid
    non_system_randomized keys_sorted_within_publisher cache_reduces_proof_size cache_survives_no_changes
    subscription_removal_and_cache_clear collator_omits_data_below_limit collator_includes_extraneous_data
    collator_wrong_cursor collator_inflated_proof publisher_pathological_trie publisher_rapid_changes
"""
"""Scenarios of upstream's test plan that no upstream test stands for; `on_idle_cursor_wrap_around` is the relay's."""

PLANNED_IN_WORDS = (
    "TTL=1",
    "deregister while subscribers active",
    "TTL expiry in the block whose proof is processed",
    "runtime upgrade with cursor/cache set",
)


def first_lines() -> list[str]:
    """The first line of the docstring of every test of these rooms."""
    rooms = [Path(__file__).parents[1] / room for room in ROOMS]
    trees = [ast.parse(path.read_text()) for room in rooms for path in sorted(room.glob("test_*.py"))]
    tests = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [(ast.get_docstring(t) or "").split("\n")[0] for t in tests if t.name.startswith("test_")]


def missing(names: list[str]) -> list[str]:
    text = "\n".join(first_lines())
    return [name for name in names if not re.search(rf"(?<![\w]){re.escape(name)}(?![\w])", text)]


def test_every_scenario_of_the_subscriber_pallet_is_named() -> None:
    assert missing(SUBSCRIBER_SCENARIOS) == []


def test_every_scenario_that_was_only_planned_is_named() -> None:
    assert missing([f"D {name}" for name in (*PLANNED.split(), *PLANNED_IN_WORDS)]) == []


def test_every_defect_of_the_subscriber_side_is_named() -> None:
    assert missing(DEFECTS) == []


def test_every_rule_of_the_walk_and_of_what_it_changes_is_named() -> None:
    rules = [*range(30, 34), *range(40, 46), *range(50, 56), *range(60, 71)]
    assert missing([f"PS-{number}" for number in rules]) == []
