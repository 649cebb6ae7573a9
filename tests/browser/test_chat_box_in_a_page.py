"""A chat box in a real page: a conversation in one output, from the first word to what the saved notebook keeps."""

import pytest
from chats import PAYING, SETUP
from lab import Lab
from selenium.webdriver import Keys

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]

AGENTS = PAYING.replace('"All **settled**."', '"All **settled**.", RuntimeError("the service is down"), "I am back."')
SLOW = """
from adk_nb import types
from adk_nb.models import BaseLlm, LlmResponse

class Slow(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        for number in range(3_000):
            part = types.Part(text=f"word{number} ")
            yield LlmResponse(content=types.Content(role="model", parts=[part]), partial=True)
            await asyncio.sleep(0.02)

payer.model = Slow(model="slow")
"""


def test_a_conversation_is_held_in_one_output_and_kept(lab: Lab):
    page = lab.open(
        lab.write("box.ipynb", SETUP, AGENTS, "%chat payer --height 300", "_run.status", SLOW, "_run.status")
    )
    for cell in (0, 1, 2):
        page.run_cell(cell)
    say = page.wait(".adknb-say")

    say.send_keys("Please pay me back.", Keys.SHIFT, Keys.ENTER, Keys.NULL, "Order A17.", Keys.ENTER)
    page.wait(".adknb-card", "asks to call")
    assert page.talk()[0] == ("you", "Please pay me back.\nOrder A17.")
    say.send_keys("And more", Keys.ENTER)  # is kept until the card is answered
    assert page.wait(".adknb-hint-line").text.startswith("Answer the card")
    page.button("Approve").click()
    page.until(lambda: ("payer", "All settled.") in page.talk(), "the answer")

    say.send_keys(" now?", Keys.ENTER)
    page.wait(".adknb-card[data-kind='error']", "the service is down")
    page.click(".adknb-card .adknb-button", "Retry")
    page.until(lambda: ("payer", "I am back.") in page.talk(), "the second try")
    page.run_cell(3)
    assert page.text(3) == "'done'"

    page.run_cell(4)
    page.wait(".adknb-say").send_keys("Speak.", Keys.ENTER)
    page.until(lambda: "word5 " in page.talk()[-1][1], "some words")
    page.button("Stop").click()
    page.wait(".adknb-status", "stopped")
    page.run_cell(5)
    assert page.text(5) == "'cancelled'"

    page.screenshot("chat-box")
    stored_data = page.saved().cells[2].outputs[1].data
    texts = [element.text for element in page.all(".jp-OutputArea-output") if element.is_displayed()]
    assert not any("you: Speak." in text for text in texts), "what is kept stands beside the box, unseen"
    for text in ("Order A17.", "approves refund by a click", "paid 250.0 for A17", "I am back.", "Stopped."):
        assert text in stored_data["text/html"], text
    page.reload()
    page.until(lambda: ("payer", "I am back.") in page.talk(), "the same conversation")
    page.wait(".adknb-say").send_keys("Still there?", Keys.ENTER)
    page.until(lambda: ("you", "Still there?") in page.talk(), "what is said after that")
    page.button("Stop").click()
    page.js("await panel.sessionContext.session.kernel.restart()")
    page.wait(".adknb-hint-line", "The kernel is gone: run the cell again.")
    assert not page.wait(".adknb-say").is_enabled()
    assert [complaint for complaint in page.complaints() if "anywidget" in complaint] == []


READER = """
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm

reader = Agent(name="reader", model=ScriptedLlm("I have read them.", "And this."), description="Reads what it gets.")
"""
GOT = "[len(part.inline_data.data) for part in reader.model.requests[-1].contents[-1].parts if part.inline_data]"
DROPPED = """
    const files = new DataTransfer();
    files.items.add(new File(["a,b\\n1,2\\n"], "dropped.csv", { type: "text/csv" }));
    const [node, kind] = [document.querySelector(arguments[0]), arguments[1]];
    const fields = { bubbles: true, cancelable: true, composed: true };
    const event = kind === "paste"
        ? new ClipboardEvent(kind, { ...fields, clipboardData: files })
        : new DragEvent(kind, { ...fields, dataTransfer: files });
    return node.dispatchEvent(event);
"""


