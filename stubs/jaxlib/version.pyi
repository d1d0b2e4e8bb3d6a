__version__: str
__version_info__: tuple[int, ...]
