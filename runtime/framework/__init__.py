"""What every runtime is made of: storage, typed items, events, origins, dispatch, hooks, and the executive."""
