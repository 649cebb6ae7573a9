"""The command line `adk-nb`: agents of a notebook, a Python file or a folder, without Jupyter."""
