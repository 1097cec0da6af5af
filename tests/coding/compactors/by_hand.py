"""The vendors' own APIs called by hand on a context, as scripts for the environments of their adapters.

Each script receives the address of a model and a file with the context, a list of turns: the call's identifier, what
the agent said, the command and its output. It prints, as JSON, the role and text of every message that its agent would
go on with. The context is written out in the vendor's own classes.
"""

TASK = "Fix the bug in a.py."
TURNS = [
    ("c0", "Step 0", "cat a.py", "value = 1"),
    ("c1", "Step 1", "cat b.py", "other = 2"),
    ("c2", "Step 2", "pytest", "1 failed"),
    ("c3", "Step 3", "cat c.py", "third = 3"),
]

LANGCHAIN = f"""
import json, sys
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="eirkit", base_url=sys.argv[1], api_key="none", max_retries=0)
middleware = SummarizationMiddleware(model, trigger=("messages", 1), keep=("messages", 4))
messages = [HumanMessage({TASK!r})]
for key, said, command, output in json.load(open(sys.argv[2])):
    call = {{"id": key, "name": "bash", "args": {{"command": command}}}}
    messages += [AIMessage(said, tool_calls=[call]), ToolMessage(output, tool_call_id=key, name="bash")]
state = create_agent(model, tools=[], middleware=[middleware]).invoke({{"messages": messages}})
roles = {{"human": "user", "ai": "assistant", "tool": "tool"}}
print(json.dumps([[roles[one.type], one.content] for one in state["messages"][:-1]]))  # the last is the agent's reply
"""

_STRANDS = """
import json, sys
from strands import Agent
from strands.agent.conversation_manager import SlidingWindowConversationManager, SummarizingConversationManager
from strands.models.openai import OpenAIModel

manager = {manager}
model = OpenAIModel(client_args={{"base_url": sys.argv[1], "api_key": "none"}}, model_id="eirkit")
messages = []
for key, said, command, output in json.load(open(sys.argv[2])):
    use = {{"toolUseId": key, "name": "bash", "input": {{"command": command}}}}
    result = {{"toolUseId": key, "status": "success", "content": [{{"text": output}}]}}
    messages.append({{"role": "assistant", "content": [{{"text": said}}, {{"toolUse": use}}]}})
    messages.append({{"role": "user", "content": [{{"toolResult": result}}]}})
agent = Agent(model=model, messages=messages, conversation_manager=manager, callback_handler=None)
manager.{method}(agent)
found = []
for one in agent.messages:
    first = one["content"][0]
    if "toolResult" in first:
        found.append(["tool", first["toolResult"]["content"][0]["text"]])
    else:
        found.append([one["role"], first["text"]])
print(json.dumps(found))
"""
STRANDS = _STRANDS.format(manager="SummarizingConversationManager(preserve_recent_messages=4)", method="reduce_context")
STRANDS_WINDOW = _STRANDS.format(manager="SlidingWindowConversationManager(window_size=4)", method="apply_management")

ADK = """
import asyncio, json, sys, urllib.request
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.apps.app import EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.apps.compaction import _run_compaction_for_token_threshold
from google.adk.events import Event
from google.adk.flows.llm_flows.context._contents import _get_contents
from google.adk.models import BaseLlm, LlmResponse
from google.adk.sessions import InMemorySessionService
from google.genai import types

class Asked(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        text = llm_request.contents[0].parts[0].text
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
        kind = {"Content-Type": "application/json"}
        request = urllib.request.Request(sys.argv[1] + "/chat/completions", body, kind)
        said = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=said)]))

async def main():
    service = InMemorySessionService()
    session = await service.create_session(app_name="app", user_id="u")
    turns = json.load(open(sys.argv[2]))
    for n, (key, words, command, output) in enumerate(turns):
        call = types.FunctionCall(id=key, name="bash", args={"command": command})
        answer = types.FunctionResponse(id=key, name="bash", response={"result": output})
        said = types.Content(role="model", parts=[types.Part(text=words), types.Part(function_call=call)])
        seen = types.Content(role="user", parts=[types.Part(function_response=answer)])
        for k, content in enumerate((said, seen)):
            event = Event(author="agent", content=content, timestamp=2.0 * n + k + 1, invocation_id=f"i{n}")
            if n == len(turns) - 1 and k == 0:
                event.usage_metadata = types.GenerateContentResponseUsageMetadata(prompt_token_count=10**6)
            await service.append_event(session, event)
    config = EventsCompactionConfig(
        token_threshold=1, event_retention_size=4, summarizer=LlmEventSummarizer(llm=Asked(model="m"))
    )
    app = App(name="app", root_agent=LlmAgent(name="agent", model="m"), events_compaction_config=config)
    await _run_compaction_for_token_threshold(app, session, service)
    found = []
    for content in _get_contents(None, session.events, "agent"):
        for part in content.parts:
            if part.function_response:
                found.append(["tool", part.function_response.response["result"]])
            elif part.text:
                found.append(["assistant" if content.role == "model" else "user", part.text])
    print(json.dumps(found))

asyncio.run(main())
"""

OPENHANDS = """
import json, os, sys
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENHANDS_SUPPRESS_BANNER": "1"}
from openhands.sdk import LLM, Message, TextContent
from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.sdk.context.view import View
from openhands.sdk.event import ActionEvent, LLMConvertibleEvent, ObservationEvent
from openhands.sdk.event.condenser import CondensationRequest
from openhands.sdk.llm import MessageToolCall
from openhands.sdk.tool.schema import Observation
from pydantic import SecretStr

class Output(Observation):
    pass

llm = LLM(model="openai/m", base_url=sys.argv[1], api_key=SecretStr("none"), usage_id="c", num_retries=0)
events = []
for key, said, command, output in json.load(open(sys.argv[2])):
    call = MessageToolCall(
        id=key, name="bash", arguments=json.dumps({"command": command}), origin="completion"
    )
    about = dict(tool_name="bash", tool_call_id=key)
    events.append(ActionEvent(
        thought=[TextContent(text=said)], action=None, tool_call=call, llm_response_id=f"r{key}", **about
    ))
    events.append(ObservationEvent(
        observation=Output(content=[TextContent(text=output)]), action_id=events[-1].id, **about
    ))
events.append(CondensationRequest())
condensation = LLMSummarizingCondenser(llm=llm).condense(View.from_events(events))
view = View.from_events([*events, condensation])
shown = LLMConvertibleEvent.events_to_messages(view.events)
print(json.dumps([[one.role, "".join(part.text for part in one.content)] for one in shown]))
"""
