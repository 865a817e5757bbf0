"""``python -m toold``: the same as the ``toold`` command."""

from .cli import main

main()
