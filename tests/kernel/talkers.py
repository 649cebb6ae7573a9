"""The first cell of the kernel tests: agents that take their time, and what they note while they work."""

SETUP = """
%load_ext adk_nb
import asyncio, json, threading, time
from adk_nb import sync, tool, types
from adk_nb.agents import Agent
from adk_nb.models import BaseLlm, LlmResponse, ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat, turn_runner

requests, tokens, closed, tools_ended = [], [], [], []
in_the_middle = threading.Event()

def begun(what):
    print(what, flush=True)
    in_the_middle.set()

def stop_in_the_middle(chat):
    threading.Thread(target=lambda: in_the_middle.wait(30) and turn_runner(chat).stop()).start()

def said(text, **more):
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), **more)

class Slow(BaseLlm):
    '''Streams a token every 20 ms for a minute the first time it is asked; then it answers at once.'''
    async def generate_content_async(self, llm_request, stream=False):
        requests.append(list(llm_request.contents))
        try:
            if len(requests) == 1:
                for number in range(3_000):
                    tokens.append(number)
                    if number == 5: begun("streaming")
                    if stream: yield said(f"word{number} ", partial=True)
                    await asyncio.sleep(0.02)
            yield said("here I am")
        finally:
            await asyncio.sleep(0.01)
            closed.append(len(requests))

class Calls(ScriptedLlm):
    async def generate_content_async(self, llm_request, stream=False):
        requests.append(list(llm_request.contents))
        async for one in super().generate_content_async(llm_request, stream):
            yield one

@tool
def sleepy() -> str:
    '''Sleeps.'''
    begun("sleeping")
    time.sleep(30)
    tools_ended.append("sleepy")

@tool
def busy() -> str:
    '''Computes.'''
    begun("computing")
    end = time.monotonic() + 30
    while time.monotonic() < end: pass
    tools_ended.append("busy")

slow = Agent(name="slow", model=Slow(model="slow"))
sleeper = Agent(name="sleeper", model=Calls(call("sleepy"), "here I am"), tools=[sleepy])
worker = Agent(name="worker", model=Calls(call("busy"), "here I am"), tools=[busy])

def paired(contents):
    '''Whether every call is answered in the very next content, and nothing else is.'''
    waiting = []
    for content in contents:
        parts = content.parts or []
        if [part.function_response.id for part in parts if part.function_response] != waiting:
            return False
        waiting = [part.function_call.id for part in parts if part.function_call]
    return not waiting

def left():
    return [str(task) for task in asyncio.all_tasks(sync.loop()) if not task.done()]
"""
DOES = {"slow": "streaming", "sleeper": "sleeping", "worker": "computing"}
"""Agent -> what it prints when it is in the middle of it."""
