"""`%%eval` and `%map`: run an agent on cases, or on the rows of a table."""

from traitlets import Float, Unicode

from adk_nb.notebook.registry import Extension, Magic, Setting

extension = Extension(
    name="evaluation",
    magics=[
        Magic("eval", f"{__name__}.eval:eval", f"{__name__}.eval:EVAL"),
        Magic("map", f"{__name__}.map:map", f"{__name__}.map:MAP", text=True),
    ],
    settings=[
        Setting(
            "confirm_above_usd",
            Float(
                None,
                allow_none=True,
                help="%%eval and %map stop after five runs if the projected cost of all runs is above this limit, in "
                "US dollars. Finished runs are kept; --budget lets the rest go on. None: no limit.",
            ),
        ),
        Setting(
            "scheduler",
            Unicode(
                "",
                help="Address of a Dask scheduler (tcp://...) whose workers run %%eval and %map; needs sessions in "
                "PostgreSQL. Empty: this kernel runs them.",
            ),
        ),
    ],
    displays={"adk_nb.evaluation.evaluation:Evaluation": f"{__name__}.eval:display_data"},
)
