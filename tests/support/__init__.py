"""The tests' common tools: records produced and read back, and the comparison of two clusters."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # the checkout
