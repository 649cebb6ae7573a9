"""Frames, files and databases as tools; the process that reads them; what it may."""
