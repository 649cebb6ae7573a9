"""Names of the calls with which the runtime asks a person."""

APPROVAL_REQUEST = "adk_request_confirmation"
"""Name of the call that asks a person for approval, and of the response that answers."""
CREDENTIAL_REQUEST = "adk_request_credential"
"""Name of the call that asks a person to let a tool in somewhere, and of the response that answers."""
REQUESTS = (APPROVAL_REQUEST, CREDENTIAL_REQUEST)
INPUT_REQUEST = "adk_request_input"
"""Name of the call with which a model, or a graph, asks a person something, and of the response that answers."""
NODE_APPROVAL = "wf_tool_confirmation:"
"""The id of a question starts so that asks whether a node of a graph may run. Source: google-adk 2.13."""
CHOICE = "get_user_choice"
"""Name of the call with which a model lets the user choose. Source: google-adk 2.13."""
