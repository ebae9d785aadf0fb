"""Candid, the Internet Computer's message format: types, `.did` files, writer, reader (IC-11)."""
