"""The rules of PRISM without I/O, clock or database: from bytes and state to rows and state.

- `wire`: protobuf's wire format, as strict as PR-20 requires.
- `messages`: the messages of an AtalaObject, decoded and encoded.
- `metadata`: the object in the metadata of a Cardano transaction.
- `identifiers`: hashes, DIDs, credentials and their Merkle tree (PR-11, PR-13).
- `signatures`: ECDSA on secp256k1 (PR-12).
- `well_formed`: the form that an operation must have (PR-24).
- `state`: DIDs and batches, and the effects of operations on them (PR-25).
- `ledger`: all DIDs and batches, and the applied operations.
- `process`: the checks in order, from an object to rows (PR-20 to PR-23).
- `filters`: the seven filters, with matching and normal form (PR-40 to PR-42).
- `status`: the status of one operation (PR-60 to PR-62).
"""
