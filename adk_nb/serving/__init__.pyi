from adk_nb.serving.app import create_app as create_app
from adk_nb.serving.app import new_token as new_token
from adk_nb.serving.server import Server as Server
