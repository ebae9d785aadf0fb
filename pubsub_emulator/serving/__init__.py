"""The base of every HTTP server here: where it listens, who may call, how long a body may take, and its metrics."""
