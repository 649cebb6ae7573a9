"""What a newcomer types in the first minute to the offline model: which tool runs with what, and which fact is told."""

from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import Any, Literal

import pytest

from adk_nb.agents import Agent
from adk_nb.notebook.chat.chat import Chat
from adk_nb.tools.function_tool import FunctionTool
from tests.support.each import each

PLANETS = {
    "Jupiter": {
        "name": "Jupiter",
        "moons": 95,
        "day_length_hours": 9.9,
        "year_length_days": 4331,
        "mass_1e24_kg": 1898,
    },
    "Mars": {"name": "Mars", "moons": 2, "day_length_hours": 24.7, "year_length_days": 687, "mass_1e24_kg": 0.642},
    "Saturn": {
        "name": "Saturn",
        "moons": 146,
        "day_length_hours": 10.7,
        "year_length_days": 10747,
        "mass_1e24_kg": 568,
    },
}
ORDERS = {
    "A-17": {"order_id": "A-17", "customer": "Ada", "total_euros": 40.5, "status": "open", "items": ["lamp", "bulb"]},
    "B-2": {"order_id": "B-2", "customer": "Ben", "total_euros": 12.0, "status": "shipped", "items": ["pen"]},
}


def get_weather(city: str, day: str = "today") -> dict[str, Any]:
    """Get the weather in a city."""
    return {"city": city, "day": day, "temperature_c": 18.5, "sky": "cloudy", "wind_kmh": 12, "rain_chance_percent": 40}


def planet_info(name: str) -> dict[str, Any]:
    """Look up facts about a planet.

    Args:
        name: The planet's name, for example Mars.
    """
    if name not in PLANETS:
        raise KeyError(f"no planet is called {name}")
    return PLANETS[name]


def list_planets() -> list[str]:
    """List all the planets."""
    return list(PLANETS)


def convert_money(amount: float, from_currency: str, to_currency: str) -> float:
    """Convert an amount of money from one currency to another."""
    return {("EUR", "USD"): 1.1, ("USD", "EUR"): 0.9}[from_currency, to_currency] * amount


def list_orders(status: Literal["open", "shipped", "cancelled"] | None = None) -> list[dict[str, Any]]:
    """List the orders of the shop."""
    return [order for order in ORDERS.values() if status in (None, order["status"])]


def get_order(order_id: str) -> dict[str, Any]:
    """Get one order by its id."""
    return ORDERS[order_id]


def cancel_order(order_id: str, notify: bool = False) -> str:
    """Cancel an order.

    Args:
        order_id: The id of the order.
        notify: Whether the customer gets a mail.
    """
    return f"order {order_id} is cancelled, {'with' if notify else 'without'} a mail"


class Statistic(Enum):
    MEAN = "mean"
    MEDIAN = "median"
    MAX = "max"


def column_statistic(column: str, statistic: Statistic = Statistic.MEAN) -> float:
    """Compute a statistic of a column of the sales table."""
    return {Statistic.MEAN: 12.5, Statistic.MEDIAN: 11.0, Statistic.MAX: 30.0}[statistic]


def describe_column(column: str) -> dict[str, float]:
    """Describe a column of the sales table: count, mean, smallest and largest value."""
    return {"count": 200, "mean": 12.5, "std": 3.25, "min": 2.0, "max": 30.0}


def list_files(folder: str = ".", extension: str | None = None) -> list[str]:
    """List the files in a folder."""
    return [f"{folder}/notes.{extension or 'txt'}"]


def read_file(path: str, max_lines: int = 10) -> str:
    """Read a text file.

    Args:
        path: Where the file is.
        max_lines: How many lines to read at most.
    """
    return f"the first {max_lines} lines of {path}"


def roll_dice(sides: int = 6, count: int = 1) -> list[int]:
    """Roll dice.

    Args:
        sides: How many sides each has.
        count: How many dice.
    """
    return [sides] * count


def translate(word: str, language: Literal["german", "french", "spanish"]) -> str:
    """Translate an English word."""
    return {"german": "Haus", "french": "maison", "spanish": "casa"}[language]


def add_event(title: str, on: date, all_day: bool = False) -> dict[str, Any]:
    """Add an event to the calendar.

    Args:
        title: What it is called.
        on: The date.
        all_day: Whether it lasts all day.
    """
    return {"title": title, "on": on.isoformat(), "all_day": all_day, "saved": True}


