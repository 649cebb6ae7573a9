"""A conversation with an agent: its turns, its open questions, its answers."""
