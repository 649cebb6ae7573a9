"""The tokens of an event, a turn or a session, as the services counted them, and their cost."""

from collections.abc import Iterable
from dataclasses import dataclass

from adk_nb import types
from adk_nb.errors import MissingExtraError
from adk_nb.events.event import Event
from adk_nb.events.usage import INSTALL_HINT, price, price_table, usages_of
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.view_state import Json

_MOST_PRICED = 300
"""Earlier answers whose price is looked up, a millisecond each. Longer sessions show only their tokens."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens as counted by the models' services; zero where a service gives no count."""

    model_calls: int = 0
    input_tokens: int = 0
    """Including cached tokens."""
    output_tokens: int = 0
    """Without tokens of thoughts."""
    cached_tokens: int = 0
    thoughts_tokens: int = 0
    total_tokens: int = 0

    def __add__(self, usage: "Usage") -> "Usage":
        return Usage(
            model_calls=self.model_calls + usage.model_calls,
            input_tokens=self.input_tokens + usage.input_tokens,
            output_tokens=self.output_tokens + usage.output_tokens,
            cached_tokens=self.cached_tokens + usage.cached_tokens,
            thoughts_tokens=self.thoughts_tokens + usage.thoughts_tokens,
            total_tokens=self.total_tokens + usage.total_tokens,
        )

    def summary(self) -> str:
        """A line for a footer; empty without tokens."""
        if not self.total_tokens:
            return ""
        calls = "1 model call" if self.model_calls == 1 else f"{self.model_calls} model calls"
        return f"{calls} · {self.token_summary()}"

    def token_summary(self) -> str:
        """`1,204 tokens in (cached 800) / 96 out + 40 thinking`."""
        cached = f" (cached {self.cached_tokens:,})" if self.cached_tokens else ""
        thoughts = f" + {self.thoughts_tokens:,} thinking" if self.thoughts_tokens else ""
        return f"{self.input_tokens:,} tokens in{cached} / {self.output_tokens:,} out{thoughts}"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of model calls by the table of genai-prices; an estimate without discounts and taxes."""

    known_usd: float = 0.0
    """US dollars, of the answers whose price is known."""
    unknown: tuple[str, ...] = ()
    """Models without a known price, as their services name them; `?` for an unnamed model."""
    models: tuple[str, ...] = ()
    """All models that answered."""
    model_calls: int = 0
    replayed: int = 0
    """Calls answered from a recording, which cost nothing."""

    def __add__(self, cost: "Cost") -> "Cost":
        return Cost(
            known_usd=self.known_usd + cost.known_usd,
            unknown=tuple(dict.fromkeys((*self.unknown, *cost.unknown))),
            models=tuple(dict.fromkeys((*self.models, *cost.models))),
            model_calls=self.model_calls + cost.model_calls,
            replayed=self.replayed + cost.replayed,
        )

    @property
    def usd(self) -> float | None:
        """US dollars. None: the price of a model is not known."""
        return None if self.unknown else self.known_usd

    def __str__(self) -> str:
        """The cost as text, as `≈ $0.0009`; empty without model calls."""
        if not self.model_calls:
            return ""
        if self.replayed == self.model_calls:
            return "replay, $0 now"
        price_text = f"≈ {dollars(self.known_usd)}" if self.known_usd or not self.unknown else ""
        unknown = f"unknown price ({', '.join(self.unknown)})" if self.unknown else ""
        replayed = f"{self.replayed} of {self.model_calls} replayed" if self.replayed else ""
        return ", ".join(filter(None, (" + ".join(filter(None, (price_text, unknown))), replayed)))


def dollars(usd: float) -> str:
    """`$1.20`, `$0.012`, `$0.0009`."""
    if 0 < usd < 0.0001:
        return "$0.0001 or less"
    digits = 2 if usd >= 1 or not usd else 3 if usd >= 0.01 else 4
    return f"${usd:,.{digits}f}" if usd else "$0"


def usage_of(events: Iterable[Event]) -> Usage:
    """The tokens of all model calls in `events`."""
    return sum((_usage(event) for event in events if _has_usage(event)), start=Usage())


def cost_of(events: Iterable[Event]) -> Cost:
    """The cost of all model calls in `events`.

    Raises:
        MissingExtraError: The table of prices is not installed.
    """
    return sum((_cost(event) for event in events if _has_usage(event)), start=Cost())


class Meter:
    """Adds up tokens and costs of a run, event by event, and those of its session."""

    hinted = False
    """True once this process has shown how to install the prices."""

    def __init__(self, earlier: Iterable[Event], limit: float | None) -> None:
        """`earlier`: the session's events before the run. `limit`: `RunConfig.max_cost_usd` of the run."""
        self._before = [event for event in earlier if _has_usage(event)]
        self._limit = limit
        self._usage, self._cost = Usage(), Cost()
        self._session: tuple[Usage, Cost | None] | None = None
        self._hints = False

    def feed(self, event: Event) -> Json | None:
        """Return the op for a view. None: the event has no tokens."""
        if not _has_usage(event) or not (usage := _usage(event)).total_tokens:
            return None
        self._usage += usage
        tokens = {"tokens": self._usage.total_tokens}
        try:
            self._cost += _cost(event)
            if self._session is None:
                is_short = len(self._before) <= _MOST_PRICED
                self._session = usage_of(self._before), cost_of(self._before) if is_short else None
            return {"op": "usage", "text": self._text(self._session), "title": self._title()} | tokens
        except MissingExtraError:
            self._hints = self._hints or not Meter.hinted
            Meter.hinted = True
            text = self._usage.summary()
            return {
                "op": "usage",
                "text": f"{text} · {INSTALL_HINT}" if self._hints else text,
                "title": INSTALL_HINT,
            } | tokens

    def _text(self, session: tuple[Usage, Cost | None]) -> str:
        parts = [self._usage.summary(), str(self._cost), ", ".join(self._cost.models)]
        used, cost = session
        if used.total_tokens:
            all_tokens = f"session {(used + self._usage).total_tokens:,} tokens"
            parts.append(f"{all_tokens}, {cost + self._cost}" if cost is not None else all_tokens)
        return " · ".join(filter(None, parts))

    def _title(self) -> str:
        sentences = [f"An estimate: {price_table()}"]
        if self._limit is not None:
            sentences.append(limit_warning(self._cost, self._limit) or f"The run may cost {dollars(self._limit)}")
        return ". ".join(sentences)