def events_on(day: date) -> list[str]:
    """List the events in the calendar on a day."""
    return [f"dentist at 9 on {day.isoformat()}"]


def add_numbers(numbers: list[float]) -> float:
    """Add numbers and return their sum."""
    return sum(numbers)


def multiply(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def set_light(room: Literal["kitchen", "bedroom"], on: bool) -> str:
    """Switch the light in a room on or off."""
    return f"the {room} is {'on' if on else 'off'}"


PLANET = (planet_info, list_planets)
SHOP = (list_orders, get_order, cancel_order)
TABLE = (column_statistic, describe_column)
FILES = (list_files, read_file)
CALENDAR = (add_event, events_on)
SUMS = (add_numbers, multiply)
Call = tuple[str, dict[str, Any]]


def planet(*names: str) -> list[Call]:
    return [("planet_info", {"name": name}) for name in names]


def weather(city: str, **more: str) -> list[Call]:
    return [("get_weather", {"city": city, **more})]


def money(amount: float, source: str, target: str) -> list[Call]:
    return [("convert_money", {"amount": amount, "from_currency": source, "to_currency": target})]


@pytest.mark.slow
@each(
    "tools, message, calls, facts, not_told",
    [
        (PLANET, "How long is a day on Jupiter?", planet("Jupiter"), ["day length", "9.9 hours"], ["4331", "95"]),
        (PLANET, "How long is a year on Mars?", planet("Mars"), ["year length", "687 days"], ["24.7"]),
        (PLANET, "how many days are in a year on mars", [("planet_info", {"name": "mars"})], ["no planet"], []),
        (PLANET, "How many moons does Saturn have?", planet("Saturn"), ["146"], ["10.7"]),
        (PLANET, "What is the mass of Jupiter?", planet("Jupiter"), ["1898"], ["9.9"]),
        (PLANET, "How heavy is Jupiter?", planet("Jupiter"), ["1898"], ["9.9"]),
        (PLANET, "Compare the moons of Mars and Saturn", planet("Mars", "Saturn"), ["2", "146"], ["687"]),
        (PLANET, "Who are the planets?", [("list_planets", {})], ["Jupiter", "Mars", "Saturn"], []),
        (PLANET, "Tell me about Mars", planet("Mars"), ["687", "24.7", "moons"], []),
        (PLANET, "Tell me the moons and the mass of Mars", planet("Mars"), ["2", "0.642"], ["687"]),
        (PLANET, "Which planets are there?", [("list_planets", {})], ["Jupiter", "Mars", "Saturn"], []),
        (PLANET, "list the planets", [("list_planets", {})], ["Jupiter", "Mars", "Saturn"], []),
        (PLANET, "How many moons has Pluto?", planet("Pluto"), ["did not work", "no planet is called Pluto"], []),
        ((get_weather,), "What's the weather in Oslo?", weather("Oslo"), ["18.5", "cloudy", "12"], []),
        ((get_weather,), "whats the weather like in paris tomorrow", weather("paris", day="tomorrow"), ["18.5"], []),
        ((get_weather,), "What is the temperature in New York?", weather("New York"), ["18.5"], ["cloudy"]),
        ((get_weather,), "How warm is it in Rome?", weather("Rome"), ["18.5"], ["cloudy"]),
        ((get_weather,), "Will it rain in Bergen on Friday?", weather("Bergen", day="Friday"), ["40"], ["cloudy"]),
        ((get_weather,), "How strong is the wind in Oslo?", weather("Oslo"), ["wind", "12 km/h"], ["cloudy"]),
        ((get_weather,), "Weather Berlin", weather("Berlin"), ["18.5"], []),
        ((convert_money,), "Convert 20 EUR to USD", money(20, "EUR", "USD"), ["22"], []),
        ((convert_money,), "convert 50 USD into EUR", money(50, "USD", "EUR"), ["45"], []),
        ((convert_money,), "How much is 100 EUR in USD?", money(100, "EUR", "USD"), ["110"], []),
        (SHOP, "Show me the open orders", [("list_orders", {"status": "open"})], ["A-17"], ["B-2"]),
        (SHOP, "list all orders", [("list_orders", {})], ["A-17", "B-2"], []),
        (SHOP, "What is the status of order A-17?", [("get_order", {"order_id": "A-17"})], ["open"], ["lamp", "40.5"]),
        (SHOP, "Who is the customer of order B-2?", [("get_order", {"order_id": "B-2"})], ["Ben"], ["pen"]),
        (SHOP, "what's the total of order A-17", [("get_order", {"order_id": "A-17"})], ["40.5"], ["Ada"]),
        (SHOP, "Cancel order A-17", [("cancel_order", {"order_id": "A-17"})], ["A-17 is cancelled"], []),
        (
            SHOP,
            "Please cancel order A-17 and notify the customer",
            [("cancel_order", {"order_id": "A-17", "notify": True})],
            ["with a mail"],
            [],
        ),
        (SHOP, "Don't cancel order A-17", [], ["cancel_order"], []),
        (
            TABLE,
            "What is the mean of price?",
            [("column_statistic", {"column": "price", "statistic": "mean"})],
            ["12.5"],
            [],
        ),
        (
            TABLE,
            "median of the price column",
            [("column_statistic", {"column": "price", "statistic": "median"})],
            ["11"],
            [],
        ),
        (TABLE, "Describe the column price", [("describe_column", {"column": "price"})], ["200", "3.25", "30"], []),
        (TABLE, 'Describe the column "unit price"', [("describe_column", {"column": "unit price"})], ["200"], []),
        (FILES, "Which files are in the folder data?", [("list_files", {"folder": "data"})], ["data/notes.txt"], []),
        (FILES, "list the files", [("list_files", {})], ["notes.txt"], []),
        (FILES, "Read notes.txt", [("read_file", {"path": "notes.txt"})], ["10 lines of notes.txt"], []),
        (
            FILES,
            "Read 3 lines of data/notes.txt",
            [("read_file", {"path": "data/notes.txt", "max_lines": 3})],
            ["first 3"],
            [],
        ),
        ((roll_dice,), "Roll a die", [("roll_dice", {})], ["6"], []),
        ((roll_dice,), "roll two dice", [("roll_dice", {"count": 2})], ["6, 6"], []),
        ((roll_dice,), "Roll 3 dice with 20 sides", [("roll_dice", {"count": 3, "sides": 20})], ["20"], []),
        (
            (translate,),
            "Translate house into German",
            [("translate", {"word": "house", "language": "german"})],
            ["Haus"],
            [],
        ),
        (
            (translate,),
            "What is 'house' in French?",
            [("translate", {"word": "house", "language": "french"})],
            ["maison"],
            [],
        ),
        (
            (translate,),
            "translate the word house to spanish",
            [("translate", {"word": "house", "language": "spanish"})],
            ["casa"],
            [],
        ),
        (CALENDAR, "What is on 2030-01-05?", [("events_on", {"day": "2030-01-05"})], ["dentist"], []),
        (CALENDAR, "Which events are on 2030-01-05?", [("events_on", {"day": "2030-01-05"})], ["dentist"], []),
        (
            CALENDAR,
            'Add the event "Lunch with Ben" on 2030-01-05, all day',
            [("add_event", {"title": "Lunch with Ben", "on": "2030-01-05", "all_day": True})],
            ["Lunch with Ben"],
            [],
        ),
        (SUMS, "Add 1, 2.5 and 3", [("add_numbers", {"numbers": [1, 2.5, 3]})], ["6.5"], []),
        (SUMS, "What is the sum of 4 and 5?", [("add_numbers", {"numbers": [4, 5]})], ["9"], []),
        ((add,), "What is 3 + 4?", [("add", {"a": 3, "b": 4})], ["7"], []),
        ((set_light,), "Turn the kitchen light on", [("set_light", {"room": "kitchen", "on": True})], ["on"], []),
        (
            (set_light,),
            "Turn off the light in the bedroom",
            [("set_light", {"room": "bedroom", "on": False})],
            ["off"],
            [],
        ),
        (SUMS, "What is 17 times 3?", [("multiply", {"a": 17, "b": 3})], ["51"], []),
        (SUMS, "17 * 3", [("multiply", {"a": 17, "b": 3})], ["51"], []),
        (SUMS, "multiply 6 by 7", [("multiply", {"a": 6, "b": 7})], ["42"], []),
        (
            (*SUMS, get_weather),
            "What's the weather in Oslo? And multiply 6 by 7",
            [*weather("Oslo"), ("multiply", {"a": 6, "b": 7})],
            ["18.5", "42"],
            [],
        ),
        (
            (*PLANET, get_weather),
            "Which planets are there and how is the weather in Rome?",
            [("list_planets", {}), *weather("Rome")],
            ["Saturn", "cloudy"],
            [],
        ),
    ],
)
def test_the_first_questions_get_their_answer(
    tools: tuple[Callable[..., Any], ...], message: str, calls: list[Call], facts: list[str], not_told: list[str]
):
    reply = ask(tools, message)

    assert called(reply) == calls
    assert [fact for fact in facts if fact not in reply.text] == []
    assert [fact for fact in not_told if fact in reply.text] == []


@each(
    "tools, before, message, calls, facts",
    [
        (PLANET, "How many moons has Jupiter?", "and Mars?", planet("Mars"), ["moons", "2"]),
        (PLANET, "How long is a day on Jupiter?", "What about Saturn?", planet("Saturn"), ["day length", "10.7 hours"]),
        (PLANET, "How many moons has Jupiter?", "Compare Mars and Saturn", planet("Mars", "Saturn"), ["146"]),
        (PLANET, "Which planets are there?", "How many moons has Mars?", planet("Mars"), ["2"]),
        ((get_weather,), "What's the weather?", "Oslo", weather("Oslo"), ["18.5"]),
        (SHOP, "list the open orders", "Get the order A-17", [("get_order", {"order_id": "A-17"})], ["40.5"]),
        (
            SHOP,
            "cancel an order",
            "Cancel the order A-17",
            [("cancel_order", {"order_id": "A-17"})],
            ["A-17 is cancelled"],
        ),
        (SHOP, "Cancel order A-17", "and B-2?", [("get_order", {"order_id": "B-2"})], ["shipped"]),
        (SHOP, "Cancel order A-17", "thanks!", [], ["not a language model"]),
        (SUMS, "multiply 6 by 7", "thank you", [], ["not a language model"]),
    ],
)
def test_a_second_message_is_read_by_itself(
    tools: tuple[Callable[..., Any], ...], before: str, message: str, calls: list[Call], facts: list[str]
):
    chat = Chat(Agent(name="guide", model="offline", tools=list(tools)), show="off")
    chat.ask(before)

    reply = chat.ask(message)

    assert called(reply) == calls
    assert [fact for fact in facts if fact not in reply.text] == []


@each(
    "tools, message, facts",
    [
        (PLANET, "Hello!", ["not a language model", "`planet_info(name)`", "`list_planets()`"]),
        (PLANET, "Good morning", ["not a language model", "planet_info"]),
        (PLANET, "Who are you?", ["not a language model", "planet_info"]),
        (PLANET, "Write a poem about love", ["not a language model", "planet_info"]),
        (PLANET, "Sing me a song", ["not a language model", "planet_info"]),
        (PLANET, "Thanks a lot!", ["not a language model", "planet_info"]),
        (SHOP, "What is the capital of France?", ["not a language model", "get_order"]),
        ((), "Hello", ["not a language model", "no tools", "%key gemini"]),
        ((get_weather,), "What is the weather?", ["get_weather", "city"]),
        ((get_weather,), "Tell me a joke", ["not a language model", "%key gemini", "get_weather"]),
        ((convert_money,), "Convert 20", ["convert_money", "from_currency", "to_currency"]),
        ((translate,), "Translate house", ["language", "german", "french", "spanish"]),
        (SHOP, "Cancel my order", ["cancel_order", "order_id"]),
        (SUMS, "multiply", ["`a`", "`b`"]),
    ],
)
def test_what_it_cannot_do_it_says_with_what_to_type(
    tools: tuple[Callable[..., Any], ...], message: str, facts: list[str]
):
    reply = ask(tools, message)

    assert called(reply) == []
    assert [fact for fact in facts if fact not in reply.text] == []


def test_a_question_goes_to_the_colleague_whose_description_fits():
    space = Agent(name="space", model="offline", description="Knows the planets and their moons.", tools=list(PLANET))
    shop = Agent(name="shop", model="offline", description="Looks after orders of customers.", tools=list(SHOP))
    desk = Agent(name="desk", model="offline", sub_agents=[space, shop])

    reply = Chat(desk, show="off").ask("How many moons has Saturn?")

    assert called(reply) == [("transfer_to_agent", {"agent_name": "space"}), *planet("Saturn")]
    assert "146" in reply.text


def planet_facts(planet: str) -> dict[str, Any]:
    """Look up a planet: mass, diameter, how long its day is.

    Args:
        planet: The planet's English name, for example Mars.
    """
    return {"mass_1e24_kg": PLANETS[planet]["mass_1e24_kg"], "diameter_km": 1000.0, "day_length_hours": 9.9}


@pytest.mark.parametrize(
    ("message", "names", "facts", "not_told"),
    [
        ("Is Jupiter heavier than Saturn?", ["Jupiter", "Saturn"], ["1898", "568"], ["9.9"]),
        ("Compare the diameter of Jupiter and Mars", ["Jupiter", "Mars"], ["diameter is 1000 km"], ["1898"]),
        ("What is the capital of France?", [], ["not a language model", "planet_facts"], []),
        ("Tell me about Mars", ["Mars"], ["0.642", "1000"], []),
    ],
)
def test_a_tool_that_lists_what_it_knows_is_asked_for_nothing_else(
    message: str, names: list[str], facts: list[str], not_told: list[str]
):
    reply = ask((planet_facts,), message)

    assert called(reply) == [("planet_facts", {"planet": name}) for name in names]
    assert [fact for fact in facts if fact not in reply.text] == []
    assert [fact for fact in not_told if fact in reply.text] == []


def add_todo(text: str) -> str:
    """Add a todo to my list."""
    return f"noted: {text}"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("add a todo: buy milk, eggs", "buy milk, eggs"),
        ("Add buy milk to my todo list", "buy milk"),
        ("add todo call mom tomorrow", "call mom tomorrow"),
    ],
)
def test_a_text_is_the_message_without_the_tool_s_own_words_around_it(message: str, text: str):
    assert called(ask((add_todo, get_weather), message)) == [("add_todo", {"text": text})]


