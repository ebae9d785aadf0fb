"""The chains of a running network as a node sees them: kept blocks, immutable views, steps, rewinds, the journal."""