def test_files_of_the_readers_own_disk_are_chosen_dropped_and_pasted(lab: Lab):
    page = lab.open(lab.write("files.ipynb", SETUP, READER, "%chat reader --height 300", GOT, GOT))
    for cell in (0, 1, 2):
        page.run_cell(cell)
    say = page.wait(".adknb-say")
    long, huge = lab.folder / "long.txt", lab.folder / "huge.txt"
    long.write_text("word " * 2_400_000)  # more than a Jupyter server takes in one message
    huge.write_text("word " * 4_200_000)

    page.click(".adknb-attach", "Attach")
    page.wait(".adknb-attach-own", "20 MB")
    page.all("input[type=file]")[0].send_keys(f"{long}\n{huge}")
    page.wait(".adknb-attached-chip", "long.txt")
    assert "huge.txt has 21 MB, a message takes 20 MB" in page.wait(".adknb-attach-note").text
    assert page.js(DROPPED, ".adknb-talk", "dragover") is False and page.js(DROPPED, ".adknb-talk", "drop") is False
    page.until(lambda: len(page.all(".adknb-composer .adknb-attached-chip")) == 2, "the dropped file")
    assert page.js(DROPPED, ".adknb-say", "paste") is False
    page.until(lambda: len(page.all(".adknb-composer .adknb-attached-chip")) == 3, "the pasted file")
    page.screenshot("attached")
    say.send_keys("What do they say?", Keys.ENTER)
    page.until(lambda: ("reader", "I have read them.") in page.talk(), "the answer")

    assert [chip.text for chip in page.all(".adknb-talk .adknb-attached-chip")] == ["long.txt", *["dropped.csv"] * 2]
    assert not page.all(".adknb-composer .adknb-attached-chip")
    page.run_cell(3)
    assert page.text(3) == "[12000000, 8, 8]"
    say.send_keys("And now?", Keys.ENTER)
    page.until(lambda: ("reader", "And this.") in page.talk(), "the next answer")
    page.run_cell(4)
    assert page.text(4) == "[]"


DROPPED_AND_ENTER = """
    const [node, field] = [document.querySelector(".adknb-talk"), document.querySelector(".adknb-say")];
    for (const name of arguments[0]) {
        const files = new DataTransfer();
        files.items.add(new File(["x".repeat(12e6)], name, { type: "text/plain" }));
        node.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: files }));
    }
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
"""


def test_a_message_waits_for_the_files_that_are_still_read_and_for_the_reader_if_one_is_too_much(lab: Lab):
    page = lab.open(lab.write("reading.ipynb", SETUP, READER, "%chat reader --height 300", GOT, GOT))
    for cell in (0, 1, 2):
        page.run_cell(cell)
    say = page.wait(".adknb-say")

    say.send_keys("What does it say?")
    page.js(DROPPED_AND_ENTER, ["one.txt"])
    page.until(lambda: ("reader", "I have read them.") in page.talk(), "the answer")
    page.run_cell(3)
    assert page.text(3) == "[12000000]"

    say.send_keys("And now?")
    page.js(DROPPED_AND_ENTER, ["one.txt", "two.txt"])
    page.wait(".adknb-attach-note", "two.txt is too much with the others")
    assert [chip.text.split()[0] for chip in page.all(".adknb-composer .adknb-attached-chip")] == ["one.txt"]
    say.send_keys(Keys.ENTER)
    page.until(lambda: ("reader", "And this.") in page.talk(), "the next answer")
    page.run_cell(4)
    assert page.text(4) == "[12000000]"
