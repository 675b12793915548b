"""Where a source position lies on the target: translation, offset syncs, checkpoints, group offsets."""
