"""What compiles for accelerators: everything there is, for chips that are only described."""
