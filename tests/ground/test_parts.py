"""Copies that stand for what google-genai would have made."""

from adk_nb import parts, types


def test_a_copy_is_equal_to_what_would_have_been_made_and_its_own():
    result = parts.result("id-1", "add", {"result": 3})
    other = parts.result(None, "add", {})
    declared = types.FunctionDeclaration(name="add", description="Adds.")

    made = types.FunctionResponse(id="id-1", name="add", response={"result": 3})
    assert result == types.Part(function_response=made)
    assert parts.content("user", [result, other]) == types.Content(role="user", parts=[result, other])
    assert parts.tool([declared]) == types.Tool(function_declarations=[declared])
    assert parts.content("model", []).model_dump(exclude_unset=True) == {"role": "model", "parts": []}
    assert result.model_dump(exclude_unset=True) == {
        "function_response": {"id": "id-1", "name": "add", "response": {"result": 3}}
    }
