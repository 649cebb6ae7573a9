"""A comm that leads to no page: what a view sends is kept, and a test says what a page would."""

import queue
import threading
from collections.abc import Callable
from typing import Any

from comm.base_comm import BaseComm

WAIT = 5.0


class Wire(BaseComm):
    """A comm that keeps what it was told to send; `said` is what the page says."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.sent: list[dict[str, Any]] = []
        self.came = threading.Condition()
        self.on_hearing: Callable[[Any], None] = lambda data: None
        """What the page does as soon as it hears something, on the thread that tells it."""
        super().__init__(*args, **kwargs)

    def publish_msg(
        self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **keys: Any
    ) -> None:
        with self.came:
            self.sent.append(data)
            self.came.notify_all()
        self.on_hearing(data)

    def wait_for(self, what: Any) -> None:
        with self.came:
            assert self.came.wait_for(lambda: what(self), WAIT)

    def says(self, **content: Any) -> None:
        self.handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})

    @property
    def customs(self) -> list[dict[str, Any]]:
        return [data["content"] for data in self.sent if data.get("method") == "custom"]

    @property
    def batches(self) -> list[dict[str, Any]]:
        return [content for content in self.customs if content["kind"] == "ops"]

    @property
    def snapshots(self) -> list[dict[str, Any]]:
        return [data["state"]["snapshot"] for data in self.sent if "snapshot" in data.get("state", {})]

    def text(self, row_id: str) -> str:
        ops = [op for batch in self.batches for op in batch["ops"]]
        return "".join(op["s"] for op in ops if op["op"] == "text" and op["id"] == row_id)


class Pages(queue.Queue[Wire]):
    """The views of a notebook that is shown in a page, in their order."""

    def next(self) -> Wire:
        while True:
            page = self.get(timeout=WAIT)
            if page.snapshots:  # a layout has none
                return page


def told(wire: Wire, op: str, **fields: Any) -> list[dict[str, Any]]:
    """The rows or cards that the page was told of and that have these fields."""
    lines = [item[op] for batch in wire.batches for item in batch["ops"] if op in item]
    return [line for line in lines if fields.items() <= line.items()]
