"""Live conversations: text and audio in both directions, while the user may speak at any time."""
