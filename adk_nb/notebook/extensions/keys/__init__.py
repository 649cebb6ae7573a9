"""`%key`: an API key from the environment, a store of secrets, or a field."""

from adk_nb.notebook.registry import Extension, Magic

extension = Extension(
    name="keys",
    install="adk-nb[keys]",
    magics=[Magic("key", f"{__name__}.key:key", f"{__name__}.key:KEY")],
)
