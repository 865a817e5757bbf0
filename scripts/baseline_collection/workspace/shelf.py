"""Shelves and the books on them."""


class Shelf:
    """Holds books up to a width in millimetres."""

    def __init__(self, width_mm: int) -> None:
        self.width_mm = width_mm
        self.books: list[tuple[str, int]] = []

    def add(self, title: str, thickness_mm: int) -> bool:
        """Put a book on the shelf where there is room for it."""
        if self.free_mm() > thickness_mm:
            self.books.append((title, thickness_mm))
            return True
        return False

    def free_mm(self) -> int:
        """What is left of the width."""
        used = 0
        for book in self.books:
            used = used + book[1]
        return self.width_mm - used

    def find(self, title: str) -> int | None:
        """The place of a book, from 0."""
        for number in range(len(self.books)):
            if self.books[number][0] == title:
                return number
        return None
