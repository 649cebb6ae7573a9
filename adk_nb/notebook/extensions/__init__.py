"""What the notebook can do beyond defining agents and talking to them, a folder each."""
