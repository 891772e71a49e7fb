"""`python -m stillvec`: the command line, also from a source tree."""

import os
import sys

# Python looks for modules in the current folder first, where a downloaded torch.py would be executed.
_SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
if not sys.flags.safe_path and os.path.realpath(sys.path[0]) == os.path.realpath(".") != _SOURCE:
    del sys.path[0]

from stillvec.cli import main  # noqa: E402

sys.exit(main())
