export { loadPyodide } from "./pyodide.mjs";
