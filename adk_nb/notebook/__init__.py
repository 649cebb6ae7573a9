"""The notebook floor: the only one that knows IPython and widgets."""
