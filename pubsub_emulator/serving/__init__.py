"""The base of every HTTP server here: who may call, and how long a body may take."""
