"""What an agent sees of its session: which events, in what order, in whose words."""
