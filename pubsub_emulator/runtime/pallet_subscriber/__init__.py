"""The subscriber's pallet.

`plan` decides which parts of the relay state are read, and `apply` writes the result. Read
`config`, `storage`, `plan`, `child_trie` and `apply`. `plan` is pure: collator, chain and audit run
it.
"""
