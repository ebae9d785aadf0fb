"""The rules of PRISM without I/O, clock or database: bytes and state in, rows and state out.

wire         protobuf's wire format, as strict as PR-20 asks
messages     the messages of an AtalaObject, decoded and encoded
identifiers  hashes, DIDs, credentials and their Merkle tree (PR-11, PR-13)
signatures   ECDSA on secp256k1 (PR-12)
well_formed  what an operation may hold (PR-24)
state        DIDs and batches, and what operations do to them (PR-25)
ledger       all DIDs and batches, and which operations were applied
process      the checks in order, from an object to rows (PR-20 to PR-23)
filters      the seven filters: matching and normal form (PR-40 to PR-42)
status       the status of one operation (PR-60 to PR-62)
"""
