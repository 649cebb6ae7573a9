"""Prints the public modules of google-adk: python told_modules.py."""

import importlib.util
import json
from pathlib import Path


def modules() -> list[str]:
    spec = importlib.util.find_spec("google.adk")
    assert spec is not None and spec.submodule_search_locations
    root = Path(spec.submodule_search_locations[0])
    found = [path.relative_to(root).with_suffix("").parts for path in root.rglob("*.py")]
    names = {".".join(parts[:-1] if parts[-1] == "__init__" else parts) for parts in found}
    return sorted(name for name in names if name and not any(part.startswith("_") for part in name.split(".")))


if __name__ == "__main__":
    print(json.dumps(modules()))
