"""The definitions of a notebook, agents and tools by name, and its sessions."""
