"""What a file that cannot be changed is refused with."""


class RefusedFileError(Exception):
    """The file is not touched; the message says what is wrong in it and what to do."""
