// Compile Python sources below a folder with the browser's own Python: node compile.mjs PYODIDE FOLDER
import { pathToFileURL } from "node:url";

const [pyodide, folder] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const python = await loadPyodide();
python.FS.mkdirTree("/sources");
python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, "/sources");
python.runPython(`
import compileall, py_compile
# Unchecked: the date of an unpacked file is no sign of its age.
compileall.compile_dir("/sources", quiet=2, stripdir="/sources", maxlevels=30,
    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
`);
