"""The PRISM node: a chain followed, subscriptions and statuses streamed, over gRPC.

chain    a Substrate chain behind JSON-RPC: final blocks into the log, the best branch, anchoring
service  streams, limits and tokens under asyncio (PR-50 to PR-54, PR-60 to PR-63)
node     follows the chain: log, processing, best branch, hand-over
rpc      the gRPC front
"""
