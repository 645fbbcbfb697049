"""One thread per test process, before torch or numpy count the cores."""

import os

from hypothesis import HealthCheck, settings

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# the same examples every time, and a slow one is no defect of what it tries; `--hypothesis-profile=fresh` draws others
CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, **CALM)
settings.register_profile("fresh", derandomize=False, **CALM)
settings.load_profile("same")
