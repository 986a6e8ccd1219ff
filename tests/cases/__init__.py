"""The cases of what the library registers itself: where laws are tried, what is refused, and what is false."""
