"""What a reader types: the magics, their parser, completion and settings."""
