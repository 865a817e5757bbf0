"""The tools that toold ships, one file per tool."""
