"""The chains of a running network as a node sees them.

The modules contain blocks, immutable views of chains, steps and rewinds of the network, and the
journal from which a node can be resumed.
"""
