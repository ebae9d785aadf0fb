"""The run of an audit: rounds of units, the ledger between runs, and the following of a history.

Start with `run.audit`. `rounds` finds out which segments are new, has them judged and adds up the
results. `ledger` stores the totals for the next run. `completeness` decides whether a chain is
verified. `follow` repeats the audit while a history grows.
"""
