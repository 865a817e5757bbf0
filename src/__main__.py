"""``python -m toold``: the same as the ``toold`` command."""

from .cli import main

if __name__ == "__main__":
    main()
