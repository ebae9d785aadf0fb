"""Subscriptions to a log: tokens, cursors, catch-up and tail without a seam, bounded queues (EV-20 to EV-26).

cursor    where a client is, as opaque text with a check value
registry  tokens with their filters, in a database; also the protocol `Registry`
hub       who gets which row: a state machine without I/O or clock (pure)
service   hub, log and registry together under asyncio: `subscribe`, `stream`, `cancel`
sse       HTTP with server-sent events
rpc       gRPC, `protocol/events.proto`
"""
