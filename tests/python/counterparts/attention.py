"""Attention and dropout."""
