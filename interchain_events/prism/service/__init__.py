"""The PRISM node: it follows a chain and serves streams of operations and statuses over gRPC.

- `chain`: a Substrate chain behind JSON-RPC, with final blocks, the best branch and anchoring.
- `db_sync`: Cardano, read from a database of cardano-db-sync.
- `service`: streams, limits and tokens under asyncio (PR-50 to PR-54, PR-60 to PR-63).
- `node`: follows the chain with log, processing, best branch and anchoring.
- `rpc`: the gRPC front.
"""
