"""The module tree that programs written for JAX know, served from Phalanx.

``modules.py`` is the tree: a table. ``serving.py`` makes modules of it, when they are imported.
The other files hold what the tree has and Phalanx itself has not.
"""
