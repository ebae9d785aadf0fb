"""The sources of a log's blocks (EV-4).

- `fields`: an emulated event's fields, in the form in which metadata describes them.
- `network`: an observer of an emulated network in the same process.
- `rpc`: any Substrate node over JSON-RPC.
- `history`: a written history of `spark_audit`.
"""
