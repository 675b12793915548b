"""A flow as commands and tasks handle it: opened, prepared for a window, compared, asked where it stands."""
