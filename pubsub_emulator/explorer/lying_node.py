"""A fuzz target: the page about a node that lies."""

from pubsub_emulator.explorer.remote import page_of_node
from pubsub_emulator.node.lying_node import BLOCKS, reads_a_node
from pubsub_emulator.runtime.rules import SHIPPED


@reads_a_node("explore")
def _explore(url: str) -> str:
    return f"{page_of_node(url, BLOCKS, lambda _done, _total: None, SHIPPED)[1]} blocks"
