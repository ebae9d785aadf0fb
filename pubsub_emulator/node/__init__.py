"""A node that serves the chains of an emulated network over JSON-RPC.

Every chain of the network has a path of its own. The methods are those of a Substrate node, so that
existing clients work, and `pubsub_*` and `dev_*` methods of this project.
"""
