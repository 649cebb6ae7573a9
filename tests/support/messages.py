"""What a message says, without its sentence: names, values and what to type."""


def mentions(message: object, facts: str) -> bool:
    """True if `message` has these facts, in this order; " … " stands between them.

    `mentions(error, "'instructions' … 'instruction'")`
    """
    text, at = str(message), 0
    for fact in facts.split("…"):
        found = text.find(fact.strip(), at)
        if found < 0:
            return False
        at = found + len(fact.strip())
    return True
