"""A notebook whose agent has to be let in, at an authorization server that runs beside the lab."""

from lab import Lab, Page

from tests.auth.auth_server import CLIENT, CLIENT_SECRET, REDIRECT, AuthServer

TOOLS = """
from adk_nb.auth import (
    APIKey, APIKeyIn, AuthConfig, AuthCredential, AuthCredentialTypes, HTTPBase, OAuth2, OAuth2Auth,
    OAuthFlowAuthorizationCode, OAuthFlows,
)
from adk_nb.tools import FunctionTool, ToolContext

let_in_with = []

def mail(tool_context: ToolContext) -> str:
    'Reads mail.'
    let_in_with.append(tool_context.auth_credential)
    return "one mail"

def by_code(url):
    flow = OAuthFlowAuthorizationCode(
        authorization_url=url + "/authorize", token_url=url + "/token", scopes={"mail": "read mail"})
    client = OAuth2Auth(client_id=CLIENT, client_secret=CLIENT_SECRET, redirect_uri=REDIRECT)
    raw = AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=client)
    return AuthConfig(auth_scheme=OAuth2(flows=OAuthFlows(authorization_code=flow)), raw_auth_credential=raw)

by_key = AuthConfig(auth_scheme=APIKey(in_=APIKeyIn.header, name="X-Key"))
by_password = AuthConfig(auth_scheme=HTTPBase(scheme="basic"))

def clerk_of(config, *calls_and_tools):
    calls, tools = calls_and_tools[::2], calls_and_tools[1::2]
    model = ScriptedLlm([call("mail"), *calls], "You have **one mail**.")
    return Agent(name="clerk", model=model, tools=[FunctionTool(mail, auth_config=config), *tools])
"""
SEEN = "print(json.dumps([one.model_dump(mode='json', exclude_none=True) for one in let_in_with]))"


def asked(lab: Lab, setup: str, config: str, *args: str) -> Page:
    """A page whose fourth cell waits for a credential; `more` cells come after it."""
    text = f"CLIENT, CLIENT_SECRET, REDIRECT = {CLIENT!r}, {CLIENT_SECRET!r}, {REDIRECT!r}\nclerk = clerk_of({config})"
    page = lab.open(lab.write("let_in.ipynb", setup, TOOLS, text, "%chat clerk Is there mail?", *args))
    for cell in range(4):
        page.run_cell(cell)
    page.wait(".adknb-card")
    return page


def at(server: AuthServer) -> str:
    """The config of a tool that is let in at `server`."""
    return f"by_code({server.url!r})"
