"""The answers that ``decide.<source>.<target>`` offers, as its form shows them."""

from __future__ import annotations

VERIFY_AGAIN, LET_PASS, KEEP = "Verify again", "Let it pass", "Keep it held"
ACCEPT_LOSS, AGAIN, NEW_TOPIC = "Accept the loss", "Replicate again", "Replicate again into a new topic"
