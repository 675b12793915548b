"""MirrorMaker 2's configuration as its other homes have it, Strimzi and Connect, translated into settings of a flow."""
