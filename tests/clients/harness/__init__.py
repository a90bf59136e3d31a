"""Runs real clients against a fake provider, with and without ctx, and judges what it received."""
