"""Many changes of a trie in one pass along the sorted keys.

The trail leads from above the root to the deepest node on the way to the last key. A node that is
not on the way to the next key is not on the way to any later key either, so it is complete. If
removals left it superfluous, it is dropped or merged. Then it is encoded, and its reference is put
into the node above.

    for each key
      leave the nodes that are not on its way
      go down, copying the nodes that other tries share
      put or drop the leaf
"""

from collections.abc import Mapping

from pubsub_emulator.trie.codec import CHILDREN, digest_of, feed, new_hasher
from pubsub_emulator.trie.nibbles import shared_digits
from pubsub_emulator.trie.nodes import (
    NIBBLE,
    Node,
    Owner,
    encode_branch,
    encode_leaf,
    with_encoded_value,
)


def write(
    root: Node | None, changes: Mapping[bytes, bytes | None], owner: Owner, max_inline: int
) -> tuple[Node | None, int]:
    """Apply `changes` (`None` deletes a key) to the encoded subtree `root`.

    Returns the new root and the change of the number of entries. All nodes are encoded afterwards,
    except for a root that is a new leaf.
    """
    # The node above the root has the root as its only child, so the root is a child like any other.
    above = Node(owner, "", None)
    if root is not None:
        above.set_child(0, root)
    grown = 0
    trail = [above]
    ways = [""]
    node = above
    way = ""
    for key in sorted(changes):
        value = changes[key]
        # The root is child 0 of the node above it.
        digits = "0" + key.hex()
        while not digits.startswith(way):
            complete = trail.pop()
            ways.pop()
            node = trail[-1]
            nibble = NIBBLE[way[len(ways[-1])]]
            way = ways[-1]
            _leave(node, nibble, complete, max_inline)
        depth = len(way)
        size = len(digits)
        while depth < size:
            nibble = NIBBLE[digits[depth]]
            depth += 1
            children = node.children
            child = None if children is None else children[nibble]
            if child is None or children is None:
                if value is not None:
                    node.set_child(nibble, Node(owner, digits[depth:], value))
                    grown += 1
                break
            partial = child.partial
            if partial:
                if not digits.startswith(partial, depth):
                    shared = shared_digits(partial, digits, depth)
                    child = _split(child, shared, owner, max_inline)
                else:
                    shared = len(partial)
                depth += shared
            if child.children is None and depth == size:
                if value is None:
                    node.drop_child(nibble)
                    grown -= 1
                else:
                    leaf = with_encoded_value(child, owner, value, max_inline)
                    children[nibble] = leaf
                    _refer(node, nibble, leaf)
                break
            if child.owner is not owner:
                child = child.copy(owner)
            children[nibble] = node = child
            way = digits[:depth]
            trail.append(child)
            ways.append(way)
        else:
            # The key ends at a branch.
            if value is not None:
                grown += node.value is None
                node.set_value(value)
            elif node.value is not None:
                grown -= 1
                node.set_value(None)
    while len(trail) > 1:
        complete = trail.pop()
        way = ways.pop()
        _leave(trail[-1], NIBBLE[way[len(ways[-1])]], complete, max_inline)
    return None if above.children is None else above.children[0], grown


def _split(node: Node, shared: int, owner: Owner, max_inline: int) -> Node:
    """Split a node after the first `shared` nibbles of its partial key.

    Returns a new branch for these nibbles, with a copy of the node below it.
    """
    partial = node.partial
    branch = Node(owner, partial[:shared], None)
    lower = node.copy(owner)
    lower.set_partial(partial[shared + 1 :])
    if lower.children is not None:
        encode_branch(lower, max_inline)
    branch.set_child(NIBBLE[partial[shared]], lower)
    return branch


def _leave(parent: Node, nibble: int, node: Node, max_inline: int) -> None:
    """Encode `node`, child `nibble` of `parent`.

    Nothing below it changes any more.
    """
    bitmap = node.bits
    if node.value is None and not bitmap & (bitmap - 1):
        # A branch without a value needs two children. With none it is dropped, with one it is
        # merged.
        if not bitmap or node.children is None or parent.children is None:
            parent.drop_child(nibble)
            return
        at = bitmap.bit_length() - 1
        child = node.children[at]
        if child is None:
            return
        merged = child.copy(node.owner)
        merged.set_partial(f"{node.partial}{at:x}{child.partial}")
        parent.children[nibble] = node = merged
    if node.children is None:
        encode_leaf(node, max_inline)
    elif node.refs > 0:
        node.stale = False
    else:
        encode_branch(node, max_inline)
    _refer(parent, nibble, node)


def _refer(parent: Node, nibble: int, child: Node) -> None:
    """Put the hash of the encoded child `nibble` into its parent's encoding.

    If the parent's encoding cannot be patched, mark the reference as old.
    """
    encoded = child.encoded
    at = parent.refs
    if at > 0 and len(encoded) >= 32:
        at += 1 + 33 * CHILDREN[parent.bits & ((1 << nibble) - 1)]
        hasher = new_hasher()
        feed(hasher, encoded)
        old = parent.encoded
        parent.encoded = old[:at] + digest_of(hasher) + old[at + 32 :]
    else:
        parent.refs = -abs(at)
        parent.dirty |= 1 << nibble
