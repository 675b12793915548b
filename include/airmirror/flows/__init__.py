"""A flow as commands and tasks handle it: opened, prepared for a window, compared, asked for its state."""
