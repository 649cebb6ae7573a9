// Python for JupyterLite's kernel, which imports this in place of pyodide.mjs: as that, but it begins when page.js lets
// it, takes its packages from one file, and tells the page how far it is.
import { loadPyodide as load } from "./pyodide.mjs";

const page = new BroadcastChannel("adk-nb-loading");
const tell = (text) => page.postMessage({ text });
const KERNEL = "import pyodide_kernel";
const PIP = "import piplite.piplite";

/** As Pyodide's own; `options.apart` names the packages that are not in packages.bin. */
export async function loadPyodide({ packages, apart, ...options }) {
  await permission();
  page.postMessage({ cannotWait: !("Suspending" in WebAssembly) });
  tell("Loading Python …");
  try {
    const files = unpacked(await fetch(new URL("packages.bin", import.meta.url)));
    const python = await load({ ...options, packages: apart });
    write(python, await files);
    for (const name of packages) {
      python.loadedPackages[name] ??= "this site";
    }
    tell("Starting Python …");
    const run = python.runPythonAsync.bind(python);
    python.runPythonAsync = async (code, ...rest) => {
      if (code.includes(PIP)) {
        return undefined; // it sets what only JupyterLite's own piplite reads
      }
      const result = await run(code, ...rest);
      if (code.includes(KERNEL)) {
        tell("");
      }
      return result;
    };
    return python;
  } catch (error) {
    tell(`Python could not be loaded: ${error.message}. Reload the page.`);
    throw error;
  }
}

/** Wait until page.js wants this kernel; see there. */
async function permission() {
  if (self.name !== "adk-nb-asks") {
    return;
  }
  await new Promise((granted) => {
    const hear = ({ data }) => {
      if (data?.adkNb === "begin") {
        self.removeEventListener("message", hear);
        granted();
      }
    };
    self.addEventListener("message", hear);
    self.postMessage({ adkNb: "may I begin?" });
  });
}

/** The files in packages.bin, path -> bytes; lite/wheels.py writes it. */
async function unpacked(response) {
  if (!response.ok) {
    throw new Error(`${response.url} answers ${response.status}`);
  }
  const size = Number(response.headers.get("Content-Length"));
  let arrived = 0;
  const counted = new TransformStream({
    transform(chunk, controller) {
      arrived += chunk.length;
      tell(`Loading packages: ${(arrived / 1e6).toFixed(0)} of ${(Math.max(size, arrived) / 1e6).toFixed(0)} MB …`);
      controller.enqueue(chunk);
    },
  });
  const plain = response.body.pipeThrough(counted).pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(plain).arrayBuffer());
  const end = bytes.indexOf(10);
  const sizes = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  let place = end + 1;
  return Object.entries(sizes).map(([path, length]) => [path, bytes.subarray(place, (place += length))]);
}

/** Copy files to where Python looks for packages; their bytes are shared, not copied. */
function write(python, files) {
  const root = python.runPython("import sysconfig; sysconfig.get_path('purelib')");
  const made = new Set();
  for (const [path, bytes] of files) {
    const folder = `${root}/${path.slice(0, path.lastIndexOf("/"))}`;
    if (!made.has(folder)) {
      made.add(folder);
      python.FS.mkdirTree(folder);
    }
    python.FS.writeFile(`${root}/${path}`, bytes, { canOwn: true });
  }
  python.runPython("import importlib; importlib.invalidate_caches()");
}
