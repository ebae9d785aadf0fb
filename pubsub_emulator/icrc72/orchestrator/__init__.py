"""The orchestrator: registers publications and subscriptions, assigns broadcasters, coordinates replays."""
