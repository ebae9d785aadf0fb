"""The framework of every runtime.

It consists of storage, typed items, events, origins, dispatch, hooks, and the executive.
"""
