"""`%record` and `%replay`: record the answers of models, and replay them."""

from traitlets import List, Unicode

from adk_nb.notebook.registry import Extension, Magic, Setting

extension = Extension(
    name="recording",
    magics=[
        Magic("record", f"{__name__}.record:record", f"{__name__}.record:RECORD"),
        Magic("replay", f"{__name__}.record:replay", f"{__name__}.record:REPLAY"),
    ],
    settings=[
        Setting(
            "cassette_dir",
            Unicode("cassettes", help="Folder for the cassettes of %record and %replay, relative to the notebook."),
            check=f"{__name__}.record:check_folder",
        ),
        Setting(
            "redact",
            List(
                Unicode(),
                help="Regular expressions for text to mask in cassettes, in addition to keys, tokens and e-mail "
                "addresses.",
            ),
            check=f"{__name__}.record:check_patterns",
        ),
    ],
    options={"chat": f"{__name__}.options:OPTIONS"},
    checks=[f"{__name__}.record:findings"],
    switches={"ADK_NB_REPLAY": f"{__name__}.record:begin_from_environment"},
    unload=f"{__name__}.record:stop",
)
