"""The gRPC protocol; `prism.proto` is the source of the generated modules."""
