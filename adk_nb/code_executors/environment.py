"""The environment variables that code of a model gets: what programs need to run, and no keys."""

import os

_PASSED = (
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TEMP TMP VIRTUAL_ENV CONDA_PREFIX LD_LIBRARY_PATH "
    "DYLD_LIBRARY_PATH SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT USERPROFILE APPDATA LOCALAPPDATA PROGRAMDATA "
    "OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS CUDA_VISIBLE_DEVICES SSL_CERT_FILE"
)


def environment(**more: str) -> dict[str, str]:
    """This process's variables as far as they are known to be harmless, and `more`."""
    passed = _PASSED.split()
    kept = {name: value for name, value in os.environ.items() if name.upper() in passed or name.startswith("LC_")}
    return kept | {"PYTHONIOENCODING": "utf-8"} | more
