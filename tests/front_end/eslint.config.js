// What tsc does not see. Names that are nowhere defined are its business.

const MARKUP = "markup is made safe in markup.js, and nowhere else";

export default [
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "array-callback-return": "error",
      complexity: ["error", 17],
      "consistent-return": "error",
      "default-case-last": "error",
      eqeqeq: "error",
      "max-lines": ["error", { max: 320, skipBlankLines: true, skipComments: true }],
      "max-params": ["error", 6],
      "no-cond-assign": ["error", "always"],
      "no-console": "error",
      "no-constant-condition": "error",
      "no-duplicate-imports": "error",
      "no-else-return": "error",
      "no-eval": "error",
      "no-fallthrough": "error",
      "no-implied-eval": "error",
      "no-loop-func": "error",
      "no-param-reassign": "error",
      "no-promise-executor-return": "error",
      "no-return-assign": "error",
      "no-self-compare": "error",
      "no-shadow": "error",
      "no-unsafe-optional-chaining": "error",
      "no-unused-expressions": "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      "no-useless-return": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
      "no-restricted-properties": [
        "error",
        ...["innerHTML", "outerHTML", "insertAdjacentHTML"].map((property) => ({ property, message: MARKUP })),
      ],
    },
  },
  {
    files: ["**/markup.js"],
    rules: { "no-restricted-properties": "off" },
  },
];
