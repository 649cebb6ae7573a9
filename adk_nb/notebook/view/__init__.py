"""What a reader sees: a run as rows, live and saved, from escaped text only."""
