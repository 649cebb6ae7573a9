from adk_nb.a2a.remote_a2a_agent import RemoteA2aAgent as RemoteA2aAgent
from adk_nb.a2a.server import A2aServer as A2aServer
from adk_nb.a2a.utils.agent_to_a2a import to_a2a as to_a2a
