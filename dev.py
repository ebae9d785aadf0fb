#!/usr/bin/env python3
"""Set the project up and run its jobs: `python3 dev.py demo`, `python3 dev.py test`.

This file must stay readable for any Python, Python 2 included, so that an old one is refused in one
line. The jobs are in `development/`.
"""

import os
import sys

if sys.version_info < (3, 11):  # noqa: UP036  # this file is also read by older versions of Python
    OWN = (".".join(map(str, sys.version_info[:3])), sys.executable)
    sys.exit("dev.py: Python 3.11 or newer is needed; this is %s (%s)" % OWN)  # noqa: UP031  # Python 2 has no f-strings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120  # not there with PYTHONSAFEPATH
from development.main import main

if __name__ == "__main__":
    sys.exit(main())
