"""Adapters: the HTTP interface of a distributor over the log of one network (ID-1, ID-2).

A `ledger` publishes to a network and reads its log. The `desk` has the subscriptions and delivers
events to them. `http` serves both, and `inside` uses both without HTTP. Ledgers exist for an
emulated chain (`chain`), a Substrate chain (`rpc`) and EVM chains (`evm`).
"""
