"""`%serve`: an agent of the notebook as an HTTP service on this machine."""

from adk_nb.notebook.registry import Extension, Magic

extension = Extension(
    name="serving",
    magics=[Magic("serve", f"{__name__}.serve:serve", f"{__name__}.serve:SERVE")],
    unload=f"{__name__}.serve:stop_serving",
)
