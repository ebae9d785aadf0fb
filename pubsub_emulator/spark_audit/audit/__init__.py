"""The run of an audit: rounds of units, the ledger between runs, and the following of a history.

Start with `run.audit`. `rounds` finds out which segments are new, has them judged and adds up the
results. `work` runs the units of a round on the engine, and `folds` plans those that add up totals.
`ledger` stores the totals for the next run. `completeness` decides whether a chain is verified.
`follow` repeats the audit while a history grows.
"""
