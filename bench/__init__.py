"""Benchmarks: costate and its peers side by side, in one run, on one core.   python -m bench [names] [--quick] [--save]"""

import os

# Before numpy, torch and their linear algebra are loaded: afterwards nobody reads these any more.
for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "COSTATE_NUM_THREADS"):
    os.environ[_name] = "1"
