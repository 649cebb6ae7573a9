from adk_nb.tools.auth import exchange as exchange
from adk_nb.tools.auth import oauth as oauth
