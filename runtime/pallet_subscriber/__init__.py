"""The subscriber's pallet: what to read of the relay state (`plan`), and what to do with it (`apply`).

Read `config`, `storage`, `plan`, `apply`, in this order. `plan` is pure and is run by the collator, by the chain and by
the audit; `apply` alone writes.
"""
