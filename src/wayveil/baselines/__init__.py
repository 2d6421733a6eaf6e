"""AdaTrace and PrivTrace, written from their papers: two more methods, and two yardsticks.

Each has two modes: `published=True` follows the authors and is stamped not private; the default closes the leaks.
"""
