"""Blocks of real parachains brought into a history: from nodes, from folders of chunks, from exported tables (AU-18).

A source gives blocks, verified by hash and extrinsics root, and their inherents; `fetch` makes segments of ranges.
"""
