"""The logic of the chains.

It consists of storage, calls, blocks, and the pallets of relay chain and parachains.
"""
