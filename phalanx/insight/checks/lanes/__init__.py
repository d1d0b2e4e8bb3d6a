"""What lanes of a mapped function do to each other that is probably not meant."""
