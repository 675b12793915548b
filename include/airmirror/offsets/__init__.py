"""Where a source offset lies on the target: offset syncs for those who read MirrorMaker 2's."""
