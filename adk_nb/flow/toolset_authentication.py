"""Authenticate toolsets before listing their tools."""

import logging

from adk_nb import types
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import CredentialError, UserError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.flow import authentication
from adk_nb.flow.resumption import take
from adk_nb.flow.spec import LlmSpec
from adk_nb.runtime.context import Context
from adk_nb.runtime.interrupts import CREDENTIALS, TOOLSET, is_toolset
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.auth import exchange
from adk_nb.tools.base_toolset import BaseToolset

logger = logging.getLogger(__name__)


async def authenticate_toolsets(ctx: InvocationContext, spec: LlmSpec) -> tuple[list[Event], list[types.FunctionCall]]:
    """Get what an agent's toolsets are let in with; the answers of the message count first.

    Returns:
        The event that asks a person, if one has to: then the agent waits; and what `take` gave.
    """
    waiting = [(one, config) for one in spec.toolsets if (config := one.get_auth_config())]
    if not waiting:
        return [], []
    taken = await take(ctx, CREDENTIALS)
    wanted: dict[str, AuthConfig] = {}
    calls: list[types.FunctionCall] = []
    for toolset, config in waiting:
        key, name = f"{TOOLSET}{config.credential_key}", type(toolset).__name__
        if refused := ctx.decisions.pop(key, None):
            logger.warning("agent %r goes on without the tools of %s: %s", spec.name, name, refused.confirmation.reason)
        elif key not in wanted and not await _is_in(toolset, config, Context(ctx)):
            wanted[key] = config
            calls.append(types.FunctionCall(id=key, name=name, args={}))
    if not wanted or not all(is_toolset(call) for call in taken):  # what was let in runs first
        return [], taken
    asking = Event(author=spec.name, actions=EventActions(requested_auth_configs=wanted))
    return await authentication.ask(ctx, spec.name, calls, {}, asking), taken


async def _is_in(toolset: BaseToolset, config: AuthConfig, context: Context) -> bool:
    """Whether it has what it can be let in with, or no person can change that it has not."""
    shown = None
    try:
        shown = await exchange.find_credential(config, context)
        if shown is None:
            return False
        context.get_invocation_context().credential_by_key[config.credential_key] = shown
        await toolset.get_tools_with_prefix(context)  # kept for this invocation
    except CredentialError as error:
        if not error.refused or shown is None or shown == config.raw_auth_credential:
            return True  # whoever asks it for its tools says why there are none
    except UserError:
        raise
    except Exception as error:  # as there
        logger.debug("%s does not tell what it has: %s", type(toolset).__name__, error)
        return True
    else:
        return True
    return await exchange.renew_credential(config, shown, context) is not None
