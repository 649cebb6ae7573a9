from adk_nb.a2a.utils.agent_to_a2a import to_a2a as to_a2a
