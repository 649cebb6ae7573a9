"""The panels of a live view: a file each."""
