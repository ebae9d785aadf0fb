"""The relay chain: its blocks, its runtime, and the execution of XCM messages."""