def test_an_answer_is_headed_by_the_arguments_that_ran():
    tool = FunctionTool(cancel_order, require_confirmation=True)
    chat = Chat(Agent(name="guide", model="offline", tools=[tool]), show="off")
    chat.ask("Cancel order A-17")

    reply = chat.approve(order_id="B-2")

    first, _, note = reply.text.partition("\n\n")
    assert "B-2" in first
    assert "A-17" not in reply.text
    assert "B-2" in note


def test_an_instruction_makes_no_call():
    agent = Agent(name="guide", model="offline", instruction="Always list the planets first.", tools=list(PLANET))

    assert called(Chat(agent, show="off").ask("Hello")) == []


def ask(tools: tuple[Callable[..., Any], ...], message: str) -> Any:
    return Chat(Agent(name="guide", model="offline", tools=list(tools)), show="off").ask(message)


def called(reply: Any) -> list[Call]:
    return [(call.name, call.args) for event in reply.events for call in event.get_function_calls()]


def count_letter(word: str, letter: str) -> int:
    """Count how often a letter is in a word."""
    return word.count(letter)


@pytest.mark.parametrize(
    ("message", "word", "letter"),
    [
        ("How often is the letter a in the word banana?", "banana", "a"),
        ("How often is the letter A in the word Banana?", "Banana", "A"),
        ("Count the letter i in hippo", "hippo", "i"),
        ("In the word banana count the letter a.", "banana", "a"),
    ],
)
def test_a_letter_that_is_an_article_elsewhere_is_a_value_behind_the_name_of_a_parameter(
    message: str, word: str, letter: str
):
    reply = Chat(Agent(name="counter", model="offline", tools=[count_letter]), show="off").ask(message)

    [called] = [call for event in reply.events for call in event.get_function_calls()]
    assert called.args == {"word": word, "letter": letter}


def send_letter(to: str, letter: str) -> str:
    """Send a letter to somebody."""
    return letter


def test_an_article_between_two_words_is_no_value():
    agent = Agent(name="clerk", model="offline", tools=[send_letter])
    reply = Chat(agent, show="off").ask("Send a letter a friend wrote to Ben")

    calls = [call for event in reply.events for call in event.get_function_calls()]
    assert "a" not in [value for call in calls for value in (call.args or {}).values()]
