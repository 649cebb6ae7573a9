"""An extension of adk_nb that counts words. `%load_ext adk_nb` imports this file alone."""

from traitlets import Int

from adk_nb.extensions import Extension, Magic, Setting

extension = Extension(
    name="words",
    magics=[Magic("words", "adk_nb_words.words:words", "adk_nb_words.words:WORDS")],
    settings=[Setting("words_limit", Int(50, help="Words of an answer that %words finds long enough."))],
    options={"agent": "adk_nb_words.words:OPTIONS"},
    panels=["adk_nb_words.words:PANEL"],
)
