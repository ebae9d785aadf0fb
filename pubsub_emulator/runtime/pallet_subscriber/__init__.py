"""The subscriber's pallet: what to read of the relay state (`plan`), and what to do with it (`apply`).

Read `config`, `storage`, `plan`, `child_trie`, `apply`, in this order. `plan` is pure and is run by the collator, the
chain and the audit; `apply` alone writes.
"""
