"""Every two procedures that can meet, and every procedure as things can be: what comes of it, on brokers and without."""
