from adk_nb.engines.dbos_engine import DbosEngine as DbosEngine
from adk_nb.engines.dbos_engine import Outcome as Outcome
