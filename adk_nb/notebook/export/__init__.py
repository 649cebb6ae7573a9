"""A notebook's agents and tools, written as Python that runs without the notebook."""
