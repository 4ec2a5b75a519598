"""`python -m falconmq` is the `falconmq` command."""

import sys

from falconmq.cli import main

if __name__ == "__main__":
    sys.exit(main())
