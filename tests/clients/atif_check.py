"""Converts transcripts to ATIF with ctx, has the package `atif` judge them, and reads them again.

    python atif_check.py CTX TRANSCRIPT ...
"""

import subprocess
import sys

from atif import Trajectory


def ctx(*arguments, given=None):
    done = subprocess.run([sys.argv[1], *arguments], input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"ctx {' '.join(arguments)}: {done.stderr}")
    return done.stdout


for transcript in sys.argv[2:]:
    text = ctx("convert", transcript, "--to", "atif")
    trajectory = Trajectory.model_validate_json(text)
    again = ctx("convert", "-", "--to", "openai", given=text)
    if again != ctx("convert", transcript, "--to", "openai"):
        sys.exit(f"{transcript}: a trajectory that is read again differs")
    print(f"ok: {transcript}, {len(trajectory.steps)} steps")
