"""One peer, one workload, one size, in a process of its own: prints the figures as one line of JSON.

python -m benchmarks.cell google-adk w2 1000
"""

import asyncio
import json
import logging
import os
import sys
import warnings

from benchmarks.workloads import WORKLOADS


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    peer, workload, size = sys.argv[1:]
    figures = asyncio.run(WORKLOADS[workload](peer, int(size)))
    print(json.dumps(figures), flush=True)
    os._exit(0)  # a peer's threads are no part of the measurement


if __name__ == "__main__":
    main()
