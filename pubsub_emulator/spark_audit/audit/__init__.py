"""The run of an audit: rounds of units, what is new since the last one, the ledger, following a history that grows."""
