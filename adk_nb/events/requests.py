"""Names of the function calls that request something from the user."""

APPROVAL_REQUEST = "adk_request_confirmation"
"""Name of the call that requests an approval, and of the response that answers it. Source: google-adk 2.13."""
CREDENTIAL_REQUEST = "adk_request_credential"
"""Name of the call that requests a credential, and of the response that answers it. Source: google-adk 2.13."""
REQUESTS = (APPROVAL_REQUEST, CREDENTIAL_REQUEST)
INPUT_REQUEST = "adk_request_input"
"""Name of the call that requests input for a model or a graph, and of the response. Source: google-adk 2.13."""
NODE_APPROVAL = "wf_tool_confirmation:"
"""Prefix of the id of a request to approve a graph node. Source: google-adk 2.13."""
CHOICE = "get_user_choice"
"""Name of the call with which a model lets the user choose an option. Source: google-adk 2.13."""
