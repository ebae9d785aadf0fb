"""The framework of every runtime: storage, typed items, events, origins, dispatch, hooks, and the executive."""
