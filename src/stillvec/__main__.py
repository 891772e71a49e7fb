"""`python -m stillvec`: the command line, also from a source tree."""

import sys

from stillvec.cli import main

sys.exit(main())
