"""Networks and their blocks in front of people's eyes: drawings of proofs, notebook cards, the page of a run."""
