"""The import of real parachains' blocks into a history (AU-18).

A source is nodes, a folder of chunks, or exported tables. It yields blocks whose hash and
extrinsics root were checked, as far as it has them, with their inherents. `fetch.fetch` makes
ranges of them segments of a history.
"""
