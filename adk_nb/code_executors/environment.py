"""Environment variables for model-written code: what programs need to run, without keys."""

import os

_PASSED = (
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TEMP TMP VIRTUAL_ENV CONDA_PREFIX LD_LIBRARY_PATH "
    "DYLD_LIBRARY_PATH SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT USERPROFILE APPDATA LOCALAPPDATA PROGRAMDATA "
    "OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS CUDA_VISIBLE_DEVICES SSL_CERT_FILE"
)


def environment(**extra: str) -> dict[str, str]:
    """The variables of this process that are known to be harmless, and `extra`."""
    passed = _PASSED.split()
    variables = {name: value for name, value in os.environ.items() if name.upper() in passed or name.startswith("LC_")}
    return variables | {"PYTHONIOENCODING": "utf-8"} | extra
