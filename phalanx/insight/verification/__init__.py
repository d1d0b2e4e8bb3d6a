"""``verify``: whether a program gives the same numbers on its devices as on one of them."""
