from adk_nb.flow.live.conversation import run_live as run_live
from adk_nb.flow.live.conversation import run_live_turn as run_live_turn
