"""The command line: ``airmirror …``."""
