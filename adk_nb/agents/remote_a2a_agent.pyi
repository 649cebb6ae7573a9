from adk_nb.a2a.protocol import AGENT_CARD_WELL_KNOWN_PATH as AGENT_CARD_WELL_KNOWN_PATH
from adk_nb.a2a.remote_a2a_agent import DEFAULT_TIMEOUT as DEFAULT_TIMEOUT
from adk_nb.a2a.remote_a2a_agent import RemoteA2aAgent as RemoteA2aAgent
from adk_nb.errors import A2AClientError as A2AClientError
from adk_nb.errors import AgentCardResolutionError as AgentCardResolutionError
