"""`python -m fewer`."""

import sys

from fewer.cli import main

sys.exit(main())
