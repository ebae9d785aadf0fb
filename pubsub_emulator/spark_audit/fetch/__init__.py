"""Blocks of real parachains brought into a history: from nodes, from folders of chunks, from exported tables (AU-18).

block      a block as a source tells it, verified by its own hash and extrinsics root
inherent   `set_validation_data` found and decoded by the runtime's own metadata
endpoints  several nodes of one chain: who is asked, how often, and what to do when one fails
nodes      a range of blocks from nodes over JSON-RPC
chunks     chunk folders as SQD's `substrate-dump` writes them
exports    tables with the columns of substrate-etl
fetch      ranges become segments; what is there already is not fetched again
"""