def limit_warning(cost: Cost, limit: float) -> str:
    """A warning that a limit has no effect, since the price of a model is unknown; empty if it has."""
    if not cost.unknown:
        return ""
    return f"the limit of {dollars(limit)} does not hold: no price is known for {', '.join(cost.unknown)}"


def row_usage(event: Event) -> Json | None:
    """The tokens of an event for its row: a short text, and a title with cost and models. None: it has no tokens."""
    if not _has_usage(event) or not (usage := _usage(event)).total_tokens:
        return None
    parts = [usage.token_summary()]
    try:
        cost = _cost(event)
        parts += [str(cost), *cost.models]
    except MissingExtraError:
        pass
    return {"text": f"{usage.total_tokens:,} tok", "title": " · ".join(parts)}


def _has_usage(event: Event) -> bool:
    return next(usages_of(event), None) is not None


def _usage(event: Event) -> Usage:
    return sum((_tokens(usage.tokens) for usage in usages_of(event)), start=Usage())


def _tokens(metadata: types.GenerateContentResponseUsageMetadata) -> Usage:
    return Usage(
        model_calls=1,
        input_tokens=(metadata.prompt_token_count or 0) + (metadata.tool_use_prompt_token_count or 0),
        output_tokens=metadata.candidates_token_count or 0,
        cached_tokens=metadata.cached_content_token_count or 0,
        thoughts_tokens=metadata.thoughts_token_count or 0,
        total_tokens=metadata.total_token_count or 0,
    )


def _cost(event: Event) -> Cost:
    total = Cost()
    for model, metadata, is_replayed in usages_of(event):
        models = (one_line(model, 100),) if model else ()
        if is_replayed:
            total += Cost(models=models, model_calls=1, replayed=1)
        elif (usd := price(model, metadata)) is None:
            total += Cost(unknown=models or ("?",), models=models, model_calls=1)
        else:
            total += Cost(known_usd=usd, models=models, model_calls=1)
    return total
