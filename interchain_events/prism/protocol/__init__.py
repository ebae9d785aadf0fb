"""The gRPC protocol. The modules are generated from `prism.proto`."""
