from adk_nb.integrations import crewai as crewai
from adk_nb.integrations import langchain as langchain
from adk_nb.integrations import openai as openai
