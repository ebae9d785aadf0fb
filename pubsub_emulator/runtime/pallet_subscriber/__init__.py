"""The subscriber's pallet.

`plan` decides which parts of the relay state are read. It writes nothing, and the collator, the
chain and the audit all run it. `apply` writes the result. Read the modules in this order: `config`,
`storage`, `plan`, `child_trie`, `apply`.
"""
