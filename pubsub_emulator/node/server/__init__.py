"""The node as a server: HTTP and WebSocket connections, limits, metrics, and the loop of blocks."""
