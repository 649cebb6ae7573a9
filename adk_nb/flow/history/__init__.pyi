from adk_nb.flow.history.compaction import Compaction as Compaction
