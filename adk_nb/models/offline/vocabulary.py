"""The word lists of the offline matcher: what is empty, what joins, what a parameter's name says of its values."""


def vocabulary(words: str) -> frozenset[str]:
    """The words of a line, as a set."""
    return frozenset(words.split())


PREPOSITIONS = vocabulary("in for of at on about near with by to from into within between as than per via over")
ARTICLES = vocabulary("the a an my our your this that its")
JOINS = vocabulary(", and & or vs versus +")
NAME_JOINERS = vocabulary("de da di do dos del der den la le el al of the van von am upon und y e")
DAYS = vocabulary(
    "today tomorrow yesterday tonight now monday tuesday wednesday thursday friday saturday sunday "
    "january february march april june july august september october november december"
)
NUMBERS = {
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "twelve": 12,
}
WEAK = vocabulary(
    "get show find list give tell look lookup make run compute calculate check fetch read do use call query data value "
    "tool return returns given name word words text number"
)
"""Words that say little about which tool is meant."""
FILLERS = vocabulary("compare versus vs show tell give get find check look up go try again now quickly same instead")
"""Words of a message that may stand beside the arguments without meaning something else."""
STOP = (
    PREPOSITIONS
    | ARTICLES
    | vocabulary(
        "and or but nor is are was were be been being am isn't aren't do does did doing done can could would should "
        "will shall may might must i me we us you he she it they them their his her these those there here what what's "
        "which whom whose when where how how's much many please kindly let want need like know some any all each "
        "every both just also then now so if because not no don't yes out off up down too very really it's i'm i'd "
        "i'll let's have has had thanks thank ok okay going gonna exactly currently only after before since until "
        "during why"
    )
)
"""Words that say nothing of their own."""
OPENERS = (
    STOP
    | FILLERS
    | vocabulary(
        "hi hello hey who calculate compute convert search refund return list look fetch add book order cancel "
        "delete remove send write read open close start stop play make create draw plot print count sum sort filter "
        "load save translate summarise summarize explain describe say ask call run use set put update change rename "
        "buy sell pay roll pick choose take bring help ignore never without dear good morning evening great cool nice "
        "wow perfect super"
    )
)
"""Words that open a sentence with a capital and are no names."""
CHANGING = vocabulary(
    "add approve book buy cancel change create delete deploy drop edit execute exec insert kill mail make move order "
    "pay post publish put refund remove rename replace reset restart run save sell send set shutdown start stop store "
    "submit transfer update upload write"
)
"""What a tool's name says when it changes something; it is called only when the message says so too."""
NEGATIONS = vocabulary("don't not never without stop no cannot can't exclude excluding skip")
LINKS = vocabulary("is are equals named called number no nr id of")
"""What may stand between a parameter's name and its value."""

PLACES = vocabulary("city country place location town region state area capital destination origin station")
CODES = vocabulary("id code number no ref reference ticket isbn sku zip phone order account invoice serial")
QUERIES = vocabulary(
    "query q question text topic search keyword keywords message prompt phrase sentence term terms content body "
    "expression formula sql note comment reason task"
)
DATES = vocabulary("day date when weekday time")
NOT_NAMES = CODES | QUERIES | DATES | vocabulary("column field feature variable unit path file format mode kind type")
"""Parameters that a capital letter alone does not give a value to."""
YEARS = vocabulary("year yr")
MONEY = vocabulary("amount price cost total money budget fee balance pay sum")
COINS = vocabulary("$ € £ ¥ dollar dollars euro euros pound pounds usd eur gbp nok sek kr yen")
COUNTS = vocabulary("n k count limit top number rows size num")
RANKS = vocabulary("top first last best worst largest biggest smallest highest lowest next nearest")
SOURCES = vocabulary("from old source src start origin departure base")
TARGETS = vocabulary("to new target dest destination end arrival into")
ADDRESSES = vocabulary("email mail url link")
FILES = vocabulary("file filename path document")
GENERIC = vocabulary("id name str value code include show with use is has as flag enable")
"""Words of a parameter's name that a message need not say."""
