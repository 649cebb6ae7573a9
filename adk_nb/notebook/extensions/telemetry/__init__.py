"""`%config AdkNb.otlp`: spans of all runs, sent over OTLP."""

from typing import Any

from traitlets import Bool, Enum, Unicode

from adk_nb.notebook.registry import Extension, Setting


class _Endpoint(Unicode[Any, Any]):
    info_text = "an address such as 'http://localhost:4318', or None"


_SEND = f"{__name__}.otlp:send_spans"

extension = Extension(
    name="telemetry",
    settings=[
        Setting(
            "otlp",
            _Endpoint(
                "",
                allow_none=True,
                help="Where spans of all runs are sent over OTLP, by OpenTelemetry's conventions for generative AI: "
                "'http://localhost:4318'. Headers, such as a key, come from the variable OTEL_EXPORTER_OTLP_HEADERS. "
                "Empty or None: nowhere.",
            ),
            check=f"{__name__}.otlp:check_address",
            apply=_SEND,
        ),
        Setting(
            "otlp_content",
            Bool(False, help="Send messages, arguments and results with the spans, with known secrets masked."),
            apply=_SEND,
        ),
        Setting(
            "otlp_conventions",
            Enum(
                ("latest", "1.36"),
                "latest",
                help="Version of the conventions that the spans follow; 1.36 is for dashboards built on gen_ai.system.",
            ),
            apply=_SEND,
        ),
    ],
    unload=f"{__name__}.otlp:stop",
)
