// Python for JupyterLite's kernel, which imports this in place of pyodide.mjs: as that, and the page hears how far it is.
import { loadPyodide as load } from "./pyodide.mjs";

const page = new BroadcastChannel("adk-nb-loading");
const tell = (text) => page.postMessage({ text });
const KERNEL = "import pyodide_kernel";

/** As Pyodide's own, with a message to the page for each package, and the last when the kernel has been imported. */
export async function loadPyodide(options) {
  page.postMessage({ cannotWait: !("Suspending" in WebAssembly) });
  tell("Loading Python …");
  const fetched = self.fetch;
  let packages = 0;
  self.fetch = async (address, ...rest) => {
    const response = await fetched.call(self, address, ...rest);
    if (String(address.url ?? address).endsWith(".whl")) {
      packages += 1;
      tell(`Loading Python: ${packages} of ${options.packages.length} packages …`);
    }
    return response;
  };
  const python = await load(options);
  self.fetch = fetched;
  tell("Starting Python …");
  const run = python.runPythonAsync.bind(python);
  python.runPythonAsync = async (code, ...rest) => {
    const result = await run(code, ...rest);
    if (code.includes(KERNEL)) {
      tell("");
    }
    return result;
  };
  return python;
}
