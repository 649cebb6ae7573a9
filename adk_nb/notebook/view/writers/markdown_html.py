"""Untrusted markdown as safe html, complete or streamed piece by piece, and the formulas in it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from adk_nb.notebook.view.plain_text import cleaned, is_safe_link
from adk_nb.notebook.view.writers.elements import (
    ATTRIBUTES,
    LINK_REL,
    TAGS,
    Html,
    code,
    coloured,
    element,
    escaped,
    formula,
)

MAX_TEX = 2_000
"""Characters of one formula."""
_DEEPEST = 40


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FORMULA = re.compile(
    rf"""
      \$\$(?P<block>(?:[^$\\]|\\[^()\[\]]){{1,{MAX_TEX}}}?)\$\$
    | \\\[(?P<bracket>(?:[^\\]|\\[^()\[\]]){{1,{MAX_TEX}}}?)\\\]
    | \\\((?P<paren>(?:[^\\]|\\[^()\[\]]){{1,{MAX_TEX}}}?)\\\)
    | (?<![\w$\\])\$(?![\s$])(?P<dollar>(?:[^$\\]|\\[^()\[\]]){{1,{MAX_TEX}}}?)(?<![\s\\])\$(?![\d$])
    """,
    re.VERBOSE,
)
_EMPTY_LINE = re.compile(r"\n[ \t]*\n")
_IS_TEX = re.compile(r"[\\=^_+*/<>]")
"""Characters of which a formula has at least one, unlike other text in such delimiters: an escaped bracket of markdown,
`\\[1\\]`, and words between two prices.
"""
_PRICE = re.compile(r"\d[\d.,]*[;,]?\s")
_OTHER_MARKUP = re.compile(r"`|~~~|\]\s*[(:\[]|!\[|\\\\\s*\[(?!\d(?:\.\d+)?(?:em|ex)\]|\d\d?pt\])")
"""Markup for renderers without mathematics: code, links and images; and TeX rows moved over other rows."""
_COMMAND = re.compile(r"\\(?:([A-Za-z]+)\*?|(.)|$)", re.DOTALL)
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*(?:\{([^{}]*)\})?")
_SIGNS = frozenset("\\,;:!{}|$%&#_ >\n")
_ENVIRONMENTS = _names(
    "align aligned alignat alignedat array Bmatrix bmatrix cases dcases equation gather gathered matrix multline "
    "pmatrix rcases smallmatrix split Vmatrix vmatrix"
)
# A formula with any other command is displayed as text: no commands that link, style, define, load, colour or move.
_COMMANDS = _names(
    """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa varkappa lambda mu nu xi omicron pi
    varpi rho varrho sigma varsigma tau upsilon phi varphi chi psi omega digamma Gamma Delta Theta Lambda Xi Pi Sigma
    Upsilon Phi Psi Omega varGamma varDelta varTheta varLambda varXi varPi varSigma varUpsilon varPhi varPsi varOmega
    aleph beth gimel daleth hbar hslash ell wp Re Im imath jmath partial nabla infty emptyset varnothing forall exists
    nexists neg lnot top bot angle measuredangle sphericalangle triangle square blacksquare Box Diamond lozenge diamond
    bigstar star clubsuit diamondsuit heartsuit spadesuit flat natural sharp surd prime backprime complement Bbbk mho
    eth degree S P dagger ddagger copyright pounds yen checkmark circledR
    frac dfrac tfrac cfrac binom dbinom tbinom sqrt over choose stackrel overset underset substack sideset
    sum prod coprod int iint iiint iiiint oint oiint oiiint bigcap bigcup bigsqcup bigvee bigwedge bigodot bigoplus
    bigotimes biguplus intop limits nolimits displaylimits
    arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf injlim ker lg lim liminf limsup ln log
    max min Pr projlim sec sin sinh sup tan tanh operatorname varliminf varlimsup varinjlim varprojlim mod bmod pmod
    pod
    pm mp times div cdot cdotp ast circ bullet cap cup sqcap sqcup uplus vee wedge lor land setminus smallsetminus wr
    amalg oplus ominus otimes oslash odot dotplus ltimes rtimes leftthreetimes rightthreetimes bigcirc bigtriangleup
    bigtriangledown triangleleft triangleright unlhd unrhd lhd rhd boxplus boxminus boxtimes boxdot barwedge veebar
    doublebarwedge curlywedge curlyvee circledast circledcirc circleddash divideontimes intercal
    lt gt le leq leqq leqslant ge geq geqq geqslant ne neq equiv approx approxeq cong sim simeq propto varpropto asymp
    doteq doteqdot bumpeq Bumpeq circeq triangleq coloneqq eqqcolon Coloneqq ll gg lll ggg prec succ preceq succeq
    preccurlyeq succcurlyeq precsim succsim lesssim gtrsim lessgtr gtrless lesseqgtr gtreqless nless ngtr nleq ngeq
    nsim ncong nmid nparallel in notin ni owns subset supset subseteq supseteq subsetneq supsetneq nsubseteq nsupseteq
    sqsubset sqsupset sqsubseteq sqsupseteq mid parallel perp models vdash dashv Vdash vDash Vvdash nvdash nvDash
    bowtie Join frown smile smallfrown smallsmile between pitchfork therefore because not colon
    to gets leftarrow rightarrow leftrightarrow Leftarrow Rightarrow Leftrightarrow longleftarrow longrightarrow
    longleftrightarrow Longleftarrow Longrightarrow Longleftrightarrow mapsto longmapsto uparrow downarrow updownarrow
    Uparrow Downarrow Updownarrow nearrow searrow swarrow nwarrow hookleftarrow hookrightarrow leftharpoonup
    leftharpoondown rightharpoonup rightharpoondown rightleftharpoons leftrightharpoons leadsto rightsquigarrow
    twoheadrightarrow twoheadleftarrow rightarrowtail leftarrowtail circlearrowleft circlearrowright curvearrowleft
    curvearrowright upharpoonleft upharpoonright downharpoonleft downharpoonright multimap iff implies impliedby
    xrightarrow xleftarrow xleftrightarrow xRightarrow xLeftarrow nrightarrow nleftarrow nRightarrow nLeftarrow
    left right middle big Big bigg Bigg bigl Bigl biggl Biggl bigr Bigr biggr Biggr bigm Bigm biggm Biggm lvert rvert
    lVert rVert vert Vert lbrace rbrace lbrack rbrack langle rangle lfloor rfloor lceil rceil lgroup rgroup lmoustache
    rmoustache ulcorner urcorner llcorner lrcorner backslash
    hat widehat check widecheck tilde widetilde acute grave dot ddot dddot ddddot breve bar vec mathring overline
    underline overbrace underbrace overbracket underbracket overparen underparen overleftarrow overrightarrow
    overleftrightarrow underleftarrow underrightarrow underleftrightarrow cancel bcancel xcancel boxed
    mathrm mathbf mathit mathsf mathtt mathbb mathcal mathfrak mathscr mathnormal boldsymbol bm pmb bold rm bf it sf tt
    cal text textrm textbf textit textsf texttt textnormal mbox mathop mathbin mathrel mathord mathopen mathclose
    mathpunct mathinner displaystyle textstyle scriptstyle scriptscriptstyle
    quad qquad enspace thinspace medspace thickspace negthinspace ldots cdots vdots ddots dots dotsb dotsc dotsi dotsm
    dotso hline begin end tag notag nonumber bra ket braket ce pu newline
    """
)


@dataclass(frozen=True)
class Formula:
    """TeX that is safe to draw, without its delimiters."""

    tex: str
    display: bool
    """True: on a line of its own."""
    end: int
    """Index in the text after its closing delimiter."""


def formula_at(text: str, start: int) -> Formula | None:
    """The formula that begins at `start`. None: there is none that may be drawn."""
    match = _FORMULA.match(text, start)
    tex = match[match.lastgroup or 0].strip() if match else ""
    if not match or not is_drawable(tex):
        return None
    if (match.lastgroup == "bracket" or _PRICE.match(tex)) and not _IS_TEX.search(tex):
        return None
    return Formula(tex, match.lastgroup in ("block", "bracket"), match.end())


def is_drawable(tex: str) -> bool:
    """True for TeX of allowed commands with balanced braces that resembles no other markup."""
    if not tex or len(tex) > MAX_TEX or _EMPTY_LINE.search(tex) or _OTHER_MARKUP.search(tex):
        return False
    if not all(name in _COMMANDS if name else sign in _SIGNS for name, sign in _COMMAND.findall(tex)):
        return False
    if not all(environment.rstrip("*") in _ENVIRONMENTS for environment in _ENVIRONMENT.findall(tex)):
        return False
    depth = 0
    for brace in re.findall(r"\\.|[{}]", tex, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(brace, 0)
        if not 0 <= depth <= _DEEPEST:
            return False
    return depth == 0


MAX_RENDERED = 32_000
"""Characters; a longer text is displayed as plain text."""
_MAX_BRACKETS = 2_000
"""Opening brackets of a text; the time of markdown-it grows with their square."""

_HEADINGS = {"h1": "h4", "h2": "h5", "h3": "h6"}
"""Headings of answers are smaller than those of the notebook."""


def to_html(text: str, *, in_colour: bool = False) -> Html:
    """`text` as html that loads nothing: raw html is text, links go to http, https and mailto only, and TeX that
    `mathematics` allows is drawn by the page. `in_colour`: blocks of code have colours.
    """
    text = cleaned(text)
    if len(text) > MAX_RENDERED or text.count("[") > _MAX_BRACKETS:
        # A hostile or endless answer must not block the kernel.
        return element("pre", code(text))
    return Html(_MARKDOWN.render(text, {"in_colour": in_colour}).strip())


def blocks_of(text: str) -> list[tuple[str, int]]:
    """Kind and first line (from 0) of each top-level block; kinds are token types of markdown-it."""
    tokens: list[Token] = []
    _MARKDOWN.block.parse(text, _MARKDOWN, {}, tokens)
    return [(token.type, token.map[0]) for token in tokens if token.level == 0 and token.map]


class _Renderer(RendererHTML):
    """markdown-it's renderer with our elements and attributes. It calls the method named like a token's type."""

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Text, cleaned and escaped."""
        return escaped(cleaned(tokens[idx].content))  # cleaned again: an entity may stand for a control character

    def code_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Code in a line."""
        return element("code", code(tokens[idx].content))

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Indented code."""
        return element("pre", element("code", code(tokens[idx].content))) + "\n"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Fenced code, in the colours of its language if that is wanted; a live view has its own."""
        if not env["in_colour"]:
            return self.code_block(tokens, idx, options, env)
        language = tokens[idx].info.strip().partition(" ")[0].lower()
        return element("pre", element("code", coloured(tokens[idx].content, language))) + "\n"

    def html_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Raw html as text."""
        return escaped(tokens[idx].content)

    def html_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Raw html as text."""
        return escaped(tokens[idx].content)

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A link to the image instead of the image, so that displaying a page sends no requests."""
        token = tokens[idx]
        url = str(token.attrs.get("src", ""))
        label = cleaned(self.renderInlineAsText(token.children, options, env)).strip() or "image"
        return element("a", label, href=url, rel=LINK_REL) if is_safe_link(url) else escaped(label)

    def math_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A formula in a line."""
        return formula(tokens[idx].content, display=tokens[idx].block)

    def math_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A formula as a block."""
        return element("p", formula(tokens[idx].content, display=True)) + "\n"

    def renderToken(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Any other token, with smaller headings and only allowed attributes."""
        token = tokens[idx]
        token.tag = _HEADINGS.get(token.tag, token.tag)
        # An allowlist: a plugin's or a later version's tags stay out.
        if token.tag and token.tag not in TAGS:
            return ""
        if token.tag in ("td", "th") and token.nesting == 1:
            # JupyterLab aligns cells of rendered tables to the right.
            side = str(token.attrs.get("style", "")).removeprefix("text-align:") or "left"
            token.attrs["style"] = f"text-align: {side}"
        digits = len(str(token.attrs.get("start", "")))
        # Jupyter's lists have room for two digits of a number.
        if digits > 2:
            token.attrs["style"] = f"padding-left: {digits}em"
        if token.type == "link_open":
            token.attrs["rel"] = LINK_REL
        allowed = ATTRIBUTES.get(token.tag, frozenset())
        token.attrs = {name: value for name, value in token.attrs.items() if name in allowed}
        return super().renderToken(tokens, idx, options, env)


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        """Allow http, https and mailto."""
        return is_safe_link(url)


def _unwrap_empty_lists(state: StateCore) -> None:
    """Turn lists without text back into paragraphs: the answer `105.` is a number, not an empty item 105."""
    tokens, result = state.tokens, list[Token]()
    index = 0
    while index < len(tokens):
        is_list, end = tokens[index].type in _LIST_OPEN, index + 1
        while is_list and tokens[end].type in ("list_item_open", "list_item_close"):
            end += 1
        if not (is_list and tokens[end].type in _LIST_CLOSE):
            result.append(tokens[index])
            index += 1
            continue
        items = tokens[index : end + 1]
        markers = "\n".join(token.info + token.markup for token in items if token.type == "list_item_open")
        level, lines = items[0].level, items[0].map
        result += [
            Token("paragraph_open", "p", 1, map=lines, level=level, block=True),
            Token("inline", "", 0, map=lines, level=level + 1, content=markers, children=[], block=True),
            Token("paragraph_close", "p", -1, level=level, block=True),
        ]
        index = end + 1
    state.tokens = result


_LIST_OPEN = ("ordered_list_open", "bullet_list_open")
_LIST_CLOSE = ("ordered_list_close", "bullet_list_close")


def _math_inline(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    match = formula_at(state.src, state.pos)
    if not match or match.end > state.posMax:
        return False
    if not silent:
        token = state.push("math_inline", "", 0)
        token.content, token.block = match.tex, match.display
    state.pos = match.end
    return True


def _math_block(state: StateBlock, start: int, last: int, silent: bool) -> bool:
    """Parse a formula on lines of its own before lists and headings, which it may resemble."""
    first = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    closing = {"$$": "$$", "\\[": "\\]"}.get(first[:2])
    # CommonMark: four columns of indent make a code block.
    if not closing or state.sCount[start] - state.blkIndent >= 4:
        return False
    # Bounded: otherwise each unclosed `$$` would be searched to the end of the text, which is quadratic.
    for line in range(start, min(last, start + _MOST_LINES)):
        if not state.getLines(line, line + 1, 0, False).rstrip().endswith(closing) or (
            line == start and len(first) < 4
        ):
            continue
        text = state.getLines(start, line + 1, state.blkIndent, False).strip()
        match = formula_at(text, 0)
        if match is None or match.end != len(text):
            return False
        if not silent:
            token = state.push("math_block", "", 0)
            token.content, token.map = match.tex, [start, line + 1]
            state.line = line + 1
        return True
    return False


_MOST_LINES = 100
_MARKDOWN = _Markdown("js-default", {"html": False, "linkify": False, "typographer": False}, renderer_cls=_Renderer)
# Before `escape`, which would take the backslash of `\(`.
_MARKDOWN.inline.ruler.before("escape", "math_inline", _math_inline)
_MARKDOWN.block.ruler.before("fence", "math_block", _math_block, {"alt": ["paragraph", "blockquote", "list"]})
_MARKDOWN.core.ruler.after("block", "empty_lists", _unwrap_empty_lists)
# Before two threads render at once: one would find the rules that the other has put together so far.
for _ruler in (_MARKDOWN.core.ruler, _MARKDOWN.block.ruler, _MARKDOWN.inline.ruler, _MARKDOWN.inline.ruler2):
    _ruler.getRules()


# ---- streamed markdown: complete blocks become html that stays, the open end html that the next piece replaces

MAX_OPEN = 4_000
"""Characters of an open block that is rendered again with each piece; a longer block is divided."""
_MAX_HIDDEN = 200
"""Characters of an unfinished link or formula that are not displayed yet."""
_REPEATED = {"fence": 1, "table_open": 2}
"""Kind of block -> lines at its beginning that are repeated when it is divided."""
_UNFINISHED = re.compile(
    rf"[*_`~\\$!]+\Z | !?\[[^\[\]\n]{{0,{_MAX_HIDDEN}}}(?:\](?:\([^()\s]{{0,{_MAX_HIDDEN}}})?)?\Z"
    r"| (?:\A|\n)[ \t]*(?:[-=+*#>|:\ \t]*|\d{1,9}[.)]?[ \t]*)\Z",
    re.VERBOSE,
)
"""An end that may become markup, displayed when more of it is known."""
_UNFINISHED_FENCE = re.compile(r"\n {0,3}[`~]+\Z")
_FORMULA_BEGINS = re.compile(r"\\[(\[]|\$\$|(?<![\w$\\])\$(?=[^\s\d$])")
_ENDS = {"\\(": "\\)", "\\[": "\\]"}
_MARKS = re.compile(r"(?P<ticks>`+)(?:.*?(?<!`)(?P=ticks)(?!`)|(?P<open>.*))|\\.|(?P<mark>\*\*|__|~~|[*_])")


class StreamedMarkdown:
    """A text that comes in pieces."""

    def __init__(self) -> None:
        self._open = ""

    def feed(self, piece: str) -> tuple[str, str]:
        """Add a piece; returns html to append, and the html of the open end, which replaces the previous one."""
        self._open += piece
        complete = self._settle()
        blocks = blocks_of(self._open)
        return complete, to_html(
            completed(self._open, is_code=bool(blocks) and blocks[-1][0] in ("fence", "code_block"))
        )

    def _settle(self) -> str:
        """The html of all blocks but the last, which later pieces cannot change."""
        blocks, lines = blocks_of(self._open), self._open.split("\n")
        kind, first = blocks[-1] if blocks else ("", 0)
        if len(self._open) <= MAX_OPEN:
            complete, self._open = "\n".join(lines[:first]), "\n".join(lines[first:])
            return to_html(complete) if first else ""
        cut = max(self._open.rfind("\n"), self._open.rfind(" ")) + 1 or len(self._open)
        complete, rest = self._open[:cut], self._open[cut:]
        # The rest of a divided table begins with its head, that of a fence with its opening line.
        self._open = "".join(f"{line}\n" for line in lines[first : first + _REPEATED.get(kind, 0)]) + rest
        return to_html(complete)


def completed(text: str, *, is_code: bool = False) -> str:
    """Unfinished markdown without an end that may become markup, and with its open marks closed."""
    if is_code:
        return _UNFINISHED_FENCE.sub("", text)
    text = _without_an_open_end(text)
    head = text.rpartition("\n\n")[2]
    if head.startswith("|") and "\n" not in head.strip():  # the head of a table needs a delimiter row
        cells = head.strip().removesuffix("|").count("|")
        text = f"{text.rstrip()}{'' if head.rstrip().endswith('|') else ' |'}\n{'|---' * cells}|"
    return text.rstrip() + _closing_marks(text.rpartition("\n")[2])


def _without_an_open_end(text: str) -> str:
    position = 0
    while begin := _FORMULA_BEGINS.search(text, position):
        match = formula_at(text, begin.start())
        rest = text[begin.end() :]
        if not match and len(rest) < _MAX_HIDDEN and "\n\n" not in rest and _ENDS.get(begin[0], begin[0]) not in rest:
            return text[: begin.start()]
        position = match.end if match else begin.end()
    return text[:position] + _UNFINISHED.sub("", text[position:])


def _closing_marks(line: str) -> str:
    """The marks that close the emphasis and code left open in `line`."""
    still_open: list[str] = []
    for match in _MARKS.finditer(line):
        if match["open"] is not None:
            return match["ticks"] + "".join(reversed(still_open))
        if not (mark := match["mark"]):
            continue
        previous_character, next_character = line[: match.start()][-1:], line[match.end() :][:1]
        if mark in still_open and previous_character.strip():
            del still_open[still_open.index(mark) :]
        # CommonMark: `_` within a word is no emphasis, as in snake_case.
        elif next_character.strip() and not (mark[0] == "_" and previous_character.isalnum()):
            still_open.append(mark)
    return "".join(reversed(still_open))
