"""Credentials and security schemes of tools, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "APIKey": "adk_nb.auth.auth_schemes",
        "APIKeyIn": "adk_nb.auth.auth_schemes",
        "AuthConfig": "adk_nb.auth.auth_tool",
        "AuthCredential": "adk_nb.auth.auth_credential",
        "AuthCredentialTypes": "adk_nb.auth.auth_credential",
        "AuthHandler": "adk_nb.auth.auth_handler",
        "AuthScheme": "adk_nb.auth.auth_schemes",
        "AuthSchemeType": "adk_nb.auth.auth_schemes",
        "AuthToolArguments": "adk_nb.auth.auth_tool",
        "HTTPBase": "adk_nb.auth.auth_schemes",
        "HttpAuth": "adk_nb.auth.auth_credential",
        "HttpCredentials": "adk_nb.auth.auth_credential",
        "OAuth2": "adk_nb.auth.auth_schemes",
        "OAuth2Auth": "adk_nb.auth.auth_credential",
        "OAuthFlowAuthorizationCode": "adk_nb.auth.auth_schemes",
        "OAuthFlowClientCredentials": "adk_nb.auth.auth_schemes",
        "OAuthFlows": "adk_nb.auth.auth_schemes",
        "OpenIdConnect": "adk_nb.auth.auth_schemes",
        "OpenIdConnectWithConfig": "adk_nb.auth.auth_schemes",
        "ServiceAccount": "adk_nb.auth.auth_credential",
        "ServiceAccountCredential": "adk_nb.auth.auth_credential",
    },
)
