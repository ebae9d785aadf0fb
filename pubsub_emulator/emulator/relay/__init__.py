"""The relay chain: the assembly of its pallets, the binding of queue and XCM, and its chain of blocks."""
