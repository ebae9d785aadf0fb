"""The gRPC protocol. The modules are generated from `events.proto`."""
