"""Subscriptions to a log: tokens, cursors and streams (EV-20 to EV-26).

A stream first catches up from the log and then gets new rows. No row is missed or repeated at the
transition. The queue of each client is limited.

- `cursor`: the position of a client, as opaque text with a check value.
- `registry`: tokens with their filters, in a database, and the interface `SubscriptionRegistry`.
- `hub`: decides which stream gets which row. It is a state machine without I/O or clock.
- `streams`: the limits of open streams.
- `service`: the hub, the log and the registry together under asyncio.
- `sse`: HTTP with server-sent events.
- `rpc`: gRPC, `protocol/events.proto`.
"""
