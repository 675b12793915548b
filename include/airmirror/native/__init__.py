"""The inner loops over records as machine code: written in Python, compiled once a machine, loaded without the compiler."""
