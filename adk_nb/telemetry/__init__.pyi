from adk_nb.telemetry.instrumentation import instrument as instrument
from adk_nb.telemetry.instrumentation import uninstrument as uninstrument
