"""The audit of a history: each block judged again, findings with evidence, and figures."""
