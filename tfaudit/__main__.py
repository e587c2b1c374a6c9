"""``python -m tfaudit``."""

from .cli import main

main()
