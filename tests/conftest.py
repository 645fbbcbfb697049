"""One thread per test process, before torch or numpy count the cores."""

import os

from hypothesis import settings

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

settings.register_profile("busy machine", deadline=None)  # a slow example is no defect of what it tries
settings.load_profile("busy machine")
