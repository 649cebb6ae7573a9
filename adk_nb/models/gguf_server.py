"""Serves one gguf file with llama.cpp's server, in a process of its own: `python -m adk_nb.models.gguf_server`.

Its input begins with one line of JSON, the file, its context and a key. Its output is lines of JSON: what it is about
to do, and, when it serves, its address. It ends when its input does: when the process that started it has ended.
"""

import json
import os
import signal
import sys
import time
from typing import Any

from adk_nb.lazy import require

_SLOTS = 4
"""Answers at a time; a slot remembers the prompt of its last one, so that agents who take turns are not read anew."""
_MAX_ANSWER = 1024
"""Tokens, unless max_output_tokens says otherwise: a small model may repeat itself without an end."""
_TRIAL = {"prompt": "Once upon a time", "n_predict": 12, "cache_prompt": False, "stream": True}
_TRIAL_CONTEXT = 256
_TRIAL_SECONDS = 2.0
_GAIN = 1.1
"""More threads are taken if they are faster by a tenth."""


def main() -> None:
    """Measure, serve, and wait for the end of the input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt of the kernel reaches its processes, too
    # What others write to the output of this process goes to its log.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    settings: dict[str, Any] = json.loads(sys.stdin.readline())
    llama: Any = require("xllamacpp", package="adk-nb[local]")

    def tell(**facts: Any) -> None:
        output.write(json.dumps(facts) + "\n")

    # On cores that others use, too, each step waits for the slowest thread: two can be ten times slower than one.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads, rate = 1, 0.0
    for more in sorted({1, max(1, cores // 2), cores}) if cores > 1 else ():
        tell(progress=f"measuring it with {more} thread{'s' if more > 1 else ''}")
        next_rate = _rate(llama, _parameters(llama, settings["path"], more, _TRIAL_CONTEXT))
        if next_rate < rate * _GAIN:
            break
        threads, rate = more, next_rate
    told_rate = f", {rate:.1f} tokens/s" if rate else ""
    tell(progress=f"loading it with {threads} thread{'s' if threads > 1 else ''}{told_rate}")
    parameters = _parameters(llama, settings["path"], threads, settings["context"])
    parameters.n_parallel, parameters.kv_unified, parameters.n_predict = _SLOTS, True, _MAX_ANSWER
    parameters.api_keys = [settings["key"]]
    parameters.model_alias = {settings["name"]}
    server = llama.Server(parameters)
    tell(url=server.listening_address, threads=threads)
    sys.stdin.read()
    os._exit(0)  # the other threads are the server's, and have nothing to keep


def _rate(llama: Any, parameters: Any) -> float:
    """Tokens per second of a short answer, its prompt included."""
    server = llama.Server(parameters)
    began, tokens = time.monotonic(), 0

    def count(_: Any) -> bool:
        nonlocal tokens
        tokens += 1
        return time.monotonic() - began > _TRIAL_SECONDS  # True ends the answer

    server.handle_completions(_TRIAL, count)
    return tokens / (time.monotonic() - began)


def _parameters(llama: Any, path: str, threads: int, context: int) -> Any:
    parameters = llama.CommonParams()
    parameters.model.path = path
    parameters.n_ctx, parameters.n_parallel = context, 1
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    parameters.use_jinja, parameters.warmup, parameters.ui = True, False, False
    parameters.verbosity = 1  # errors
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    return parameters


if __name__ == "__main__":
    main()
