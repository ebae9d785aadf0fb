"""The gRPC protocol; `events.proto` is the source of the generated modules."""
