/** The parts of Node.js that the tests use; its own types are a package more. */

declare module "node:test" {
  export function test(name: string, run: () => void | Promise<void>): void;
  export const mock: { timers: { enable(options: { apis: string[] }): void; tick(ms: number): void } };
}

declare module "node:assert/strict" {
  const assert: {
    equal(actual: unknown, expected: unknown): void;
    deepEqual(actual: unknown, expected: unknown): void;
    match(actual: string, pattern: RegExp): void;
  };
  export default assert;
}

declare module "node:fs" {
  export function readFileSync(path: string): Uint8Array<ArrayBuffer>;
  export function readFileSync(path: string, encoding: string): string;
  export function readdirSync(path: string): string[];
}
