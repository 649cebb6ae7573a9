"""Authenticate tools: ask the user for a credential, exchange the answer, hand the credential to the tool."""

from collections.abc import Iterable, Mapping
from typing import Any

from adk_nb import clock, types
from adk_nb.auth.auth_credential import AuthCredential, OAuth2Auth
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import CredentialError, UserError
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime import credentials
from adk_nb.runtime.context import Context
from adk_nb.runtime.interrupts import Interrupt, WaitingCall
from adk_nb.runtime.invocation_context import Decision, InvocationContext
from adk_nb.tools import auth


async def authenticate(config: AuthConfig, context: Context) -> bool:
    """Give the tool of `context` its credential. False: the user has to be asked first.

    Raises:
        CredentialError: There is none, and the user could not supply one.
    """
    context.auth_credential = await auth.exchange.find_credential(config, context)
    if context.auth_credential is None:
        context.request_credential(config)
    return context.auth_credential is not None


async def request_credentials(
    ctx: InvocationContext,
    author: str,
    calls: Iterable[types.FunctionCall],
    decisions: Mapping[str | None, Decision | None],
    results: Event,
) -> list[Event]:
    """Build the event with one request for each credential that `results` needs; [] if none can be requested.

    Removes the secrets from the configs in `results`. A call whose credential cannot be requested gets an error as
    result. `decisions`: earlier approvals, by call id.
    """
    requested = results.actions.requested_auth_configs
    configs = dict(requested)
    # The event is stored: it must hold no secrets.
    requested.update({key: config.public() for key, config in configs.items()})
    calls_by_credential: dict[str, list[WaitingCall]] = {}
    for call in calls:
        if call.id in configs:
            waiting_call = WaitingCall(call=call, decided=decisions.get(call.id))
            calls_by_credential.setdefault(configs[call.id].credential_key, []).append(waiting_call)
    parts: list[types.Part] = []
    for waiting_calls in calls_by_credential.values():
        ids = [waiting_call.call.id or "" for waiting_call in waiting_calls]
        config, request_id = configs[ids[0]], f"adk-{clock.new_id()}"
        try:
            if config.auth_scheme.type_.value in ("oauth2", "openIdConnect"):
                raw_credential = config.raw_auth_credential
                client = (raw_credential and raw_credential.oauth2) or OAuth2Auth()
                pending = await auth.oauth.start_authorization(config.auth_scheme, client)
                exchanged = auth.exchange.as_client_credential(config, pending)
                config = config.model_copy(update={"exchanged_auth_credential": exchanged})
                # The PKCE verifier must survive until the answer, outside of the stored event.
                await Context(ctx).save_credential(_pending_config(request_id, config))
            requested.update({key: config.public() for key in ids})
            problem = ctx.credential_problems.get(config.credential_key, "")
            parts.append(credentials.request(request_id, config, waiting_calls, problem))
        except (CredentialError, UserError) as error:
            for key in ids:
                requested.pop(key, None)
            for response in results.get_function_responses():
                if response.id in ids:
                    response.response = {"error": f"{type(error).__name__}: {error}"}
    if not parts:
        return []
    request_ids = {part.function_call.id or "" for part in parts if part.function_call}
    content = types.Content(role="user", parts=parts)
    return [Event(author=author, branch=ctx.branch, content=content, long_running_tool_ids=request_ids)]


def _pending_config(request_id: str, config: AuthConfig) -> AuthConfig:
    """The config whose key stores the client secret and the PKCE verifier until the request is answered."""
    return config.model_copy(update={"credential_key": f"{config.credential_key}/{request_id}"})


async def use_answer(ctx: InvocationContext, interrupt: Interrupt, response: Mapping[str, Any]) -> Decision | None:
    """Exchange the credential that answers `interrupt`, and store it for its calls and for later ones.

    If the exchange fails, the calls run all the same, and request the credential again with the problem.

    Returns:
        A rejection of the calls if the user refused; None if they run.
    """
    if reason := credentials.refusal(response):
        confirmation = ToolConfirmation(confirmed=False, reason=f"authentication failed: {reason:.200}")
        return Decision(confirmation=confirmation, ran=False, tool_fingerprint=None)
    context, config = Context(ctx), credentials.auth_config(interrupt)
    pending_config = _pending_config(interrupt.id, config)
    client_credential = await context.load_credential(pending_config)
    try:
        credential = await _exchange(config, client_credential, credentials.read_answer(response))
    except CredentialError as error:
        ctx.credential_problems[config.credential_key] = str(error)
        return None
    finally:
        # An authorization code works once: after the first answer the pending half is useless.
        await context.save_credential(pending_config.model_copy(update={"exchanged_auth_credential": None}))
    await auth.exchange.store(config, credential, context)
    return None


async def _exchange(
    config: AuthConfig, client_credential: AuthCredential | None, credential: AuthCredential | None
) -> AuthCredential:
    if credential is None:
        raise CredentialError("the answer held no credential")
    if not credential.oauth2:
        return credential
    if client_credential is None and credential.oauth2.access_token is None:
        raise CredentialError("the stored half of this credential request is gone, for example after a kernel restart")
    client = (client_credential and client_credential.oauth2) or OAuth2Auth()
    token = await auth.oauth.token_for_answer(config.auth_scheme, client, credential.oauth2)
    return auth.exchange.as_credential(config, token)
