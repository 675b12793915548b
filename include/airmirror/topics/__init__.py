"""Remote topics on the target: which there must be, with which partitions and configs, and how they come to be."""
