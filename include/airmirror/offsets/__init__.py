"""The target offsets of source positions: translation, offset syncs, checkpoints, group offsets."""
