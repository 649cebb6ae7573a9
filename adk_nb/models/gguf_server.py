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
    told = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    asked: dict[str, Any] = json.loads(sys.stdin.readline())
    llama: Any = require("xllamacpp", package="'adk-nb[local]'")

    def tell(**facts: Any) -> None:
        told.write(json.dumps(facts) + "\n")

    threads, rate = _choose_threads(llama, asked["path"], tell)
    tell(progress=f"loading it with {threads} thread{'s' if threads > 1 else ''}{rate}")
    wanted = _parameters(llama, asked["path"], threads, asked["context"])
    wanted.n_parallel, wanted.kv_unified, wanted.n_predict = _SLOTS, True, _MAX_ANSWER
    wanted.api_keys = [asked["key"]]
    wanted.model_alias = {asked["name"]}
    server = llama.Server(wanted)
    tell(url=server.listening_address, threads=threads)
    sys.stdin.read()
    os._exit(0)  # the other threads are the server's, and have nothing to keep


def _choose_threads(llama: Any, path: str, tell: Any) -> tuple[int, str]:
    """The fastest number of threads and, in words, its rate.

    On cores that others use, too, each step waits for the slowest thread: two can be ten times slower than one.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    best, best_rate = 1, 0.0
    for threads in sorted({1, max(1, cores // 2), cores}) if cores > 1 else ():
        tell(progress=f"measuring it with {threads} thread{'s' if threads > 1 else ''}")
        rate = _rate(llama, _parameters(llama, path, threads, _TRIAL_CONTEXT))
        if rate < best_rate * _GAIN:
            break
        best, best_rate = threads, rate
    return best, f", {best_rate:.1f} tokens/s" if best_rate else ""


def _rate(llama: Any, wanted: Any) -> float:
    """Tokens per second of a short answer, its prompt included."""
    server = llama.Server(wanted)
    began, tokens = time.monotonic(), 0

    def count(_: Any) -> bool:
        nonlocal tokens
        tokens += 1
        return time.monotonic() - began > _TRIAL_SECONDS  # True ends the answer

    server.handle_completions(_TRIAL, count)
    return tokens / (time.monotonic() - began)


def _parameters(llama: Any, path: str, threads: int, context: int) -> Any:
    wanted = llama.CommonParams()
    wanted.model.path = path
    wanted.n_ctx, wanted.n_parallel = context, 1
    wanted.hostnames, wanted.port = ["127.0.0.1"], 0
    wanted.use_jinja, wanted.warmup, wanted.ui = True, False, False
    wanted.verbosity = 1  # errors
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = threads
    return wanted


if __name__ == "__main__":
    main()
