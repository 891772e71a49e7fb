"""`stillvec` and `python -m stillvec`: the command line, also from a source tree."""

import os
import sys

# Python looks for modules in the current folder first, where a downloaded torch.py would be executed.
_SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
_HERE = os.path.realpath(".")
if __name__ == "__main__" and not sys.flags.safe_path and os.path.realpath(sys.path[0]) == _HERE != _SOURCE:
    del sys.path[0]


def main() -> int:
    """Run the command line; Ctrl+C while it is being imported is one line too."""
    try:
        from stillvec import cli

        return cli.main()
    except KeyboardInterrupt:
        sys.stderr.write("stillvec: interrupted; no partial output was left.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
