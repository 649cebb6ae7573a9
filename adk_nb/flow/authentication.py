"""Authenticate tools: ask the user for a credential, exchange the answer, hand the credential to the tool."""

from collections.abc import Iterable, Mapping, Sequence
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
from adk_nb.tools.auth import exchange, oauth


async def authenticate(config: AuthConfig, context: Context) -> bool:
    """Give the tool of `context` its credential. False: the user has to be asked first.

    Raises:
        CredentialError: There is none, and the user could not supply one.
    """
    context.auth_credential = await exchange.find_credential(config, context)
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
    configs = dict(results.actions.requested_auth_configs)
    for key, config in configs.items():
        # The event is stored: it must hold no secrets.
        results.actions.requested_auth_configs[key] = config.public()
    calls_by_credential: dict[str, list[WaitingCall]] = {}
    for call in calls:
        if call.id in configs:
            waiting_call = WaitingCall(call=call, decided=decisions.get(call.id))
            calls_by_credential.setdefault(configs[call.id].credential_key, []).append(waiting_call)
    parts: list[types.Part] = []
    for waiting_calls in calls_by_credential.values():
        try:
            config = configs[waiting_calls[0].call.id or ""]
            parts.append(await _request_part(ctx, config, waiting_calls, results))
        except (CredentialError, UserError) as error:
            _set_errors(results, waiting_calls, error)
    ids = {part.function_call.id or "" for part in parts if part.function_call}
    content = types.Content(role="user", parts=parts)
    return [Event(author=author, branch=ctx.branch, content=content, long_running_tool_ids=ids)] if parts else []


async def _request_part(
    ctx: InvocationContext, config: AuthConfig, waiting_calls: Sequence[WaitingCall], results: Event
) -> types.Part:
    request_id, raw_credential = f"adk-{clock.new_id()}", config.raw_auth_credential
    if config.auth_scheme.type_.value in ("oauth2", "openIdConnect"):
        pending_credential = await oauth.start_authorization(
            config.auth_scheme, (raw_credential and raw_credential.oauth2) or OAuth2Auth()
        )
        config = config.model_copy(
            update={"exchanged_auth_credential": exchange.as_client_credential(config, pending_credential)}
        )
        # The PKCE verifier must survive until the answer, outside of the stored event.
        await Context(ctx).save_credential(_pending_config(request_id, config))
    for waiting_call in waiting_calls:
        results.actions.requested_auth_configs[waiting_call.call.id or ""] = config.public()
    problem = ctx.credential_problems.get(config.credential_key, "")
    return credentials.request(request_id, config, waiting_calls, problem)


def _pending_config(request_id: str, config: AuthConfig) -> AuthConfig:
    """The config whose key stores the client secret and the PKCE verifier until the request is answered."""
    return config.model_copy(update={"credential_key": f"{config.credential_key}/{request_id}"})


def _set_errors(results: Event, waiting_calls: Sequence[WaitingCall], error: Exception) -> None:
    ids = {waiting_call.call.id for waiting_call in waiting_calls}
    for key in ids:
        results.actions.requested_auth_configs.pop(key or "", None)
    for response in results.get_function_responses():
        if response.id in ids:
            response.response = {"error": f"{type(error).__name__}: {error}"}


async def use_answer(ctx: InvocationContext, interrupt: Interrupt, response: Mapping[str, Any]) -> Decision | None:
    """Exchange the credential that answers `interrupt`, and store it for its calls and for later ones.

    If the exchange fails, the calls run all the same, and request the credential again with the problem.

    Returns:
        A rejection of the calls if the user refused; None if they run.
    """
    if reason := credentials.refusal(response):
        return _rejection(reason)
    await _store_answer(ctx, interrupt, response)
    return None


def _rejection(reason: str) -> Decision:
    confirmation = ToolConfirmation(confirmed=False, reason=f"authentication failed: {reason:.200}")
    return Decision(confirmation=confirmation, ran=False, tool_fingerprint=None)


async def _store_answer(ctx: InvocationContext, interrupt: Interrupt, response: Mapping[str, Any]) -> None:
    context, config = Context(ctx), credentials.auth_config(interrupt)
    pending_config = _pending_config(interrupt.id, config)
    client_credential = await context.load_credential(pending_config)
    try:
        credential = await _exchange(config, client_credential, credentials.read_answer(response))
    except CredentialError as error:
        ctx.credential_problems[config.credential_key] = str(error)
        return
    finally:
        # An authorization code works once: after the first answer the pending half is useless.
        await context.save_credential(pending_config.model_copy(update={"exchanged_auth_credential": None}))
    await exchange.store(config, credential, context)


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
    token = await oauth.token_for_answer(config.auth_scheme, client, credential.oauth2)
    return exchange.as_credential(config, token)
