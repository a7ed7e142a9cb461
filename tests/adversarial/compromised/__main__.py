"""python -m tests.adversarial.compromised [REGEX]: each attack, and what stopped it."""

from __future__ import annotations

import sys

from tests.adversarial.compromised.run import show

if __name__ == "__main__":
    sys.exit(show(*sys.argv[1:2]))
