/** The language of a cell: each section is parsed by a language of its own, those of the lab where it has them. */

import {
  Language,
  ParseContext,
  StreamLanguage,
  defineLanguageFacet,
  language,
  languageDataProp,
} from "@codemirror/language";
import { Prec, StateField } from "@codemirror/state";
import { NodeType, Parser, Tree, parseMixed } from "@lezer/common";
import { styleTags, tags } from "@lezer/highlight";
import { magicTokens, parseCell } from "./cells.js";
import { edgeTokens, rowTokens, teamTokens } from "./lines.js";

/** @typedef {import("./cells.js").Token} Token */

const TAGS = {
  magic: tags.operator,
  option: tags.attributeName,
  operator: tags.operator,
  definition: tags.definition(tags.variableName),
  string: tags.string,
  comment: tags.comment,
  arrow: tags.punctuation,
  end: tags.standard(tags.variableName),
  keyword: tags.keyword,
  number: tags.number,
  separator: tags.bracket,
  heading: tags.heading1,
};

/**
 * A language that knows one line at a time.
 * @param {(line: string, row: number) => Token[]} tokensOf `row` counts the lines that are not blank.
 */
function lineLanguage(tokensOf) {
  return StreamLanguage.define({
    startState: () => ({ row: 0, tokens: /** @type {Token[]} */ ([]) }),
    copyState: (state) => ({ ...state }),
    token(stream, state) {
      if (stream.sol()) state.tokens = tokensOf(stream.string, state.row++);
      const token = state.tokens.find(({ to }) => to > stream.pos);
      if (token && token.from <= stream.pos) {
        stream.pos = token.to;
        return token.type in TAGS ? token.type : null;
      }
      if (token) stream.pos = token.from;
      else stream.skipToEnd();
      return null;
    },
    tokenTable: TAGS,
  });
}

const LINES = {
  edges: lineLanguage(edgeTokens).parser,
  team: lineLanguage(teamTokens).parser,
  table: lineLanguage(rowTokens).parser,
};

const data = defineLanguageFacet();
const DOCUMENT = NodeType.define({ id: 0, name: "Document", top: true, props: [[languageDataProp, data]] });
const STYLES = styleTags({
  fence: tags.bracket,
  ...Object.fromEntries(Object.entries(TAGS).map(([type, tag]) => [`${type}-token`, tag])),
});
const NODES = Object.fromEntries(
  [
    "magic",
    "fence",
    "yaml",
    "prose",
    "edges",
    "team",
    "table",
    "python",
    ...Object.keys(TAGS).map((type) => `${type}-token`),
  ].map((name, index) => [name, NodeType.define({ id: index + 1, name, props: [STYLES] })]),
);

/**
 * A section that another parser reads, or the tokens of a magic's line. These are no language of their own: in some
 * releases @lezer/common takes the first nested language for that of all positions, and the line stands first.
 * @param {import("./cells.js").Section} section
 * @param {string} text Of the cell.
 */
function sectionTree({ type, from, to }, text) {
  const tokens = type === "magic" ? magicTokens(text.slice(from, to)).filter((token) => token.type in TAGS) : [];
  const trees = tokens.map((token) => new Tree(NODES[`${token.type}-token`], [], [], token.to - token.from));
  const positions = tokens.map((token) => token.from);
  return new Tree(NODES[type], trees, positions, to - from);
}

/** The parser that finds the sections; `wrap` parses what is in them. */
class SectionParser extends Parser {
  /** @param {import("@lezer/common").ParseWrapper} wrap */
  constructor(wrap) {
    super();
    this.wrap = wrap;
  }

  /**
   * @param {import("@lezer/common").Input} input
   * @param {readonly import("@lezer/common").TreeFragment[]} fragments
   * @param {readonly {from: number, to: number}[]} ranges
   */
  createParse(input, fragments, ranges) {
    const parse = {
      parsedPos: input.length,
      stoppedAt: null,
      stopAt() {},
      advance() {
        const text = input.read(0, input.length);
        const sections = parseCell(text)?.sections ?? [];
        const trees = sections.map((section) => sectionTree(section, text));
        const positions = sections.map(({ from }) => from);
        return new Tree(DOCUMENT, trees, positions, input.length);
      },
    };
    return this.wrap(parse, input, fragments, ranges);
  }
}

/**
 * A language that is loaded when a section first needs it; a section whose language cannot be loaded is plain text.
 * @param {() => Promise<Parser | null>} load
 */
function lazily(load) {
  /** @type {Parser | null | undefined} */
  let parser;
  /** @type {Promise<void> | undefined} */
  let loading;
  return () => {
    if (parser !== undefined) return parser;
    loading ??= load()
      .catch(() => null)
      .then((loaded) => {
        parser = loaded;
      });
    return ParseContext.getSkippingParser(loading);
  };
}

/** What the cell of an editor is; null: nothing of adk_nb. */
export const cellField = StateField.define({
  create: (state) => parseCell(state.doc.toString()),
  update: (cell, transaction) => (transaction.docChanged ? parseCell(transaction.newDoc.toString()) : cell),
});

/**
 * The extension of an editor that reads cells of adk_nb as what they are, and leaves all others to the lab.
 * @param {(name: string) => Promise<Parser | null>} load The parser of a language by its name in the lab.
 */
export function cellLanguage(load) {
  /** @type {Record<string, () => Parser | null>} */
  const parsers = {
    ...Object.fromEntries(Object.entries(LINES).map(([type, parser]) => [type, () => parser])),
    yaml: lazily(() => load("YAML")),
    prose: lazily(() => load("Markdown")),
    python: lazily(() => load("ipython")),
  };
  const wrap = parseMixed((node) => {
    const parser = parsers[node.name]?.();
    return parser ? { parser } : null;
  });
  const parser = new SectionParser(wrap);
  const cells = new Language(data, parser, [], "adk-nb");
  const plain = new Language(data, parser); // CodeMirror fails where a language may be set and none is
  return [
    cellField,
    Prec.highest(language.computeN([cellField], (state) => (state.field(cellField) ? [cells] : []))),
    Prec.lowest(language.of(plain)),
  ];
}
