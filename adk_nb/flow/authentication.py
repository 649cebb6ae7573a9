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
    """Give the tool of `context` its credential. False: a person is asked first.

    Raises:
        CredentialError: There is none, and no person could change that.
    """
    context.auth_credential = await exchange.find_credential(config, context)
    if context.auth_credential is None:
        context.request_credential(config)
    return context.auth_credential is not None


async def ask(
    ctx: InvocationContext,
    author: str,
    calls: Iterable[types.FunctionCall],
    decided: Mapping[str | None, Decision | None],
    results: Event,
) -> list[Event]:
    """The event that asks for what `results` says is needed, once for each credential; none if that cannot be asked.

    What the results say of it has no secrets afterwards; a call for which nobody can be asked has an error as result.
    `decided`: by the id of a call, what a person has approved of it.
    """
    wanted = dict(results.actions.requested_auth_configs)
    for key, config in wanted.items():
        results.actions.requested_auth_configs[key] = config.public()
    groups: dict[str, list[WaitingCall]] = {}
    for call in calls:
        if call.id in wanted:
            waiting = WaitingCall(call=call, decided=decided.get(call.id))
            groups.setdefault(wanted[call.id].credential_key, []).append(waiting)
    parts: list[types.Part] = []
    for waiting in groups.values():
        try:
            config = wanted[waiting[0].call.id or ""]
            parts.append(await _request(ctx, config, waiting, results))
        except (CredentialError, UserError) as error:
            _fail(results, waiting, error)
    ids = {part.function_call.id or "" for part in parts if part.function_call}
    content = types.Content(role="user", parts=parts)
    return [Event(author=author, branch=ctx.branch, content=content, long_running_tool_ids=ids)] if parts else []


async def _request(
    ctx: InvocationContext, config: AuthConfig, waiting: Sequence[WaitingCall], results: Event
) -> types.Part:
    request_id, raw = f"adk-{clock.new_id()}", config.raw_auth_credential
    if config.auth_scheme.type_.value in ("oauth2", "openIdConnect"):
        asked = await oauth.start_authorization(config.auth_scheme, (raw and raw.oauth2) or OAuth2Auth())
        config = config.model_copy(update={"exchanged_auth_credential": exchange.as_client_credential(config, asked)})
        await Context(ctx).save_credential(_kept_for(request_id, config))
    for one in waiting:
        results.actions.requested_auth_configs[one.call.id or ""] = config.public()
    problem = ctx.credential_problems.get(config.credential_key, "")
    return credentials.request(request_id, config, waiting, problem)


def _kept_for(request_id: str, config: AuthConfig) -> AuthConfig:
    """What a request is kept as until it is answered: with the client's secret and the verifier of its answer."""
    return config.model_copy(update={"credential_key": f"{config.credential_key}/{request_id}"})


def _fail(results: Event, waiting: Sequence[WaitingCall], error: Exception) -> None:
    ids = {one.call.id for one in waiting}
    for key in ids:
        results.actions.requested_auth_configs.pop(key or "", None)
    for response in results.get_function_responses():
        if response.id in ids:
            response.response = {"error": f"{type(error).__name__}: {error}"}


async def use_answer(ctx: InvocationContext, interrupt: Interrupt, response: Mapping[str, Any]) -> Decision | None:
    """Exchange the credential that answers `interrupt`, and keep it for its calls and for later.

    Where nothing comes of the answer, the calls are made all the same, and ask again with the problem.

    Returns:
        What is decided of the calls if the answer is a refusal; None: they run.
    """
    if why := credentials.refusal(response):
        return _refused(why)
    await _use(ctx, interrupt, response)
    return None


def _refused(why: str) -> Decision:
    confirmation = ToolConfirmation(confirmed=False, reason=f"authentication failed: {why:.200}")
    return Decision(confirmation=confirmation, ran=False, tool_fingerprint=None)


async def _use(ctx: InvocationContext, asked: Interrupt, said: Mapping[str, Any]) -> None:
    context, config = Context(ctx), credentials.auth_config(asked)
    place = _kept_for(asked.id, config)
    kept = await context.load_credential(place)
    try:
        given = await _credential(config, kept, credentials.read_answer(said))
    except CredentialError as error:
        ctx.credential_problems[config.credential_key] = str(error)
        return
    finally:
        await context.save_credential(place.model_copy(update={"exchanged_auth_credential": None}))
    await exchange.store(config, given, context)


async def _credential(config: AuthConfig, kept: AuthCredential | None, given: AuthCredential | None) -> AuthCredential:
    if given is None:
        raise CredentialError("the answer held no credential")
    if not given.oauth2:
        return given
    if kept is None and given.oauth2.access_token is None:
        raise CredentialError("what the answer belongs to is not kept any more, as after a restart of the kernel")
    client = (kept and kept.oauth2) or OAuth2Auth()
    token = await oauth.token_for_answer(config.auth_scheme, client, given.oauth2)
    return exchange.as_credential(config, token)
