"""The import of real parachains' blocks into a history (AU-18).

A source is a group of nodes, a folder of chunks, or exported tables. It returns the inherents of
blocks, and checks the blocks' hashes and extrinsics roots if it has them. `fetch.fetch` turns
ranges of blocks into segments of a history.
"""
