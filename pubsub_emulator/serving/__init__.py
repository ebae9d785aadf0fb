"""The base of all HTTP servers: where they listen, who may call, limits of bodies, and metrics."""
