"""`%tool --openapi`, `%tool --mcp`: toolsets that a line makes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from adk_nb import sync
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.tools.openapi_tool import OpenAPIToolset
from tests.notebook.conftest import Shell
from tests.tools.mcp_talk import Service

SHOP = """
openapi: 3.0.0
info: {title: Shop, version: "1"}
servers: [{url: "https://shop.example.com"}]
paths:
  /orders:
    get:
      operationId: listOrders
      summary: List orders
      responses: {"200": {description: ok}}
  /refund:
    post:
      operationId: refund
      parameters: [{name: amount, in: query, schema: {type: number}}]
      responses: {"200": {description: ok}}
"""


@pytest.fixture
def work(tmp_path: Path, shell: Shell) -> Path:
    """The folder of the notebook."""
    shell.ip.starting_dir = str(tmp_path)
    (tmp_path / "shop.yaml").write_text(SHOP, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.stop()


def test_a_document_beside_the_notebook_becomes_a_toolset_of_its_name(shell: Shell, work: Path) -> None:
    first = shell.cell("%tool --openapi shop.yaml")
    toolset = shell.names["shop"]
    again = shell.cell("%tool --openapi shop.yaml")
    unchanged = shell.names["shop"] is toolset
    fewer = shell.cell('%tool shop --openapi shop.yaml --only refund --confirm "amount > 3"')

    assert isinstance(toolset, OpenAPIToolset)
    assert str(first).splitlines() == ["shop v1", "2 tools: list_orders, refund"]
    assert str(again).startswith("shop v1, unchanged") and unchanged
    assert str(fewer) == "shop v1 → v2; asks before a call if amount > 3\n1 tool: refund"
    assert '"name": "refund"' in str(shell.cell("%tools --schema shop"))
    assert "list_orders" not in str(shell.cell("%tools --schema shop"))
    assert shell.names["shop"].require_confirmation == "amount > 3"


def test_an_agent_calls_what_a_server_offers(shell: Shell, service: Service) -> None:
    told = shell.cell(f"%tool --mcp http://127.0.0.1:{service.port}/mcp --only add")
    shell.names["model"] = ScriptedLlm(call("add", a=2, b=3), "Five.")
    shell.cell("%%agent adder -m model -t mcp\nAdd.")
    reply = shell.cell("%chat adder 2 + 3?")

    assert str(told) == "mcp v1\n1 tool: add"
    assert reply.text == "Five."
    assert "5" in str([event.get_function_responses() for event in reply.events])
    assert "add(a=2, b=3) → 5" in str(shell.cell("%trace"))
    offline = shell.cell("%chat adder -m offline Add a=2 b=3")
    assert offline.text == "Adding 2 and 3 gives 5."
    sync.run(shell.names["mcp"].close())


def test_a_server_that_is_not_reached_is_asked_again_later(shell: Shell) -> None:
    told = str(shell.cell("%tool docs --mcp http://127.0.0.1:9/mcp")).splitlines()

    assert told[0] == "docs v1"
    assert "'http://127.0.0.1:9/mcp'" in told[1]


WRONG = [
    ("%tool --openapi shp.yaml", "shp.yaml cannot be read (No such file or directory); did you mean 'shop.yaml'?"),
    ("%tool shop --openapi /nope/nope.yaml", "/nope/nope.yaml cannot be read (No such file or directory); a relative"),
    ("%tool shop --openapi {work}/shp.yaml", "{work}/shp.yaml cannot be read"),
    ("%tool shop --openapi {work}/shp.yaml", "did you mean '{work}/shop.yaml'?"),
    (
        "%tool shop --openapi ../{work.name}",
        "../{work.name} cannot be read (Is a directory); a relative path starts in",
    ),
    ("%tool shop --openapi shop.yaml --only refunds", "there is no tool 'refunds'; did you mean 'refund'?"),
    ("%tool --openapi shop.yaml --timeout 3", "%tool --openapi has no --timeout, which is for functions"),
    ("%tool --openapi shop.yaml --rename a=b", "%tool --openapi has no --rename"),
    ("%tool --openapi shop.yaml --mcp http://a/b", "--openapi and --mcp are two toolsets"),
    ("%tool a b --openapi shop.yaml", "makes one toolset, and there are 2 names: a, b"),
    ("%%tool --openapi shop.yaml\nx", "write %tool --openapi shop.yaml"),
    ('%tool --openapi shop.yaml --confirm "amout > 3"', "there is no 'amout'; did you mean amount?"),
    ("%tool --mcp shop", "%tool --mcp takes a URL, as https://example.com/mcp"),
    (
        "%tool --mcp http://127.0.0.1:9/guide",
        "'guide' is another variable here; give the toolset one, as %tool shop --mcp",
    ),
    ("%tool guide --mcp http://127.0.0.1:9/mcp", "'guide' is an agent (In[2])"),
]


def test_what_is_wrong_with_the_line_is_said_with_what_to_write(shell: Shell, work: Path) -> None:
    shell.cell("%%agent guide\nGuide.")
    for line, said in WRONG:
        assert said.format(work=work) in shell.fails(line.format(work=work))
    assert shell.ip.adk_nb.tool_names == []


def test_a_toolset_of_a_line_is_exported(shell: Shell, work: Path) -> None:
    shell.cell("%tool shop --openapi shop.yaml --only refund\n%tool docs --mcp http://127.0.0.1:9/sse --confirm")
    shell.cell("%%agent guide -t shop,docs\nGuide.")
    said = str(shell.cell("%export agents/"))
    code = (work / "agents/agent.py").read_text()

    assert "note: shop " in said and " ../shop.yaml" in said
    assert 'joinpath("../shop.yaml")' in code
    assert re.search(r'SseConnectionParams\(url="http://127.0.0.1:9/sse"\),\s+require_confirmation=True,', code)

    shell.cell("%tool shop --openapi shop.yaml --confirm")
    message = shell.fails("%export agents/")
    assert "'shop'" in message and "%export agent.py" in message
    shell.cell("%export agent.py")
    assert "require_confirmation=True" in (work / "agent.py").read_text()
