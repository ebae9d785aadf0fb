"""The chains of a running network as a node sees them.

The modules hold blocks, immutable views of chains, steps and rewinds of the network, and the
journal that a node can be resumed from.
"""
