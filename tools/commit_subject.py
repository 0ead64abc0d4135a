# SPDX-License-Identifier: Apache-2.0
"""Refuse a commit whose subject is longer than 72 characters; a commit-msg hook, which is given the message's file.

python tools/commit_subject.py .git/COMMIT_EDITMSG
"""

import sys
from pathlib import Path

LONGEST = 72


def main() -> int:
    """Return 1 and print why if the subject is too long."""
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    subject = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    if len(subject) <= LONGEST:
        return 0
    print(f"expected a subject of at most {LONGEST} characters, got {len(subject)}: {subject}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
