from adk_nb.telemetry.instrumentation import instrument as instrument
from adk_nb.telemetry.instrumentation import uninstrument as uninstrument
from adk_nb.telemetry.tracing import tracer as tracer
