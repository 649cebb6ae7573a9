"""Live conversations: words and sound both ways, while the user may speak at any time."""
