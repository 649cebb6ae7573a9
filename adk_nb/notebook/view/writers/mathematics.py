"""TeX in markdown: formulas in a text, and those that a page may draw."""

import re
from dataclasses import dataclass

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
