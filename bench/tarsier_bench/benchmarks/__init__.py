"""A module or package for each benchmark."""
