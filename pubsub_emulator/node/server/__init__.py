"""The server: HTTP and WebSocket on one port, and what steps the network. Nothing else here knows asyncio."""
