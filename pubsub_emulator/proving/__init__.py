"""The cost of a request for relay keys, and proofs of nodes opened and checked.

requests     a request, from digits, a file or a node
names        names of keys, by metadata or well-known ones
sources      the relay states of a node, file, session, history or scenario
costs        `costs_of` a plan: the proofs of all its blocks
tables, documents, plot
             the costs as tables, JSON, a proof file and a chart
verify       a proof in a file against a state root
opening      a node's read proof, key by key

Nothing is printed, and errors are `InputError` or those of the room that found them.
"""
