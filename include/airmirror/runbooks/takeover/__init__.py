"""Take-over of a flow from MirrorMaker 2, in the same topics, and hand-back to it."""
