"""Bridges from the native adjoints to automatic differentiation."""
