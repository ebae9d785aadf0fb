"""The subscriber's pallet: what to read of the relay state (`plan`), and what to do with it (`apply`).

Read `config`, `storage`, `plan`, `child_trie`, `apply`. `plan` is pure: collator, chain and audit run it.
"""
