"""Runs real clients against a fake provider, with and without ctx, and checks the received requests."""
