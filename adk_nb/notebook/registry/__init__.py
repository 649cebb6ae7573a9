"""What a notebook defines: agents and tools by name, cell by cell, and the sessions they talk in."""
