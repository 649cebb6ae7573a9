"""Which plugins a runner takes, and how it lets go of them."""

import asyncio

import pytest

from adk_nb import sync
from adk_nb.errors import ConfigurationError, PluginError
from adk_nb.plugins import BasePlugin, PluginManager


class Closes(BasePlugin):
    """Counts how often it was closed."""

    closed = 0

    async def close(self) -> None:
        self.closed += 1


class Hangs(BasePlugin):
    """Never comes to an end of closing."""

    async def close(self) -> None:
        await asyncio.Event().wait()


class Fails(BasePlugin):
    """Raises when it is closed."""

    async def close(self) -> None:
        raise ValueError("stuck")


def test_two_plugins_of_one_name_are_refused():
    with pytest.raises(ConfigurationError, match="named 'a'; give one"):
        PluginManager([BasePlugin("a"), BasePlugin("a")])


def test_a_plugin_without_a_name_is_told_how_to_get_one():
    class Nameless(BasePlugin):
        def __init__(self) -> None:
            pass

    with pytest.raises(ConfigurationError, match=r"super\(\).__init__\(name='...'\)"):
        PluginManager([Nameless()])


def test_a_plugin_is_found_by_its_name():
    one = BasePlugin("a")

    assert PluginManager([one]).get_plugin("a") is one
    assert PluginManager([one]).get_plugin("b") is None


def test_only_overridden_hooks_are_called():
    class Own(BasePlugin):
        async def before_run_callback(self, **said: object) -> None: ...

    manager = PluginManager([BasePlugin("a"), Own("b"), Own("c")])

    assert len(manager.hooks("before_run")) == 2
    assert manager.hooks("after_run") == ()


def test_all_plugins_are_closed_and_those_that_did_not_close_are_named():
    last = Closes("last")
    manager = PluginManager([Fails("a"), Hangs("b"), last], close_timeout=0.01)

    with pytest.raises(PluginError) as told:
        sync.run(manager.close())

    assert "close: 'a': ValueError: stuck; 'b': TimeoutError: 0.01 s passed" in str(told.value)
    assert last.closed == 1
