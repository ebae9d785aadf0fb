"""The common parts of all HTTP servers: listening, access, request bodies and metrics."""
